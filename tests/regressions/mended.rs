//! Every fault that was found by hand, by script and by attack, and was mended as a class: the tests that would fail if it came back.

use std::fs;
use std::path::Path;

/// A fault, and its tests: each a file and a name.
type Row = (&'static str, &'static [&'static str]);

const TABLE: &[Row] = &[
    (
        "slow uploads and idle connections of one worker lock everybody out",
        &[
            "tests/siege.rs::a_caller_that_is_slow_at_any_step_is_cut_off",
            "tests/siege.rs::files_that_come_slowly_are_bounded_for_each_run_and_hold_up_nobody",
            "tests/siege.rs::connections_that_ask_nothing_are_bounded_and_the_oldest_give_way",
            "tests/run_listeners.rs::a_run_that_holds_every_connection_it_can_leaves_descriptors_for_the_operator_and_for_neighbours",
        ],
    ),
    (
        "a worker that is throttled is not noted anywhere",
        &[
            "tests/siege.rs::a_worker_with_a_uid_of_its_own_is_told_of_in_its_tasks_events_when_it_floods_the_door",
            "tests/siege.rs::a_run_that_asks_too_often_is_told_to_wait_and_its_command_line_does",
        ],
    ),
    (
        "who is not known makes boards and learns their names",
        &[
            "tests/listeners.rs::who_is_not_known_learns_nothing_and_makes_nothing_on_any_path",
            "tests/listeners.rs::a_workers_token_names_its_board_and_no_other_is_spoken_of",
        ],
    ),
    (
        "two tenants with one request id get each other's replies",
        &[
            "tests/repeats.rs::workers_of_two_tenants_that_use_one_request_id_both_have_their_verdict_kept",
            "tests/repeats.rs::a_request_id_that_comes_with_another_body_is_refused",
            "tests/repeats.rs::the_repeat_of_the_verdict_that_ended_a_run_is_answered_and_nothing_else_is",
        ],
    ),
    (
        "a worker writes without end, and unread replies take all memory",
        &[
            "tests/bounds.rs::a_worker_that_writes_without_end_is_refused_with_the_bound_and_may_still_end_its_run",
            "kernel/src/board/charge_tests.rs::every_bound_refuses_what_goes_beyond_it_and_says_which_how_much_and_what_to_do",
            "tests/siege.rs::replies_that_nobody_reads_are_bounded_in_bytes",
            "tests/pages.rs::what_does_not_fit_into_a_reply_comes_in_pages_and_a_command_line_puts_them_together",
        ],
    ),
    (
        "the hold of one worker holds the tasks of every tenant",
        &[
            "kernel/src/board/hold_tests.rs::a_worker_holds_its_account_within_its_own_tenant_and_the_others_go_on",
            "kernel/src/board/hold_tests.rs::a_worker_of_a_lane_without_an_account_holds_its_task_alone",
            "kernel/src/board/hold_tests.rs::no_worker_holds_for_longer_than_the_limit",
            "tests/bounds.rs::an_operator_sees_which_run_holds_an_account_and_ends_it_and_other_tenants_go_on",
        ],
    ),
    (
        "a run whose ending breaks a limit leaves its task running",
        &[
            "kernel/src/board/end.rs::a_hundred_long_artifacts_that_are_lost_do_not_keep_a_run_from_its_end",
            "kernel/src/board/end.rs::an_artifact_beyond_the_limit_of_a_task_is_lost_and_said_and_the_run_ends",
            "kernel/src/store/end_tests.rs::a_run_whose_end_the_schema_refuses_ends_all_the_same_and_its_task_waits_for_a_person",
            "tests/attachments.rs::a_run_that_declares_more_than_can_be_kept_or_told_ends_and_says_what_is_lost",
        ],
    ),
    (
        "a task that nothing works on and that cannot end is not named",
        &[
            "tests/attachments.rs::a_run_whose_artifacts_nothing_can_keep_is_told_and_ends_without_them_when_it_is_taken_back",
        ],
    ),
    (
        "a task that can start waits behind tasks that cannot",
        &[
            "tests/turns.rs::what_can_start_does_behind_any_number_of_tasks_that_cannot",
            "kernel/src/board/admission_tests.rs::no_task_that_can_start_waits_while_a_slot_is_free_and_tenants_share_the_slots",
            "kernel/src/board/admission_tests.rs::what_cannot_start_is_not_read_however_much_there_is_of_it",
        ],
    ),
    (
        "a refused upload stays on disk",
        &[
            "tests/siege.rs::a_refused_file_leaves_nothing_behind",
            "kernel/src/blobs/mod.rs::what_is_sealed_has_no_name_until_it_is_published_and_is_gone_if_it_never_is",
        ],
    ),
    (
        "the root of a supervisor can be granted",
        &[
            "tests/walls.rs::no_workspace_holds_the_root_or_lies_in_it",
            "tests/walls.rs::a_grant_around_the_root_shows_everything_but_the_root",
            "tests/walls.rs::a_policy_that_grants_in_the_root_or_writing_around_it_is_refused_with_its_line",
            "supervisor/daemon/src/run/closed_paths.rs::configuration_and_runtime_directory_are_closed_wherever_they_are",
            "supervisor/daemon/src/run/closed_paths.rs::the_directories_of_other_tasks_are_closed_and_the_own_is_not",
            "policies/tests/confined/closed_paths.rs::a_second_name_of_a_root_is_covered_too",
        ],
    ),
    (
        "a FIFO that a worker plants stops git and dispatch for everybody",
        &[
            "tests/git.rs::a_fifo_in_a_repository_is_named_and_holds_up_nobody_elses_tasks",
            "tests/git.rs::a_fifo_that_git_does_not_wait_for_but_takes_for_something_else_is_named",
            "tests/git.rs::a_collection_passes_over_a_worktree_that_makes_git_wait",
            "supervisor/host/src/job/wait.rs::who_waits_for_a_fifo_is_ended_long_before_its_time_is_over",
        ],
    ),
    (
        "a socket in a granted directory is connected to",
        &[
            "tests/walls.rs::a_socket_beneath_opt_that_anybody_may_use_is_not_reached",
            "policies/tests/confined/closed_paths.rs::a_socket_in_a_granted_directory_cannot_be_connected_to",
        ],
    ),
    (
        "what a worker plants in a worktree runs when a person looks at it",
        &[
            "tests/plants.rs::nothing_that_a_worker_plants_in_a_worktree_runs_or_reaches_what_others_have",
            "tests/plants.rs::a_bare_repository_in_a_worktree_runs_only_for_who_runs_git_inside_it",
            "workspace/src/worktree/seal_tests.rs::what_ties_a_worktree_to_its_repository_is_read_as_git_reads_it",
            "workspace/src/worktree/seal_tests.rs::settings_of_a_worktree_are_restored_to_the_last_byte",
            "workspace/src/worktree/seal_tests.rs::a_repository_inside_a_worktree_is_out_of_gits_sight_and_is_kept",
            "workspace/src/worktree/seal_tests.rs::a_submodule_that_only_a_commit_or_nothing_names_is_out_of_sight_too",
            "workspace/src/worktree/seal_tests.rs::what_an_update_of_submodules_would_take_for_its_own_is_set_aside",
            "workspace/src/worktree/seal_tests.rs::no_mode_of_a_directory_hides_a_repository",
            "workspace/src/worktree/seal_tests.rs::what_cannot_be_made_safe_is_withheld_and_the_hint_releases_it",
        ],
    ),
    (
        "a worker changes the scheduling of its supervisor",
        &["policies/tests/confined/calls.rs::a_run_changes_the_scheduling_and_the_limits_of_itself_alone"],
    ),
    (
        "a set-user-id file stays in a shared directory",
        &[
            "tests/walls.rs::a_directory_that_others_use_gets_no_set_user_id_file",
            "policies/tests/confined/calls.rs::no_set_user_id_file_is_left_in_a_workspace",
        ],
    ),
    (
        "two roots of a host give out the same uids",
        &[
            "tests/survivors.rs::workers_of_two_roots_never_have_one_uid_and_the_end_of_one_leaves_the_other",
            "supervisor/host/src/uids.rs::two_roots_of_a_host_never_have_the_same_uids_even_where_one_is_a_copy",
            "supervisor/daemon/src/run/survivors.rs::what_carries_the_mark_is_ended_and_nothing_else",
        ],
    ),
    (
        "without a cgroup a killed shim leaves its tree, and a second copy starts beside it",
        &[
            "tests/survivors.rs::without_a_cgroup_a_killed_shim_takes_all_that_its_worker_started_along",
            "tests/survivors.rs::where_nothing_holds_them_together_survivors_are_shown_and_ended_before_the_task_runs_again",
            "tests/survivors.rs::every_stop_of_a_daemon_with_survivors_ends",
            "tests/stop.rs::a_stop_looks_for_survivors_without_a_configuration_that_can_be_used",
            "supervisor/daemon/src/owner/capacity.rs::a_run_of_which_nobody_knows_whether_it_lives_keeps_its_place_and_takes_no_slot",
        ],
    ),
    (
        "a write goes into a board whose file is gone",
        &[
            "tests/displaced.rs::without_its_file_a_board_refuses_writes_and_says_so_and_goes_on_when_it_is_back",
            "tests/displaced.rs::beside_another_file_in_its_place_a_board_refuses_writes",
            "tests/displaced.rs::a_board_that_is_cut_off_refuses_writes_and_status_says_so",
            "tests/displaced.rs::a_daemon_whose_board_is_gone_stops",
            "kernel/src/store/presence_tests.rs::nothing_is_acknowledged_into_a_log_that_was_removed",
        ],
    ),
    (
        "a broken environment burns the retries of its tasks",
        &[
            "tests/environments.rs::a_lane_whose_program_is_missing_holds_up_its_own_tasks_alone_and_goes_on_when_it_is_there",
            "tests/environments.rs::workspaces_that_cannot_be_made_hold_up_scratch_tasks_alone",
            "supervisor/daemon/src/owner/backoff_tests.rs::a_pause_ends_with_one_probe_and_with_everything_when_that_works",
        ],
    ),
    (
        "a shortage of the host is a failure of the task",
        &[
            "tests/shortages.rs::what_runs_out_under_the_daemon_in_a_start_costs_no_attempt",
            "tests/shortages.rs::what_runs_out_under_the_shim_in_a_start_costs_no_attempt",
            "tests/shortages.rs::what_runs_out_under_the_confinement_of_a_start_costs_no_attempt",
            "tests/shortages.rs::what_runs_out_where_a_shim_has_to_be_started_first_costs_no_attempt",
        ],
    ),
    (
        "a removed socket hides a live daemon",
        &[
            "tests/survivors.rs::sockets_that_somebody_removes_are_put_back_and_status_never_says_that_there_is_no_daemon",
            "tests/survivors.rs::a_daemon_whose_socket_cannot_be_put_back_is_named_by_status",
        ],
    ),
    (
        "a run whose directory is taken away is taken for dead",
        &[
            "tests/survivors.rs::a_run_whose_directory_was_taken_away_is_not_taken_for_dead",
            "tests/survivors.rs::a_run_that_ends_without_its_directory_is_lost_and_never_said_not_to_have_started",
            "tests/moved.rs::a_run_goes_on_under_the_next_daemon_of_a_root_that_was_moved",
        ],
    ),
    (
        "a run that ended while no daemon was there carries the time of its discovery",
        &[
            "kernel/src/board/schedule_tests.rs::a_run_that_ended_before_the_board_was_told_has_its_own_end_and_its_pause_counts_from_then",
            "supervisor/daemon/src/run/evidence_of_life.rs::the_end_of_a_run_is_that_of_its_record_also_where_the_clock_was_set_meanwhile",
        ],
    ),
    (
        "a clock that is set back prolongs a pause",
        &[
            "kernel/src/board/schedule_tests.rs::a_clock_that_is_set_back_makes_no_pause_longer",
            "kernel/src/board/schedule_tests.rs::a_clock_that_is_set_forward_makes_no_pause_shorter",
        ],
    ),
    (
        "limits of memory and processors are enforced nowhere, and nothing says so",
        &[
            "tests/limits.rs::a_policy_whose_limit_nothing_holds_is_named_and_its_tasks_wait_with_their_attempts",
            "supervisor/host/src/controllers.rs::a_daemon_alone_in_its_group_moves_into_a_leaf_and_hands_on_what_it_has",
            "policies/src/plan_tests.rs::a_limit_that_nothing_holds_is_refused_or_reported",
        ],
    ),
    (
        "a host that is too weak for a policy blocks the board",
        &[
            "policies/src/plan_tests.rs::an_old_landlock_fails_closed_unless_the_policy_says_otherwise",
            "policies/src/plan_tests.rs::no_network_never_becomes_all_of_it",
            "policies/src/plan_tests.rs::without_landlock_files_are_held_by_a_view_that_nothing_leads_out_of",
            "supervisor/setup/src/roster/tests.rs::a_policy_that_this_host_cannot_hold_is_named_with_what_it_lacks",
            "tests/container.rs::a_container_with_65536_ids_gives_its_workers_uids_that_it_has",
        ],
    ),
    (
        "dispatch opens the board anew for each task",
        &["tests/dispatch.rs::a_pass_opens_its_board_no_more_often_for_more_tasks"],
    ),
    (
        "the log of a board is never given back, and a daemon answers late",
        &[
            "kernel/src/store/snapshot.rs::a_writer_that_is_closed_gives_the_log_back_and_writes_no_more",
            "tests/durable.rs::after_a_clean_stop_a_board_is_served_at_once_and_checked_beside_that",
        ],
    ),
    (
        "a release carries debug information into every root",
        &["tests/house.rs::a_release_has_no_debug_information"],
    ),
    (
        "create accepts a parent that link refuses",
        &[
            "kernel/src/board/link.rs::nothing_waits_for_a_parent_that_was_archived_unfinished_by_create_as_by_link",
        ],
    ),
    (
        "a link to a child that has just started says what is not so",
        &[
            "tests/graph.rs::the_listing_of_the_specification_pasted_against_a_daemon_gives_the_graph_that_it_draws",
            "tests/graph.rs::a_child_at_work_is_taken_back_and_said_or_refused_with_the_way_out",
            "kernel/src/board/link.rs::a_child_that_was_started_a_moment_ago_is_taken_back_and_waits_and_no_failure_is_counted",
        ],
    ),
    (
        "a change acknowledges fields that it drops",
        &[
            "tests/edits.rs::a_change_over_the_api_keeps_each_field_or_refuses_it",
            "tests/edits.rs::an_edit_changes_what_runs_are_given_and_an_edit_of_nothing_is_refused",
            "tests/edits.rs::an_edit_at_a_terminal_opens_the_editor",
        ],
    ),
    (
        "a task waits for an approver that nobody can be",
        &[
            "tests/edits.rs::an_approver_that_nobody_can_be_is_refused_and_an_operator_overrides_that",
            "kernel/src/board/approval_tests.rs::a_person_overrides_an_approver_that_is_nobody_and_the_log_tells_whom",
        ],
    ),
    (
        "a dry run decides by rules of its own",
        &[
            "tests/turns.rs::a_dry_run_starts_what_the_pass_would_and_no_more",
            "tests/turns.rs::a_dry_run_beside_a_daemon_counts_what_runs",
        ],
    ),
    (
        "events lack keys",
        &["kernel/src/board/event_keys_tests.rs::every_kind_of_the_table_is_told_with_its_keys"],
    ),
    (
        "a claim by hand makes no workspace",
        &[
            "tests/claims.rs::a_claim_by_hand_makes_the_scratch_workspace_and_tells_its_path",
            "tests/claims.rs::a_directory_is_named_at_creation_and_a_missing_one_is_made_by_those_who_may",
            "tests/claims.rs::what_was_never_run_answers_as_what_was",
            "tests/claims.rs::a_block_for_a_dependency_that_is_not_linked_waits_for_a_person_and_says_so",
            "tests/help.rs::a_command_without_a_verb_prints_its_help",
        ],
    ),
    (
        "an import changes what it does not report",
        &[
            "kernel/src/store/adopt_tests.rs::ids_reviews_limits_and_heartbeats_are_kept_and_all_else_is_in_the_report",
            "kernel/src/store/adopt_tests.rs::the_established_programs_board_is_taken_over_with_its_ids_and_never_written_to",
        ],
    ),
    (
        "subscriptions outlive their task, and hints lead nowhere",
        &[
            "kernel/src/board/notify.rs::a_subscription_of_a_finished_task_is_not_listed",
            "supervisor/upkeep/src/doctor/boards.rs::what_cannot_be_repaired_is_told_what_can_help_and_never_the_repair",
            "tests/help.rs::the_way_out_that_a_refusal_names_leads_out",
            "tests/help.rs::a_refusal_names_a_way_out_of_the_status_in_which_the_task_is",
            "supervisor/src/cli/hint_tests.rs::every_command_that_a_message_names_is_taken",
            "tests/gc.rs::a_worktree_with_work_goes_with_its_task_where_the_work_is_given_up",
        ],
    ),
    (
        "a flag changes nothing and says nothing",
        &[
            "tests/flags.rs::every_flag_of_every_verb_has_a_row_and_every_row_a_flag",
            "tests/flags.rs::the_flags_of_verbs_from_a_to_b_change_what_is_seen",
            "tests/flags.rs::the_flags_of_verbs_from_c_to_d_change_what_is_seen",
            "tests/flags.rs::the_flags_of_verbs_from_e_to_m_change_what_is_seen",
            "tests/flags.rs::the_flags_of_verbs_from_n_to_z_change_what_is_seen",
            "supervisor/src/cli/ignored_flags.rs::every_flag_that_changes_nothing_is_warned_of_and_no_other",
        ],
    ),
    (
        "a stop does something else than it says",
        &[
            "tests/stop.rs::leaving_the_workers_is_possible_during_a_drain_and_each_answer_says_what_happens",
            "tests/stop.rs::an_interrupted_daemon_says_at_once_what_it_waits_for_and_what_the_next_interrupt_does",
        ],
    ),
    (
        "a worker that is taken over keeps a port that is gone",
        &[
            "tests/loopback.rs::a_worker_that_the_next_daemon_takes_over_tells_the_board_over_loopback_that_it_is_done",
            "supervisor/api/src/listeners/bind.rs::the_next_daemon_has_the_port_of_the_last_one_unless_somebody_else_has_it",
        ],
    ),
    (
        "the status of a tenant counts the whole board, and cuts what waits",
        &["tests/turns.rs::the_status_of_a_tenant_tells_of_nothing_else"],
    ),
    (
        "one bad file makes everything fail",
        &[
            "tests/defects.rs::a_bad_file_is_told_with_its_place_and_disables_nothing_else_with_and_without_a_daemon",
            "tests/defects.rs::a_task_waits_for_a_bad_lane_or_policy_and_runs_once_the_file_is_good",
            "tests/defects.rs::a_reload_of_a_bad_file_keeps_the_last_good_version_and_says_so",
            "tests/defects.rs::the_tasks_of_a_tenant_with_a_bad_file_wait_and_nobody_elses",
            "tests/defects.rs::a_file_that_is_no_text_disables_what_it_defines_in_every_directory",
        ],
    ),
    (
        "a policy that extends loses what it does not name",
        &[
            "policies/src/loading.rs::the_whole_chain_is_merged",
            "policies/src/loading.rs::a_chain_that_comes_back_to_itself_is_an_error_that_names_it",
        ],
    ),
    (
        "a preset grants what is another tenant's",
        &[
            "tests/walls.rs::tenants_beneath_opt_do_not_read_each_others_files",
            "policies/src/plan_tests.rs::no_shipped_policy_shows_a_root_or_a_tasks_directory_beneath_what_it_grants",
        ],
    ),
    (
        "nothing says that the sandbox denied something",
        &[
            "tests/walls.rs::a_program_that_the_policy_does_not_grant_is_named_with_the_line_that_grants_it",
            "tests/denials.rs::a_run_that_was_denied_something_works_with_the_line_that_is_named",
            "tests/denials.rs::what_no_policy_allows_is_told_so_and_never_with_a_line_that_changes_nothing",
            "tests/walls.rs::the_path_of_a_policy_is_the_workers_and_its_user_has_a_name",
            "tests/walls.rs::a_server_and_its_client_talk_in_the_policy_for_tests",
            "tests/walls.rs::the_cargo_of_a_home_builds_something_where_a_policy_grants_it_by_name",
            "tests/walls.rs::a_java_runs_or_its_failure_names_the_line_with_which_it_does",
            "kernel/src/board/diagnose_tests.rs::what_a_sandbox_denied_is_told_with_the_first_failure_until_the_next_run_ends_otherwise",
            "policies/src/loading.rs::a_name_that_is_not_the_files_is_refused",
            "policies/src/loading.rs::a_grant_of_everything_is_refused_by_its_key",
        ],
    ),
    (
        "git complains at every commit in a worktree",
        &[
            "tests/plants.rs::nothing_that_a_worker_plants_in_a_worktree_runs_or_reaches_what_others_have",
            "tests/plants.rs::a_worker_tags_and_stashes_and_finds_both_again",
        ],
    ),
    (
        "an unknown place in a lane is passed on as text",
        &["supervisor/setup/src/lanes/template.rs::an_unknown_place_is_named_with_the_known_ones"],
    ),
    (
        "the tour of the README fails where it is pasted",
        &[
            "tests/docs.rs::the_tour_of_the_readme_works_for_root_wherever_it_is_pasted",
            "tests/docs.rs::the_tour_of_the_readme_works_for_an_ordinary_user_wherever_it_is_pasted",
        ],
    ),
    (
        "times ignore the zone of the reader",
        &[
            "tests/words.rs::times_are_shown_in_the_zone_of_the_reader_with_the_offset",
            "tests/words.rs::a_local_time_is_the_callers_whatever_zone_the_daemon_has",
        ],
    ),
    (
        "a worktree forgets its branch, and an archived task leaves its directory",
        &[
            "tests/git.rs::a_named_branch_is_where_each_run_starts_from",
            "tests/git.rs::a_directory_and_one_inside_it_are_not_worked_in_at_once",
            "tests/git.rs::a_submodule_says_why_it_is_no_repository_for_worktrees",
            "tests/gc.rs::the_scratch_of_a_task_goes_when_it_is_archived_and_what_it_handed_over_stays",
            "tests/gc.rs::a_deleted_task_leaves_no_worktree_and_no_branch_and_one_with_work_is_refused",
        ],
    ),
    (
        "a closed root fails every task, and a command waits for a stopped daemon",
        &[
            "supervisor/base/src/paths/making.rs::a_root_that_workers_cannot_go_through_is_refused_with_the_way_out",
            "tests/hangs.rs::a_stopped_daemon_is_named_and_no_command_waits_for_it",
        ],
    ),
    (
        "a refusal of the API is no document, or has the wrong status",
        &[
            "tests/listeners.rs::every_route_refuses_what_does_not_fit_with_a_document_of_the_right_status",
            "tests/listeners.rs::a_bearer_token_is_read_in_any_case_and_anything_else_in_its_place_is_refused",
            "kernel/src/board/approval_tests.rs::a_person_who_has_the_name_of_a_profile_is_somebody_else_than_its_worker",
            "kernel/src/board/review_tests.rs::nobody_approves_or_completes_or_judges_their_own_work",
        ],
    ),
    (
        "text of others drives the terminal, and a tip does not help",
        &[
            "tests/words.rs::no_text_of_others_drives_or_misleads_the_terminal",
            "tests/words.rs::a_refused_command_line_gives_advice_that_works",
            "tests/words.rs::a_time_that_is_over_is_refused_or_warned_of_and_nothing_is_taken_that_means_nothing",
            "tests/words.rs::an_empty_environment_variable_is_one_that_is_not_set",
        ],
    ),
    (
        "hostile workers delay their neighbours",
        &[
            "tests/siege.rs::hostile_workers_that_try_everything_at_once_delay_neither_a_neighbour_nor_the_operator",
        ],
    ),
];

#[test]
fn every_fault_that_was_mended_has_tests_that_exist() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (fault, tests) in TABLE {
        assert!(!tests.is_empty(), "{fault}");
        for test in *tests {
            let (file, name) = test.rsplit_once("::").unwrap();
            let text = fs::read_to_string(house.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let head = format!("fn {name}(");
            let is_test = lines.windows(2).any(|pair| pair[0] == "#[test]" && pair[1].contains(&head));
            assert!(is_test, "{fault}: no test {name} in {file}");
        }
    }
}
