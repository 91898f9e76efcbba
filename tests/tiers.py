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
    "faults/test_irregular.py": "unit/test_regular_files.py",
    "faults/test_links.py": "unit/test_file_system.py",
    "faults/test_machine.py": "unit/test_environment.py",
    "faults/test_places.py": "unit/test_config_paths.py",
    "faults/test_troubles.py": "unit/test_troubles.py",
    "faults/test_upkeep.py": "unit/test_file_system.py",
    "faults/test_verify.py": "unit/test_sealed.py",
    "laws/test_chain_batches.py": "unit/test_batches.py",
    "laws/test_chain_of_spectra.py": "unit/test_spectra.py",
    "laws/test_chain_of_updates.py": "unit/test_updates.py",
    "laws/test_chain_with_noise.py": "unit/test_noise.py",
    "laws/test_finite_size.py": "laws/test_chain_is_sgd.py",
    "laws/test_sde.py": "laws/test_sgd_follows_ode.py",
    "unit/test_accessor.py": "unit/test_interface.py",
    "unit/test_child.py": "unit/test_children.py",
    "unit/test_combined.py": "unit/test_table.py",
    "unit/test_dmft.py": "unit/test_training_sets.py",
    "unit/test_export_analyses.py": "unit/test_export.py",
    "unit/test_extrapolation.py": "unit/test_analysis_fits.py",
    "unit/test_figures_fit.py": "unit/test_figures_scaling.py",
    "unit/test_figures_general.py": "unit/test_figures.py",
    "unit/test_figures_published.py": "unit/test_references.py",
    "unit/test_forks.py": "unit/test_jobs.py",
    "unit/test_form_errors.py": "unit/test_expectations_error_functions.py",
    "unit/test_identity.py": "unit/test_versions.py",
    "unit/test_long_on_the_sphere.py": "unit/test_ode.py",
    "unit/test_mean_field.py": "unit/test_nonlinear_dynamics.py",
    "unit/test_mutated_configs.py": "unit/test_broken_configs.py",
    "unit/test_optimal_schedules.py": "unit/test_schedules.py",
    "unit/test_other_stores.py": "unit/test_growth.py",
    "unit/test_outdated.py": "workflow/test_workflow.py",
    "unit/test_parameters.py": "unit/test_plugins.py",
    "unit/test_plugin_checks.py": "unit/test_plugins.py",
    "unit/test_readers.py": "unit/test_storage_dataset.py",
    "unit/test_report_comparison.py": "unit/test_report.py",
    "unit/test_report_plots.py": "unit/test_report.py",
    "unit/test_store_model.py": "unit/test_storage.py",
    "unit/test_two_gaussians_optimum.py": "unit/test_two_gaussians.py",
    "workflow/test_documents.py": "unit/test_config.py",
}
"""The files of tests that `make test` leaves to `make test-rest`, each with one that sees the gravest faults there."""

COSTLY = {
    "contracts/test_starts.py": {"test_a_stated_overlap_is_exact", "test_data_law"},
    "unit/test_analysis_directions.py": {"test_problems_of_several_teacher_widths_share_a_dataset"},
    "unit/test_answers.py": {"test_rounds_that_are_interrupted_anywhere_end_with_the_same_bits"},
    "unit/test_batches.py": {"test_a_record_between_two_uses_of_a_batch_changes_no_path"},
    "unit/test_drifts.py": {"test_a_rule_that_leaves_out_the_variance_has_the_same_bits_of_all_else"},
    "unit/test_exit_levels.py": {"test_exits_on_the_classification_error_by_angles_are_those_of_its_integrals"},
    "unit/test_formulas.py": {"test_a_field_beside_a_much_longer_one_keeps_its_nodes"},
    "unit/test_losses.py": {"test_classification_errors_are_those_of_an_independent_code"},
    "unit/test_noise.py": {"test_the_ode_with_noise_has_the_numbers_of_an_independent_code"},
    "unit/test_random.py": {"test_chi_squares_have_their_law"},
    "unit/test_spectra.py": {"test_means_at_finite_d_are_those_of_an_independent_code"},
    "unit/test_tasks.py": {"test_means_of_the_chain_are_those_of_the_ode", "test_the_chain_has_the_law_of_the_weights"},
    "workflow/test_workflow.py": {
        "test_a_sweep_whose_profile_asks_for_less_has_not_succeeded",
        "test_an_edit_of_a_module_reruns_the_stages_that_import_it",
        "test_edits_are_noticed_from_another_folder",
        "test_edits_that_change_no_result_and_a_new_plan_rerun_nothing",
    },
}
"""Single tests that `make test` leaves to `make test-rest` too: most of them compile kernels that no other test needs."""


def is_left_to_the_rest(path: str, name: str) -> bool:
    """Return whether `make test` leaves out the test of a name, without parameters, in a file."""
    return path in QUICKER or name in COSTLY.get(path, ())


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
