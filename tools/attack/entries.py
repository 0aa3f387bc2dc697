"""The ways in which such a suite passes and is wrong, each with what provokes it.

``attacks`` are names of :data:`tools.attack.mutations.ATTACKS`; ``tests`` are functions of the test
files in ``tests``, by file without ``test_`` and ``.py``, and by name without ``test_``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A way to pass and be wrong: its number, its name, and what provokes it."""

    number: int
    name: str
    attacks: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


ENTRIES: tuple[Entry, ...] = (
    Entry(
        *(1, "a check that does not load"),
        tests=("loading::a_check_that_does_not_load_ends_the_call",),
    ),
    Entry(
        *(2, "no case matches"),
        tests=(
            "end_to_end::a_selection_that_matches_nothing_is_no_pass",
            "end_to_end::check_fails_when_cases_that_should_run_did_not",
        ),
    ),
    Entry(
        *(3, "the scheduler's accounting is missing or down"),
        tests=(
            "cluster_faults::a_fault_is_named",
            "slurm_nodes::session_stopped_by_reframe_says_why",
        ),
    ),
    Entry(
        *(4, "accounting answers about an older job"),
        tests=("on_virtual_cluster::an_answer_of_sacct_about_an_older_job_is_no_pass",),
    ),
    Entry(
        *(5, "a missing reference"),
        tests=(
            "references::a_figure_without_an_entry_is_no_pass",
            "references::a_key_that_reframe_would_never_match_is_refused",
            "assembly::a_figure_without_a_reference_is_no_pass",
        ),
    ),
    Entry(
        *(6, "a reference file that nothing reads"),
        tests=(
            "references::a_file_under_a_name_that_nothing_reads_is_an_error",
            "references::a_renamed_check_is_an_error",
        ),
    ),
    Entry(
        *(7, "a command of the job fails"),
        tests=(
            "silent_passes::7_an_exit_status_is_no_pass",
            "sampling_driver::failed_launch_is_the_last_and_its_words_repeated",
        ),
    ),
    Entry(
        *(8, "a tolerance that fails the better, or passes the impossible"),
        tests=(
            "references::a_bound_on_the_better_side_is_refused",
            "limits::impossible_value_within_a_one_sided_tolerance",
        ),
    ),
    Entry(
        *(9, "singletons"),
        attacks=("two ranks' lines mixed", "the output twice"),
        tests=(
            "silent_passes::one_launch_of_three_that_lies_makes_the_case_invalid",
            "proof::singletons_are_named_with_the_launcher_that_made_them",
        ),
    ),
    Entry(
        *(10, "another MPI's launcher or library"),
        tests=(
            "silent_passes::one_launch_of_three_that_lies_makes_the_case_invalid",
            "proof::another_library_than_the_stacks",
            "proof::another_stacks_launcher",
        ),
    ),
    Entry(
        *(11, "other nodes or cores than asked"),
        tests=(
            "silent_passes::hpl_that_lies_does_not_pass",
            "silent_passes::31_a_launch_that_does_not_fit_fails",
            "proof::two_ranks_on_one_core",
            "proof::all_ranks_on_one_node",
        ),
    ),
    Entry(
        *(12, "inherited variables"),
        tests=(
            "attack_real::12_a_hostile_environment_reaches_no_rank",
            "end_to_end::an_inherited_variable_is_removed_and_named",
            "silent_passes::hpl_that_lies_does_not_pass",
        ),
    ),
    Entry(
        *(13, "another network than the fabric"),
        tests=(
            "machine_traffic::a_launch_through_another_network_than_the_fabric_is_told",
            "cluster_faults::a_fault_is_named",
        ),
    ),
    Entry(
        *(14, "an output that is cut off"),
        attacks=(
            "cut anywhere",
            "cut by a kill, with the launcher's words",
            "zero bytes at the end",
            "a line lost",
            "a block lost",
        ),
        tests=(
            "silent_passes::hpl_that_lies_does_not_pass",
            "attack_real::14_a_full_disk_is_no_pass",
            "attack_real::39_a_run_of_which_a_part_is_killed_leaves_no_pass",
        ),
    ),
    Entry(
        *(15, "HPL: residuals, skipped results, NaN"),
        attacks=(
            "a failed check of the benchmark",
            "a figure that is no number",
            "an output that is no result",
        ),
        tests=("silent_passes::hpl_that_lies_does_not_pass",),
    ),
    Entry(
        *(16, "HPCC: Success=0, skipped sections, errors"),
        attacks=("a failed check of the benchmark", "an output that is no result"),
        tests=("silent_passes::16_hpcc_without_success_is_invalid",),
    ),
    Entry(
        *(17, "IMB: rows of words, groups, modes, columns, what never ran"),
        attacks=("a line lost", "a block repeated", "an output that is no result"),
        tests=(
            "silent_passes::17_a_benchmark_that_never_ran_is_missed",
            "silent_passes::17_a_size_that_imb_gave_up_is_counted_and_no_pass",
        ),
    ),
    Entry(
        *(18, "lines mixed, warnings between, decimal commas"),
        attacks=(
            "two ranks' lines mixed",
            "two lines torn into each other",
            "two lines swapped",
            "neighbouring lines swapped",
            "a line repeated elsewhere",
            "a line repeated nearby",
            "a character damaged",
            "decimal commas",
            "digits of another script",
        ),
        tests=(
            "silent_passes::hpl_that_lies_does_not_pass",
            "attack_real::18_texts_that_are_changed_honestly_on_their_way_pass",
        ),
    ),
    Entry(
        *(19, "output of an earlier run"),
        attacks=("below another run's output", "above another run's output", "the output twice"),
        tests=("silent_passes::19_output_of_an_earlier_run_is_noticed",),
    ),
    Entry(
        *(20, "a reference of one bad day, or taken after the regression"),
        tests=(
            "baselines::too_few_runs_are_refused_with_what_to_do",
            "baselines::runs_of_one_moment_are_refused",
            "baselines::a_figure_that_became_worse_keeps_its_reference",
        ),
    ),
    Entry(
        *(21, "two modes averaged"),
        tests=(
            "statistics_modality::two_levels_with_nothing_between_are_two_modes",
            "assembly::two_modes_are_told_of_their_figure_and_of_the_run",
        ),
    ),
    Entry(
        *(22, "many metrics, each at its own 5 %"),
        tests=(
            "published_launches::nothing_is_better_than_itself_in_suites_of_hundreds",
            "judge::an_unchanged_machine_is_seldom_suspicious",
        ),
    ),
    Entry(
        *(23, "A and B on other nodes, at other hours"),
        tests=(
            "ab::rounds_of_both_are_side_by_side_and_disturbed_ones_count",
            "sampling_driver::contenders_take_turns_in_an_order_by_chance",
        ),
    ),
    Entry(
        *(24, "part of the mode left out, and the gate opens"),
        tests=(
            "silent_passes::24_a_gate_that_left_most_of_its_mode_out_does_not_open",
            "gating::it_opens_only_when_all_was_judged_that_must_be",
        ),
    ),
    Entry(
        *(25, "one slow trial switches a limit off"),
        tests=(
            "silent_passes::25_27_rate_of_no_machine_impossible_beside_a_program",
            "limits::one_slow_trial_widens_a_limit_and_takes_none_away",
        ),
    ),
    Entry(
        *(26, "a time of 0"),
        attacks=("a result of 0",),
        tests=(
            "silent_passes::26_a_collective_call_in_no_time_is_impossible",
            "limits::a_time_that_rounds_to_nothing_cannot_be",
            "judging::what_took_no_time_is_no_improvement",
        ),
    ),
    Entry(
        *(27, "a rate or a time that the wall time does not allow"),
        attacks=("times that the launch does not hold", "an exponent of a result"),
        tests=(
            "silent_passes::25_27_plain_reframe_fails_a_rate_that_no_machine_has",
            "silent_passes::an_output_that_does_not_fit_its_launch_is_invalid",
        ),
    ),
    Entry(
        *(28, "another problem than asked, or another launch's output"),
        attacks=(
            "another input of the same program",
            "another program's output",
            "a digit of what was asked",
            "dated to another day",
            "the word of another launch",
        ),
        tests=(
            "silent_passes::28_another_problem_than_asked_for_is_invalid",
            "silent_passes::28_options_of_a_wrapper_are_no_pass",
            "silent_passes::28_output_replayed_from_an_earlier_launch",
            "attack_real::28_texts_that_are_damaged_on_their_way_are_no_pass",
        ),
    ),
    Entry(
        *(29, "a disturbance excuses more than it explains"),
        tests=(
            "silent_passes::29_a_neighbour_does_not_excuse_more_than_it_can_explain",
            "judging::a_disturbance_excuses_no_more_than_it_explains",
        ),
    ),
    Entry(
        *(30, "most launches far worse, the best two fine"),
        tests=(
            "silent_passes::30_most_launches_far_worse_are_no_improvement",
            "judging::30_mostly_slow_launches_no_pass_by_best_two",
        ),
    ),
    Entry(
        *(31, "fewer cores, ranks or nodes than foreseen"),
        tests=(
            "silent_passes::31_fewer_ranks_than_the_references_foresee_are_no_pass",
            "coverage::fewer_cores_than_the_references_foresee_are_a_finding",
            "cli_gate::it_does_not_open_on_some_of_the_cores",
        ),
    ),
    Entry(
        *(32, "another machine's site config"),
        tests=(
            "site_choice::a_pattern_is_for_the_whole_name",
            "site_choice::beside_systems_of_its_own_a_site_has_no_desk",
            "cli_gate::it_does_not_open_a_machine_whose_site_config_is_a_guess",
        ),
    ),
    Entry(
        *(33, "configuration files of the MPI or the loader"),
        tests=(
            "silent_passes::33_a_users_configuration_file_has_no_effect_and_is_named",
            "silent_passes::33_the_loaders_own_list_is_found_out",
            "silent_passes::33_a_library_that_nobody_asked_to_preload_is_named",
        ),
    ),
    Entry(
        *(34, "a clock that runs slow or fast, or was set"),
        attacks=("dated to another day",),
        tests=(
            "silent_passes::34_a_clock_that_runs_slow_is_found_out",
            "proof::a_clock_of_the_node_that_runs_fast_is_no_proof",
            "proof::a_clock_that_was_set_is_told_and_no_complaint",
        ),
    ),
    Entry(
        *(35, "references that never apply, tolerate all, or are of another unit"),
        tests=(
            "silent_passes::35_lost_tuning_and_other_unit_are_no_pass",
            "dead_references::a_lost_tuning_switches_no_reference_off",
            "references::entry_that_can_never_fail_or_match_refused",
        ),
    ),
    Entry(
        *(36, "a case missing here and one too many there"),
        tests=("assembly::36_missing_and_unexpected_case_both_seen",),
    ),
    Entry(
        *(37, "an error of the suite with a verdict's exit status"),
        tests=(
            "cli_streams::a_fault_of_the_suite_is_no_verdict",
            "cli_streams::a_verdict_is_printed_whatever_the_terminal_can_show",
            "attack_real::14_a_full_disk_is_no_pass",
            "attack_pipelines::a_job_ends_as_its_gate_did_where_the_disk_is_full",
            "attack_pipelines::a_job_without_room_for_its_artifacts_is_no_verdict",
            "attack_pipelines::a_baseline_without_room_is_no_warning",
        ),
    ),
    Entry(
        *(38, "two runs in one home"),
        tests=(
            "end_to_end::two_runs_in_one_home_leave_each_other_alone",
            "resuming::two_do_not_work_on_one_run",
            "resuming::what_a_gate_launches_in_a_folder_of_its_own_is_left_alone",
        ),
    ),
    Entry(
        *(39, "a run cancelled while its job goes on"),
        tests=(
            "end_to_end::all_of_a_run_ends_with_it",
            "attack_real::39_a_run_of_which_a_part_is_killed_leaves_no_pass",
        ),
    ),
    Entry(
        *(40, "a typo in a site config taken for an absent setting"),
        tests=(
            "site_choice::40_hostnames_under_a_mistyped_key_make_no_desk",
            "attack::40_mistyped_key_of_a_site_config_refused",
        ),
    ),
    Entry(
        *(41, "settings of the job that no record tells"),
        tests=(
            "loading::a_setting_of_the_job_is_left_to_the_site",
            "golden::launches_that_the_site_sets_otherwise_since_are_told",
        ),
    ),
    Entry(
        *(42, "slow in some launches by less than what counts as slow"),
        tests=("statistics_rounds::rather_slow_in_many_launches_not_ruled_out",),
    ),
    Entry(
        *(43, "a golden build that launches today's programs"),
        tests=("golden::a_manifest_that_names_todays_program_is_no_golden_build",),
    ),
    Entry(
        *(44, "a reference that YAML reads as another number"),
        tests=("references::a_number_of_another_base_is_refused",),
    ),
    Entry(
        *(45, "a library that only today's ranks map, or only where they run"),
        tests=(
            "golden::what_ranks_map_beside_the_golden_build_is_told",
            "golden_gate::files_ranks_mapped_held_against_golden_build",
            "golden::a_manifest_that_was_edited_is_no_golden_build",
            "sampling_driver::a_node_with_another_file_under_the_same_name_is_noted",
            "node_failures::a_node_with_another_file_under_the_same_name_is_named",
            "sampling_driver::a_node_with_another_version_of_a_file_is_noted",
        ),
    ),
    Entry(
        *(46, "a part of a run that stands for the whole"),
        tests=(
            "cli_gate::the_last_run_is_one_that_has_what_is_compared",
            "cli_gate::what_the_run_before_lacks_is_named",
        ),
    ),
    Entry(
        *(47, "the same launches counted twice"),
        tests=(
            "series::a_copy_of_a_run_is_no_further_run",
            "cli_gate::earlier_screenings_are_finished_of_this_system_newest_first",
            "store::a_sample_that_was_pasted_twice_is_damage",
            "sampling::a_log_that_was_written_twice_is_damaged",
            "cli_compare::rows_that_were_pasted_twice_are_no_further_launches",
        ),
    ),
    Entry(
        *(48, "nodes that the scheduler has and the site config does not count"),
        tests=("attack_gate::what_nobody_measures_opens_no_gate_or_is_told",),
    ),
    Entry(
        *(49, "an exit status that is another command's"),
        tests=("cli_gate::script_reads_the_exit_status_of_the_command",),
    ),
    Entry(
        *(50, "what the machine is held against was slow already, or measured otherwise"),
        tests=(
            "cli_gate::a_second_call_does_not_open_what_stayed_closed",
            "cli_gate::run_after_a_closed_gate_is_no_standard",
            "cli_gate::the_last_run_is_the_newest_of_this_mode_and_system",
            "cli_gate::hpl_of_a_smaller_matrix_says_nothing_of_a_larger_one",
            "gating::what_the_last_screening_does_not_tell_an_earlier_one_does",
            "baselines::a_later_run_is_judged_by_the_baseline_as_a_group",
            "cli_gate::a_run_of_other_processors_is_no_run_to_compare_with",
            "cli_gate::the_last_run_is_one_that_nothing_disturbed",
        ),
    ),
    Entry(
        *(51, "slow ranks behind the average of all"),
        tests=("assembly::average_of_ranks_does_not_speak_for_the_slowest",),
    ),
    Entry(
        *(52, "much slower than before, within the noise or with too few launches"),
        tests=(
            "gating::slowdown_of_all_nodes_passes_within_noise",
            "cli_gate::last_run_judges_on_exclusive_nodes_alone",
        ),
    ),
    Entry(
        *(53, "nodes that the site keeps out, measured, or others than it names"),
        tests=(
            "job_options::nodes_that_access_excludes_stay_out_beside_those_left_out",
            "job_options::access_options_taken_last_by_sbatch_refused",
            "job_options::a_job_option_that_chooses_nodes_is_refused",
            "reframe::no_variable_sends_jobs_to_other_nodes",
        ),
    ),
    Entry(
        *(54, "figures of another day in the verdict of today"),
        tests=(
            "resuming::cases_of_another_day_are_no_pass_of_today",
            "resuming::what_this_node_measured_before_it_changed_runs_again",
            "screening_driver::a_screening_resumed_days_later_is_in_doubt",
        ),
    ),
    Entry(
        *(55, "a reference that is too low: a slipped point, bits for bytes, a slow baseline"),
        tests=(
            "disproof::a_whole_benchmark_that_slipped_is_told_and_opens_nothing",
            "disproof::value_far_beyond_a_measured_reference_proves_it_wrong",
            "cli_baseline::much_better_is_accepted_by_a_person_alone",
        ),
    ),
    Entry(
        *(56, "a clock that was wrong once, or runs of another home, in the order of runs"),
        tests=(
            "cli_baseline::a_run_that_is_dated_next_year_does_not_blind_history",
            "cli_baseline::five_runs_of_eight_minutes_are_no_baseline_of_years",
            "stored_runs::a_run_that_was_copied_from_another_home_is_not_the_newest",
            "stored_runs::files_tell_of_a_clock_that_was_years_behind",
            "stored_runs::launches_at_another_time_than_their_run_are_told",
        ),
    ),
    Entry(
        *(57, "an earlier gate's answer, in the name of a job that measured nothing"),
        tests=(
            "attack_pipelines::a_job_that_starts_nine_days_later_measures",
            "attack_pipelines::a_gate_that_was_killed_leaves_no_answer_of_an_earlier_one",
            "attack_pipelines::a_retry_after_a_repair_measures",
            "attack_pipelines::whoever_clicks_on_a_job_gets_a_measurement",
            "attack_pipelines::a_gate_that_was_asked_otherwise_is_no_answer",
            "attack_pipelines::a_gate_of_another_version_is_no_answer",
            "attack_pipelines::what_a_gate_was_refused_for_is_told_by_each_job",
            "attack_pipelines::could_not_judge_is_an_answer_and_no_answer_is_none",
            "attack_pipelines::the_answer_of_a_gate_says_when_it_was_measured",
        ),
    ),
    Entry(
        *(58, "a pipeline that measures nothing, or otherwise than it was asked"),
        tests=(
            "attack_pipelines::a_misspelt_run_fails_and_names_what_there_is",
            "attack_pipelines::a_baseline_of_another_branch_fails_and_says_so",
            "attack_pipelines::a_misspelt_stack_fails_in_each_job",
            "attack_pipelines::a_misspelt_system_fails_in_each_job",
            "attack_pipelines::options_on_a_second_line_count",
            "attack_pipelines::options_of_a_baseline_on_a_second_line_count",
            "attack_pipelines::merge_request_measured_where_full_disk_hides_changes",
        ),
    ),
    Entry(
        *(59, "a job of the same project beside a gate"),
        tests=("attack_pipelines::nothing_runs_beside_a_gate_on_its_system",),
    ),
    Entry(
        *(60, "a scheduler that answers late, otherwise or not at all"),
        tests=(
            "attack_gate::slurm_without_word_on_used_nodes_opens_no_gate",
            "attack_gate::slurm_is_asked_again_within_the_budget_alone",
            "switches::a_controller_that_does_not_answer_is_not_without_switches",
            "screening_campaign::unknown_switches_open_no_gate_where_they_could_be_slow",
        ),
    ),
    Entry(
        *(61, "what references or the last gate have, and this run lacks"),
        tests=(
            "attack_gate::foreseen_reference_without_a_case_opens_no_gate",
            "attack_gate::what_is_gone_since_the_last_gate_must_be_accepted",
        ),
    ),
    Entry(
        *(62, "a machine that creeps, and takes its baselines along"),
        tests=(
            "cli_baseline::a_machine_that_creeps_does_not_take_its_references_along",
            "cli_baseline::slower_state_accepted_with_a_reason_is_the_new_anchor",
            "cli_baseline::what_was_accepted_as_better_is_the_new_anchor",
            "cli_baseline::scattering_machine_keeps_its_anchor",
        ),
    ),
    Entry(
        *(63, "a stored case of wrong types, or a folder that is no run"),
        tests=(
            "attack_home::a_case_of_wrong_types_is_one_sentence_or_does_no_harm",
            "attack_home::prune_leaves_what_is_no_run",
            "attack_gate::a_gate_answers_beside_a_run_that_was_edited",
        ),
    ),
    Entry(
        *(64, "the outputs of two programs in one file"),
        tests=("attack_home::of_two_programs_in_one_file_none_is_dropped",),
    ),
    Entry(
        *(65, "a home in which others may replace what is measured, or that no job can name"),
        tests=(
            "home::a_home_that_all_may_write_is_refused",
            "home::home_of_another_user_refused_unless_shared",
            "home::a_home_whose_path_no_job_can_name_is_refused",
        ),
    ),
    Entry(
        *(66, "references that are lost without a word"),
        tests=(
            "home::references_behind_a_dangling_link_are_not_none",
            "home::references_that_hold_nothing_are_not_none",
            "home::a_twin_of_the_references_is_told",
        ),
    ),
    Entry(
        *(67, "a figure that no machine reaches, in an output that is only read"),
        tests=(
            "cli_parse::no_time_and_a_rate_that_no_machine_has_are_refused",
            "cli_parse::what_no_machine_reaches_is_refused_of_every_format",
        ),
    ),
    Entry(
        *(68, "a crash that is told as something else"),
        tests=(
            "attack_real::a_crash_is_told_as_a_crash",
            "node_failures::a_program_that_crashed_is_not_told_as_measuring_the_peaks",
        ),
    ),
    Entry(
        *(69, "another program in the place of a built one"),
        tests=(
            "attack_real::a_wrapper_in_the_place_of_a_built_program_is_not_believed",
            "builder::what_was_put_in_the_place_of_a_program_is_not_believed",
            "integrity::wrapper_in_place_of_a_program_refused",
        ),
    ),
    Entry(
        *(70, "a full disk or a closed stream after the verdict: status and files disagree"),
        tests=(
            "attack_streams::standard_error_that_takes_nothing_changes_no_status",
            "attack_streams::a_closed_standard_output_changes_no_status",
            "attack_streams::an_answer_that_cannot_be_told_is_no_verdict",
            "attack_streams::a_refusal_that_cannot_be_told_is_a_2",
            "attack_streams::a_gate_whose_page_is_lost_has_not_opened",
            "attack_streams::what_a_gate_could_not_print_is_not_in_its_files",
            "attack_streams::a_check_whose_reports_are_lost_is_a_2_and_shows_its_table",
            "attack_streams::what_a_check_could_not_print_is_not_in_its_files",
            "attack_streams::a_check_that_could_not_note_its_end_has_no_verdict",
            "attack_streams::a_screening_whose_page_is_lost_has_no_verdict",
        ),
    ),
    Entry(
        *(71, "a deletion of more than was meant"),
        tests=(
            "names::what_is_no_name_is_refused_and_nothing_is_lost",
            "names::several_golden_builds_go_only_when_that_is_confirmed",
            "names::make_clean_says_what_it_removes_and_asks",
            "names::a_folder_that_is_no_environment_is_not_replaced_by_one",
        ),
    ),
    Entry(
        *(72, "an option in disguise: a variable that srun, ReFrame or Python reads"),
        tests=(
            "attack_variables::no_option_of_sruns_reaches_a_launch_from_the_shell",
            "attack_variables::no_variable_of_reframes_fails_a_dry_run",
            "attack_variables::another_yaml_on_pythons_path_does_not_matter",
            "attack_variables::no_variable_of_pythons_keeps_the_command_from_running",
            "attack_variables::the_command_finds_its_python_wherever_it_is_installed",
            "attack_variables::a_command_without_python_says_so",
            "attack_variables::options_in_disguise_fail_no_case_and_are_named",
        ),
    ),
    Entry(
        *(73, "a contender whose variables changed nothing"),
        tests=(
            "ab::contender_with_variables_without_effect_refused",
            "ab_contenders::what_of_a_contender_had_no_effect_is_told",
            "ab_variables::what_open_mpi_does_not_list_is_unknown",
            "ab_variables::what_mpich_does_not_hold_is_unknown",
        ),
    ),
    Entry(
        *(74, "a recipe of Spack's that changed while its binary stayed"),
        tests=(
            "stacks_spack_locks::a_lock_of_another_recipe_is_told_and_a_new_one_is_made",
            "stacks_spack_locks::an_own_lock_of_another_recipe_is_made_anew",
            "stacks_spack_recipes::a_recipe_is_compared_with_the_hash_that_the_lock_has",
        ),
    ),
    Entry(
        *(75, "a health check that drains the cluster, or runs another account's program as root"),
        tests=(
            "attack_node::store_that_cannot_be_read_drains_nothing",
            "attack_node::root_runs_no_kernel_of_another_account",
            "attack_node::wrong_user_drains_nothing",
            "attack_node::error_of_the_suite_drains_nothing",
            "attack_node::read_only_file_system_is_no_fault",
            "attack_node::killed_leaves_no_kernel_behind",
            "attack_node::scheduler_is_asked_nothing",
            "node::state_of_a_node",
        ),
    ),
    Entry(
        *(76, "a figure, a promise or a case that drops out of the gate's contract"),
        tests=(
            "attack_gate::figure_that_drops_out_of_the_contract_opens_nothing",
            "attack_gate::promise_that_drops_out_of_the_contract_opens_nothing",
            "attack_gate::case_that_drops_out_of_the_contract_opens_nothing",
            "attack_gate::layout_that_is_not_run_opens_nothing",
            "attack_gate::job_that_launched_once_of_twice_fails",
            "cli_gate::fewer_launches_than_a_gate_makes_open_nothing",
            "fewer_nodes::what_does_not_follow_has_no_reference",
            "resuming::run_kept_whole_where_every_case_ended",
            "attack_gate::whole_that_drops_out_of_the_contract_opens_nothing",
            "gate_controls::more_knowledge_never_closes",
        ),
    ),
)


def listed() -> str:
    """Return what provokes each entry, as text."""
    lines = []
    for entry in ENTRIES:
        lines.append(f"{entry.number:2} {entry.name}")
        lines += [f"     attack  {name}" for name in entry.attacks]
        lines += [f"     test    {name}" for name in entry.tests]
    return "\n".join(lines)
