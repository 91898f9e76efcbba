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
    "laws/test_chain_batches.py": "unit/test_batches.py",
    "laws/test_chain_of_spectra.py": "unit/test_spectra.py",
    "laws/test_chain_of_updates.py": "unit/test_updates.py",
    "laws/test_chain_with_noise.py": "unit/test_noise.py",
    "laws/test_finite_size.py": "laws/test_chain_is_sgd.py",
    "laws/test_sde.py": "laws/test_sgd_follows_ode.py",
    "laws/test_two_clocks.py": "laws/test_published_numbers.py",
    "unit/test_accessor.py": "unit/test_interface.py",
    "unit/test_child.py": "unit/test_children.py",
    "unit/test_combined.py": "unit/test_table.py",
    "unit/test_dmft.py": "unit/test_training_sets.py",
    "unit/test_drifts.py": "unit/test_expectations_of_many.py",
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
    "contracts/test_starts.py": {
        "test_a_stated_overlap_is_exact",
        "test_a_warm_start_learns_from_where_it_starts",
        "test_data_law",
    },
    "unit/test_activation_names.py": {"test_a_series_is_simulated"},
    "unit/test_advice.py": {"test_a_plan_measures_what_it_advises"},
    "unit/test_analysis_directions.py": {"test_problems_of_several_teacher_widths_share_a_dataset"},
    "unit/test_answers.py": {"test_rounds_that_are_interrupted_anywhere_end_with_the_same_bits"},
    "unit/test_batches.py": {
        "test_a_rate_that_is_too_large_ends_as_a_divergence",
        "test_a_record_between_two_uses_of_a_batch_changes_no_path",
        "test_a_replica_of_the_chain_does_not_depend_on_others",
        "test_exits_are_those_of_the_risks_of_each_step",
        "test_units_that_are_equal_stay_equal_in_the_chain",
    },
    "unit/test_clock.py": {
        "test_a_dataset_says_how_many_samples_were_drawn",
        "test_records_are_those_of_a_run_to_that_step",
        "test_the_end_of_a_sweep_says_how_many_runs_exited",
    },
    "unit/test_decay.py": {
        "test_a_reused_batch_with_decay_has_the_numbers_of_an_independent_code",
        "test_a_step_that_leaves_nothing_of_the_weights_is_refused",
        "test_the_map_becomes_the_ode_for_short_steps_and_many_samples",
    },
    "unit/test_entry_points.py": {"test_workers_load_it"},
    "unit/test_expectations.py": {"test_splitting_units_changes_nothing[relu|erf]"},
    "unit/test_exit_levels.py": {"test_exits_on_the_classification_error_by_angles_are_those_of_its_integrals"},
    "unit/test_formulas.py": {"test_a_field_beside_a_much_longer_one_keeps_its_nodes"},
    "unit/test_front_commands.py": {
        "test_results_of_an_earlier_version_are_unfinished_in_the_list_and_by_the_status",
        "test_the_list_counts_the_cases_of_an_interrupted_sweep",
    },
    "unit/test_layer_wise.py": {
        "test_a_unit_without_weights_is_fitted",
        "test_samples_have_the_law_of_a_fit_on_the_weights",
    },
    "unit/test_losses.py": {
        "test_classification_errors_are_those_of_an_independent_code",
        "test_the_generalisation_gap_has_the_error_of_the_risk_beside_it",
        "test_the_ode_of_a_committee_has_the_numbers_of_an_independent_code",
    },
    "unit/test_noise.py": {
        "test_drifts_are_means_over_the_units_that_are_kept",
        "test_the_ode_with_noise_has_the_numbers_of_an_independent_code",
    },
    "unit/test_overlap_map.py": {"test_a_plain_step_is_the_mean_of_sgd_to_second_order"},
    "unit/test_plan.py": {
        "test_a_plan_of_what_is_done_keeps_the_files_and_costs_of_the_plan_before",
        "test_a_run_shows_one_plan_after_a_dynamics_is_added",
        "test_what_is_needed_later_is_compiled_beside",
    },
    "unit/test_points.py": {
        "test_a_table_of_points_with_seeds_of_their_own",
        "test_names_of_the_grid_are_numbers_in_formulas",
    },
    "unit/test_random.py": {"test_chi_square_of_no_degrees_is_zero", "test_chi_squares_have_their_law"},
    "unit/test_references.py": {"test_rows_stand_where_all_their_columns_agree"},
    "unit/test_run.py": {"test_points_that_differ_in_what_a_dynamics_does_not_read_are_one_case"},
    "unit/test_schedules.py": {
        "test_a_constant_factor_is_that_of_the_rate",
        "test_a_constant_schedule_is_none",
        "test_exits_are_those_of_the_risks_of_each_step",
        "test_means_tend_to_the_ode_as_d_grows",
        "test_the_sde_scatters_as_the_chain",
    },
    "unit/test_spectra.py": {
        "test_means_at_finite_d_are_those_of_an_independent_code",
        "test_means_of_a_linear_unit_are_exact",
        "test_risks_of_blocks_are_in_one_array_for_all_widths_and_are_drawn",
        "test_risks_of_blocks_sum_up_to_the_risk",
        "test_the_chain_finds_exits_where_the_risk_passes_its_target",
        "test_the_ode_of_blocks_has_the_numbers_of_an_independent_code",
    },
    "unit/test_tasks.py": {
        "test_means_of_the_chain_are_those_of_the_ode",
        "test_one_task_twice_is_a_plain_run",
        "test_the_chain_has_the_law_of_the_weights",
    },
    "unit/test_training_sets.py": {"test_a_training_set_that_no_worker_has_the_memory_for_is_refused_in_one_line"},
    "unit/test_updates.py": {"test_the_ode_of_a_linear_unit_has_the_numbers_of_an_independent_code"},
    "workflow/test_workflow.py": {
        "test_a_sweep_whose_profile_asks_for_less_has_not_succeeded",
        "test_after_a_finished_run_nothing_is_left_to_do_and_make_says_what_became_of_the_sweep",
        "test_an_edit_of_a_module_reruns_the_stages_that_import_it",
        "test_edits_are_noticed_from_another_folder",
        "test_edits_that_change_no_result_and_a_new_plan_rerun_nothing",
    },
}
"""Single tests that `make test` leaves to `make test-rest` too: most compile kernels that no other test needs."""


def is_left_to_the_rest(path: str, name: str) -> bool:
    """Return whether `make test` leaves out a test, whose name has its parameters, in a file."""
    return path in QUICKER or not COSTLY.get(path, set()).isdisjoint((name, name.partition("[")[0]))


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
