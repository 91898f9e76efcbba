"""Which tests `make test` runs, which `make test-rest`, and which `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest

ALONE = ("dmft", "nonlinear_dynamics", "overlap_map")
"""Dynamics that are slow or whose kernels no other one needs, with tests of their own: their contract is slow."""

QUICKER = {
    "contracts/test_analyses_figures.py": "unit/test_analysis_exit_times.py",
    "contracts/test_clusters.py": "unit/test_local_cluster.py",
    "contracts/test_deterministic_dynamics.py": "unit/test_ode_accuracy.py",
    "contracts/test_dynamics.py": "unit/test_simulation.py",
    "contracts/test_horizons.py": "unit/test_horizons.py",
    "contracts/test_losses.py": "unit/test_losses.py",
    "contracts/test_observables.py": "unit/test_overlaps.py",
    "contracts/test_reads.py": "unit/test_problem.py",
    "contracts/test_targets.py": "unit/test_label_means.py",
    "contracts/test_updates.py": "unit/test_updates.py",
    "faults/test_by_folder.py": "unit/test_front_commands.py",
    "faults/test_damage.py": "unit/test_sealed.py",
    "faults/test_functions_killed.py": "unit/test_functions.py",
    "faults/test_irregular.py": "unit/test_regular_files.py",
    "faults/test_links.py": "unit/test_file_system.py",
    "faults/test_machine.py": "unit/test_environment.py",
    "faults/test_places.py": "unit/test_config_paths.py",
    "faults/test_troubles.py": "unit/test_troubles.py",
    "faults/test_upkeep.py": "unit/test_file_system.py",
    "faults/test_verify.py": "unit/test_sealed.py",
    "laws/test_chain_batches.py": "laws/test_chain_is_sgd.py",
    "laws/test_chain_of_spectra.py": "laws/test_chain_is_sgd.py",
    "laws/test_chain_of_updates.py": "unit/test_updates.py",
    "laws/test_chain_with_noise.py": "laws/test_chain_is_sgd.py",
    "laws/test_finite_size.py": "laws/test_chain_is_sgd.py",
    "laws/test_sde.py": "laws/test_sgd_follows_ode.py",
    "laws/test_two_clocks.py": "laws/test_published_numbers.py",
    "unit/test_accessor.py": "unit/test_interface.py",
    "unit/test_averages.py": "unit/test_simulation.py",
    "unit/test_batches.py": "laws/test_chain_is_sgd.py",
    "unit/test_child.py": "unit/test_children.py",
    "unit/test_combined.py": "unit/test_table.py",
    "unit/test_decay.py": "unit/test_simulation.py",
    "unit/test_dmft.py": "unit/test_simulation.py",
    "unit/test_drifts.py": "unit/test_expectations_polynomials.py",
    "unit/test_expectations.py": "unit/test_expectations_polynomials.py",
    "unit/test_expectations_of_many.py": "unit/test_expectations_polynomials.py",
    "unit/test_export_analyses.py": "unit/test_export.py",
    "unit/test_extrapolation.py": "unit/test_analysis_fits.py",
    "unit/test_figures_fit.py": "unit/test_figures_scaling.py",
    "unit/test_figures_general.py": "unit/test_figures.py",
    "unit/test_figures_published.py": "unit/test_references.py",
    "unit/test_forks.py": "unit/test_stage_records.py",
    "unit/test_form_errors.py": "unit/test_expectations_error_functions.py",
    "unit/test_identity.py": "unit/test_versions.py",
    "unit/test_label_tails.py": "unit/test_simulation.py",
    "unit/test_long_on_the_sphere.py": "unit/test_ode.py",
    "unit/test_mean_field.py": "unit/test_units.py",
    "unit/test_mutated_configs.py": "unit/test_broken_configs.py",
    "unit/test_noise.py": "unit/test_simulation.py",
    "unit/test_nonlinear_dynamics.py": "unit/test_units.py",
    "unit/test_optimal_schedules.py": "unit/test_schedules.py",
    "unit/test_other_stores.py": "unit/test_growth.py",
    "unit/test_outdated.py": "workflow/test_workflow.py",
    "unit/test_parameters.py": "unit/test_plugins.py",
    "unit/test_plugin_checks.py": "unit/test_plugins.py",
    "unit/test_readers.py": "unit/test_storage_dataset.py",
    "unit/test_report_comparison.py": "unit/test_report.py",
    "unit/test_report_plots.py": "unit/test_report.py",
    "unit/test_spectra.py": "laws/test_chain_is_sgd.py",
    "unit/test_store_model.py": "unit/test_storage.py",
    "unit/test_training_flow.py": "unit/test_ode.py",
    "unit/test_training_sets.py": "unit/test_simulation.py",
    "unit/test_two_gaussians_optimum.py": "unit/test_two_gaussians.py",
    "unit/test_weight_noise.py": "unit/test_simulation.py",
    "workflow/test_documents.py": "unit/test_config.py",
}
"""The files of tests that `make test` leaves to `make test-rest`, each with one that sees the gravest faults there."""


def slow_among(values: Iterable[Any], *slow: Any) -> list[Any]:
    """Return the values as parameters of a test; `slow`, which are among them, are slow."""
    values = list(values)
    assert all(value in values for value in slow)
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*parts, marks=pytest.mark.slow) if value in slow else value
        for value, parts in zip(values, several, strict=True)
    ]


def slow_but(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Return the values as parameters of a test; all are slow but `quick`, which are among them."""
    values = list(values)
    assert all(value in values for value in quick)
    return slow_among(values, *(value for value in values if value not in quick))
