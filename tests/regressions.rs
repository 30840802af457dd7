//! Every weak point that was measured at the established program, and the test that would fail if this one had it.
//!
//! The table is the list; what no other file shows is shown in the files beside it. The speed of the established program is
//! compared by the benchmark `speed`, not by tests.

use std::fs;
use std::path::Path;

mod files;
mod lives;
mod mended;
mod turns;
mod writes;

/// A weak point, the file of a test, and its name.
type Row = (&'static str, &'static str, &'static str);

const TABLE: &[Row] = &[
    // Writes and boards that get lost.
    (
        "a write is lost when another program closes the board",
        "tests/regressions/writes.rs",
        "what_is_created_beside_a_pass_is_there_also_where_others_open_and_close_the_board",
    ),
    (
        "a write is lost when another program closes the board",
        "kernel/src/rivals_tests.rs",
        "processes_that_open_close_and_die_lose_nothing_that_another_was_told",
    ),
    (
        "a write that was made is reported as failed",
        "tests/regressions/writes.rs",
        "sixteen_programs_create_at_once_and_each_task_is_there_once",
    ),
    (
        "a damaged board has no way back",
        "tests/durable.rs",
        "doctor_names_what_is_damaged_and_repair_keeps_the_evidence",
    ),
    // Exit statuses.
    (
        "exit statuses of many are lost",
        "tests/regressions/lives.rs",
        "forty_workers_that_end_at_once_are_each_known_by_their_own_exit_code",
    ),
    (
        "rate limits count as crashes",
        "tests/regressions/lives.rs",
        "forty_workers_that_a_service_limits_at_once_are_none_of_them_crashed",
    ),
    (
        "rate limits count as crashes",
        "kernel/src/board/tests.rs",
        "endings_that_are_not_the_workers_fault_are_not_counted",
    ),
    (
        "a dispatcher that is not the parent knows no exit code",
        "tests/stop.rs",
        "a_killed_daemon_is_followed_by_one_that_finishes_what_ended_meanwhile",
    ),
    // Processes.
    (
        "a process that has the number of a worker is taken for it and killed",
        "tests/regressions/lives.rs",
        "a_process_that_a_run_is_mistaken_for_is_never_signalled",
    ),
    (
        "a grandchild outlives a reclaim",
        "tests/stop.rs",
        "a_reclaimed_worker_is_gone_with_its_children_before_the_task_is_ready_again",
    ),
    ("a worker outlives the archival", "tests/stop.rs", "archiving_a_running_task_ends_its_worker_first"),
    (
        "a worker outlives its completion by a person",
        "tests/stop.rs",
        "a_person_may_complete_a_running_task_and_its_worker_is_ended_first",
    ),
    (
        "a worker outlives a block",
        "tests/regressions/lives.rs",
        "a_task_that_is_blocked_and_let_go_under_its_worker_never_has_two",
    ),
    (
        "a worker outlives a deletion",
        "tests/regressions/lives.rs",
        "a_running_task_is_not_deleted_under_its_worker",
    ),
    (
        "two workers in one workspace after block and unblock",
        "tests/regressions/lives.rs",
        "a_task_that_is_blocked_and_let_go_under_its_worker_never_has_two",
    ),
    (
        "a worker whose number was not written down is started twice",
        "tests/crash.rs",
        "a_daemon_that_dies_at_any_named_point_loses_nothing_and_repeats_nothing",
    ),
    (
        "another host name starts a second worker",
        "tests/regressions/lives.rs",
        "another_host_name_changes_nothing_for_a_worker_that_lives",
    ),
    (
        "a retry inherits an old heartbeat",
        "kernel/src/board/tests.rs",
        "an_attempt_does_not_inherit_the_heartbeat_of_the_one_before",
    ),
    (
        "stubborn overrunners hold up the dispatcher",
        "tests/regressions/turns.rs",
        "four_workers_that_ignore_their_deadline_hold_up_nobody",
    ),
    (
        "an instant failure is noticed by a tick",
        "tests/worker.rs",
        "exit_0_completes_with_the_tail_of_the_output_and_anything_else_is_a_crash_that_is_retried",
    ),
    ("there are ticks", "tests/processes.rs", "an_idle_daemon_does_not_wake_up_by_itself"),
    // Scheduling.
    ("limits are counted wrong", "tests/regressions/turns.rs", "six_of_ten_slots_that_are_taken_leave_four"),
    (
        "limits are counted wrong",
        "supervisor/daemon/src/owner/capacity.rs",
        "the_total_cap_counts_what_runs_and_what_was_just_admitted",
    ),
    (
        "a lasting spawn error leaves a task ready without an end",
        "tests/regressions/turns.rs",
        "a_task_that_can_never_start_is_blocked_with_the_reason_after_its_attempts",
    ),
    (
        "words in errors and comments hold a task",
        "tests/regressions/turns.rs",
        "no_word_in_an_error_or_a_comment_holds_a_task",
    ),
    (
        "a task that was created blocked runs",
        "tests/regressions/turns.rs",
        "a_task_that_is_created_blocked_waits_for_a_person",
    ),
    (
        "the failure limit does not hold for crashes",
        "tests/regressions/turns.rs",
        "crashes_count_to_the_limit_and_are_given_up_once",
    ),
    (
        "the failure limit does not hold for crashes",
        "kernel/src/board/tests.rs",
        "the_breaker_blocks_after_the_limit_and_stays_shut",
    ),
    (
        "one idempotency key makes several tasks",
        "kernel/src/rivals_tests.rs",
        "sixty_four_creators_with_one_key_make_one_task",
    ),
    ("nothing wakes what is scheduled", "tests/board.rs", "a_scheduled_task_runs_when_its_moment_has_come"),
    // Logs, damage, confinement.
    ("a log has no limit within a run", "tests/processes.rs", "a_flood_of_output_is_cut_and_holds_up_nobody"),
    ("the logs of runs are mixed up", "tests/regressions/files.rs", "each_run_has_a_log_of_its_own"),
    (
        "a task id leads out of the logs",
        "tests/regressions/files.rs",
        "no_id_leads_out_of_the_directory_of_the_logs",
    ),
    (
        "a board that is gone is replaced by an empty one, and errors exit with 0",
        "tests/unhappy.rs",
        "a_board_file_that_is_not_what_it_was_is_named_and_never_replaced",
    ),
    (
        "one bad value takes every command down",
        "kernel/src/store/open_tests.rs",
        "a_bad_value_in_one_row_is_told_and_the_other_rows_can_be_used",
    ),
    (
        "a worker has the operator's environment",
        "tests/worker.rs",
        "a_worker_is_told_who_it_is_and_nothing_of_what_the_operator_has",
    ),
    (
        "a worker can write to the board",
        "tests/regressions/files.rs",
        "a_worker_neither_reads_nor_writes_the_board_and_its_run_directory",
    ),
];

#[test]
fn every_weak_point_has_a_test_that_exists() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (weakness, file, name) in TABLE {
        let text = fs::read_to_string(house.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let head = format!("#[test]\nfn {name}(");
        let indented = format!("#[test]\n    fn {name}(");
        assert!(text.contains(&head) || text.contains(&indented), "{weakness}: no test {name} in {file}");
    }
}
