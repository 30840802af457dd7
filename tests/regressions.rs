//! Every weak point that was measured at the established program, and the test that would fail if this one had it.
//!
//! The table is the list; what no other file shows is shown here. The speed of the established program is compared by the
//! benchmark `speed`, not by tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{BINARY, Fleet, User, skip};
use crate::journal::{Attempts, Journal, PATIENT, nothing_is_left, of_task, outcomes, records};

/// A weak point, the file of a test, and its name.
type Row = (&'static str, &'static str, &'static str);

const TABLE: &[Row] = &[
    // Writes and boards that get lost.
    (
        "a write is lost when another program closes the board",
        "tests/regressions.rs",
        "what_is_created_beside_a_pass_is_there_whoever_opens_and_closes_the_board",
    ),
    (
        "a write is lost when another program closes the board",
        "kernel/src/rivals_tests.rs",
        "processes_that_open_close_and_die_lose_nothing_that_another_was_told",
    ),
    (
        "a write that was made is reported as failed",
        "tests/regressions.rs",
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
        "tests/regressions.rs",
        "forty_workers_that_end_at_once_are_each_known_by_their_own_exit_code",
    ),
    (
        "rate limits count as crashes",
        "tests/regressions.rs",
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
        "tests/regressions.rs",
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
        "tests/regressions.rs",
        "a_task_that_is_blocked_and_let_go_under_its_worker_never_has_two",
    ),
    (
        "a worker outlives a deletion",
        "tests/regressions.rs",
        "a_running_task_is_not_deleted_under_its_worker",
    ),
    (
        "two workers in one workspace after block and unblock",
        "tests/regressions.rs",
        "a_task_that_is_blocked_and_let_go_under_its_worker_never_has_two",
    ),
    (
        "a worker whose number was not written down is started twice",
        "tests/crash.rs",
        "a_daemon_that_dies_at_any_named_point_loses_nothing_and_repeats_nothing",
    ),
    (
        "another host name starts a second worker",
        "tests/regressions.rs",
        "another_host_name_changes_nothing_for_a_worker_that_lives",
    ),
    (
        "a retry inherits an old heartbeat",
        "kernel/src/board/tests.rs",
        "an_attempt_does_not_inherit_the_heartbeat_of_the_one_before",
    ),
    (
        "stubborn overrunners hold up the dispatcher",
        "tests/regressions.rs",
        "four_workers_that_ignore_their_deadline_hold_up_nobody",
    ),
    (
        "an instant failure is noticed by a tick",
        "tests/worker.rs",
        "exit_0_completes_with_the_tail_of_the_output_and_anything_else_is_a_crash_that_is_retried",
    ),
    ("there are ticks", "tests/processes.rs", "an_idle_daemon_does_not_wake_up_by_itself"),
    // Scheduling.
    ("limits are counted wrong", "tests/regressions.rs", "six_of_ten_slots_that_are_taken_leave_four"),
    (
        "limits are counted wrong",
        "supervisor/src/daemon/room.rs",
        "the_total_cap_counts_what_runs_and_what_was_just_admitted",
    ),
    (
        "a lasting spawn error leaves a task ready for ever",
        "tests/regressions.rs",
        "a_task_that_can_never_start_is_blocked_with_the_reason_after_its_attempts",
    ),
    (
        "words in errors and comments hold a task",
        "tests/regressions.rs",
        "no_word_in_an_error_or_a_comment_holds_a_task",
    ),
    (
        "a task that was created blocked runs",
        "tests/regressions.rs",
        "a_task_that_is_created_blocked_waits_for_a_person",
    ),
    (
        "the failure limit does not hold for crashes",
        "tests/regressions.rs",
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
    ("the logs of runs are mixed up", "tests/regressions.rs", "each_run_has_a_log_of_its_own"),
    (
        "a task id leads out of the logs",
        "tests/regressions.rs",
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
        "tests/regressions.rs",
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

fn titles(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.json(["list", "--limit", "1000"]);
    listed.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_created_beside_a_pass_is_there_whoever_opens_and_closes_the_board() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 2, "");
    let first = fleet.create("runs", &Journal::script(PATIENT), &[]);
    let pass = fleet.command(["dispatch", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    fleet.eventually("the pass has a worker", || (journal.begun() == 1).then_some(()));
    let mut created = Vec::new();
    for n in 0..8 {
        let title = format!("beside {n}");
        fleet.json(["create", &title]);
        created.push(title);
        // Each opens and closes the board, some of them without asking the pass.
        fleet.cli(["list"]).ok();
        fleet.cli(["doctor", "--replay"]).ok();
        fleet.cli(["backup", "--force", "copy.db"]).ok();
    }
    let board = fleet.root().join("boards/default");
    let open = fs::read_dir(format!("/proc/{}/fd", pass.id())).unwrap().flatten();
    let deleted = open
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|path| path.starts_with(&board) && path.to_string_lossy().ends_with("(deleted)"));
    assert_eq!(deleted.collect::<Vec<PathBuf>>(), Vec::<PathBuf>::new());
    journal.let_go();
    assert!(pass.wait_with_output().unwrap().status.success());

    let titles = titles(&fleet);
    for title in created {
        assert!(titles.contains(&title), "{title} is lost");
    }
    assert_eq!(fleet.status_of(&first), "done");
    assert_eq!(fleet.json(["doctor", "--replay"])["ok"], true);
}

#[test]
fn sixteen_programs_create_at_once_and_each_task_is_there_once() {
    let fleet = Fleet::boot();
    std::thread::scope(|scope| {
        for program in 0..16 {
            let fleet = &fleet;
            scope.spawn(move || {
                for n in 0..5 {
                    fleet.json(["create", &format!("{program}.{n}")]);
                }
            });
        }
    });
    let titles = titles(&fleet);
    assert_eq!((titles.len(), titles.iter().collect::<BTreeSet<_>>().len()), (80, 80));
}

/// Runs forty workers that end at the same moment, and returns each task with the code that it ended with.
fn forty_that_end(fleet: &Fleet, code: fn(i64) -> i64) -> Vec<(String, i64)> {
    let journal = Journal::of(fleet, 40, "");
    fleet.start();
    let tasks = (0..40).map(|n| {
        let script = Journal::script(&format!("{PATIENT}; exit {}", code(n)));
        (fleet.create("ends", &script, &["--max-retries", "1"]), code(n))
    });
    let tasks = tasks.collect();
    fleet.eventually("all of them run", || (journal.begun() == 40).then_some(()));
    journal.let_go();
    tasks
}

#[test]
fn forty_workers_that_end_at_once_are_each_known_by_their_own_exit_code() {
    let fleet = Fleet::offline();
    for (task, code) in forty_that_end(&fleet, |n| 100 + n) {
        let shown = fleet.wait_for(&task, "blocked");
        let run = &shown["runs"][0];
        assert_eq!((&run["exit_code"], &run["signal"]), (&json!(code), &json!(null)), "{shown:#}");
    }
}

#[test]
fn forty_workers_that_a_service_limits_at_once_are_none_of_them_crashed() {
    let fleet = Fleet::offline();
    for (task, _) in forty_that_end(&fleet, |_| 75) {
        let shown = fleet.eventually("its run has ended", || {
            let shown = fleet.show(&task);
            shown["runs"][0]["ended_at"].is_i64().then_some(shown)
        });
        assert_eq!(outcomes(&shown)[0], "rate_limited", "{shown:#}");
        assert_eq!(shown["task"]["consecutive_failures"], 0, "{shown:#}");
    }
}

#[test]
fn a_process_that_a_run_is_mistaken_for_is_never_signalled() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 2, "");
    let task = fleet.create("runs", &Journal::script(PATIENT), &[]);
    fleet.start();
    let (dir, record) = fleet.eventually("the run has begun", || {
        let begun = journal.begun() == 1 && !records(&fleet, "started").is_empty();
        begun.then(|| records(&fleet, "pid").pop()).flatten()
    });
    fleet.kill_daemon();
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let mut mistaken = record.clone();
    mistaken["pid"] = bystander.id().into();
    fs::write(dir.join("pid"), mistaken.to_string()).unwrap();

    fleet.start();
    fleet.cli(["reclaim", &task]).ok();
    // The shim has the lock, so its run lives, whoever has the number.
    fleet.eventually("status says that the shim is not who it should be", || {
        let status = fleet.json(["status"]);
        let note = status["workers"][0]["note"].as_str()?.to_owned();
        note.contains("cannot be watched").then_some(())
    });
    assert_eq!(fleet.status_of(&task), "running");
    assert_eq!(journal.begun(), 1);
    journal.let_go();
    fleet.eventually("the run has ended", || {
        let shown = fleet.show(&task);
        shown["runs"][0]["ended_at"].is_i64().then_some(())
    });

    assert_eq!(bystander.try_wait().unwrap(), None, "somebody else was signalled");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    fleet.wait_for(&task, "done");
    nothing_is_left(&fleet);
}

#[test]
fn a_task_that_is_blocked_and_let_go_under_its_worker_never_has_two() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "grace = 1\n");
    fleet.start();
    let stubborn =
        "if [ ! -e again ]; then touch again; trap '' TERM; say stubborn; while :; do sleep 0.05; done; fi";
    let task = fleet.create("stubborn", &Journal::script(stubborn), &[]);
    let is_stubborn = || journal.lines().iter().any(|line| line.what == "stubborn");
    fleet.eventually("it runs and will not go", || is_stubborn().then_some(()));

    fleet.cli(["block", &task, "wait a moment"]).ok();
    // Its worker has a second to go; whoever is too early is refused.
    fleet.eventually("it can be let go", || (fleet.cli(["unblock", &task]).code == 0).then_some(()));
    fleet.cli(["dispatch"]).ok();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!(outcomes(&shown).last(), Some(&"completed"), "{shown:#}");
    let lines: Vec<String> = journal.lines().into_iter().map(|line| line.what).collect();
    // The second would have met the first in its workspace.
    assert_eq!(lines, ["start", "stubborn", "start", "end"]);
    nothing_is_left(&fleet);
}

#[test]
fn a_running_task_is_not_deleted_under_its_worker() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "grace = 1\n");
    fleet.start();
    let task = fleet.create("runs", &Journal::script(PATIENT), &[]);
    fleet.eventually("it runs", || (journal.begun() == 1).then_some(()));

    let refused = fleet.cli(["archive", "--rm", &task]);

    assert_ne!(refused.code, 0);
    assert_eq!(fleet.status_of(&task), "running");
    fleet.cli(["archive", &task]).ok();
    fleet.wait_for(&task, "archived");
    assert!(fleet.processes_with(&of_task(&task)).is_empty());
    fleet.cli(["archive", "--rm", &task]).ok();
    fleet.cli(["show", &task]).refused(3, &task);
}

#[test]
fn another_host_name_changes_nothing_for_a_worker_that_lives() {
    if User::current() != User::Root {
        return skip("another host name: needs root");
    }
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    let task = fleet.create("runs", &Journal::script(PATIENT), &[]);
    fleet.start();
    fleet.eventually("it runs", || (journal.begun() == 1).then_some(()));
    fleet.kill_daemon();
    let before = fleet.log().len();
    let log = fs::File::options().append(true).open(fleet.log_file()).unwrap();
    let mut command = Command::new("unshare");
    let script = "hostname another-name && exec \"$0\" --root \"$1\" daemon";
    command.args(["--uts", "sh", "-c", script, BINARY]).arg(fleet.root());
    fleet.dress(&mut command);
    command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "info");
    fleet.adopt(command.spawn().unwrap());
    fleet.eventually("the daemon serves", || fleet.log()[before..].contains(" serves ").then_some(()));

    assert_eq!(fleet.status_of(&task), "running");
    journal.let_go();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!(outcomes(&shown), ["completed"]);
    journal.audit(&fleet, &[task], Attempts::One);
    nothing_is_left(&fleet);
}

#[test]
fn four_workers_that_ignore_their_deadline_hold_up_nobody() {
    let fleet = Fleet::offline();
    // They are asked to end, and have all the time that this test takes.
    let journal = Journal::of(&fleet, 8, "grace = 600\n");
    fleet.start();
    let stubborn = "trap 'say asked' TERM; while [ ! -e \"${JOURNAL%/*}/go\" ]; do sleep 0.05; done; exit 1";
    let script = Journal::script(stubborn);
    let tasks: Vec<String> = (0..4)
        .map(|_| fleet.create("stubborn", &script, &["--max-runtime", "3", "--max-retries", "1"]))
        .collect();
    fleet.eventually("all four are asked to end", || {
        let lines = journal.lines();
        let asked: BTreeSet<&str> =
            lines.iter().filter(|line| line.what == "asked").map(|line| line.task.as_str()).collect();
        (asked.len() == 4).then_some(())
    });

    let other = fleet.create("others", "echo meanwhile", &[]);

    assert_eq!(fleet.wait_for(&other, "done")["latest_summary"], "meanwhile");
    for task in &tasks {
        assert_eq!(fleet.status_of(task), "running", "its worker has not ended");
    }
    journal.let_go();
    for task in &tasks {
        assert_eq!(outcomes(&fleet.wait_for(task, "blocked")), ["timed_out"]);
    }
}

#[test]
fn six_of_ten_slots_that_are_taken_leave_four() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 10, "");
    fleet.start();
    let create =
        |count: usize| (0..count).for_each(|_| drop(fleet.create("slot", &Journal::script(PATIENT), &[])));
    create(6);
    fleet.eventually("six run", || (journal.begun() == 6).then_some(()));

    create(6);

    fleet.eventually("ten run", || (journal.begun() == 10).then_some(()));
    let waiting = fleet.eventually("two say that they wait for a slot", || {
        let status = fleet.json(["status"]);
        let waiting = status["waiting"].as_array()?.clone();
        let says = |one: &Value| one["why"]["text"].as_str().is_some_and(|why| why.contains("10 of 10"));
        (waiting.len() == 2 && waiting.iter().all(says)).then_some(waiting.len())
    });
    assert_eq!((waiting, journal.begun()), (2, 10));
    journal.let_go();
    fleet.eventually("all are done", || {
        (fleet.json(["stats"])["by_status"] == json!({ "done": 12 })).then_some(())
    });
}

#[test]
fn a_task_that_can_never_start_is_blocked_with_the_reason_after_its_attempts() {
    let fleet = Fleet::offline();
    fleet.lane("broken", "argv = [\"{workspace}/not-there\"]\n");
    fleet.start();
    let task = fleet.json(["create", "x", "--assignee", "broken", "--max-retries", "2"]);
    let task = task["id"].as_str().unwrap();

    let shown = fleet.wait_for(task, "blocked");

    assert_eq!(outcomes(&shown), ["spawn_failed", "spawn_failed"], "{shown:#}");
    assert_eq!(shown["task"]["block_kind"], "gave_up");
    assert!(shown["runs"][1]["error"].as_str().unwrap().contains("not-there"), "{shown:#}");
}

#[test]
fn no_word_in_an_error_or_a_comment_holds_a_task() {
    let fleet = Fleet::boot();
    let says = "pid 429 not alive: Permission denied; the author hit a rate limit, quota exceeded, 401";
    let script = format!("[ -e again ] && exec echo through; touch again; echo '{says}' >&2; exit 1");
    let task = fleet.create("wordy", &script, &["--initial-status", "blocked"]);
    for text in [says, "see https://github.com/acme/widgets/pull/429 and its author"] {
        fleet.cli(["comment", &task, text]).ok();
    }
    fleet.cli(["unblock", &task]).ok();
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(outcomes(&shown), ["crashed", "completed"], "{shown:#}");
}

#[test]
fn a_task_that_is_created_blocked_waits_for_a_person() {
    let fleet = Fleet::offline();
    let task = fleet.create("gate", "echo through", &["--initial-status", "blocked"]);
    fleet.cli(["dispatch"]).ok();
    fleet.start();
    // Whatever is ready when this one is made has been started before the next one ends.
    let other = fleet.create("other", "true", &[]);
    fleet.wait_for(&other, "done");
    fleet.cli(["dispatch"]).ok();
    let shown = fleet.show(&task);
    assert_eq!((&shown["task"]["status"], &shown["runs"]), (&json!("blocked"), &json!([])), "{shown:#}");

    fleet.cli(["unblock", &task]).ok();

    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "through");
}

#[test]
fn crashes_count_to_the_limit_and_are_given_up_once() {
    let fleet = Fleet::boot();
    for limit in [1, 2] {
        let task = fleet.create("crashes", "exit 1", &["--max-retries", &limit.to_string()]);
        fleet.wait_for(&task, "blocked");
        fleet.cli(["dispatch"]).ok();
        let shown = fleet.show(&task);
        assert_eq!(outcomes(&shown), vec!["crashed"; limit], "{shown:#}");
        let events = shown["events"].as_array().unwrap();
        assert_eq!(events.iter().filter(|event| event["kind"] == "gave_up").count(), 1, "{shown:#}");
        assert_eq!(shown["task"]["status"], "blocked");
    }
}

#[test]
fn each_run_has_a_log_of_its_own() {
    let fleet = Fleet::boot();
    let script = "[ -e again ] && exec echo the second; touch again; echo the first; exit 1";
    let task = fleet.create("twice", script, &[]);
    let shown = fleet.wait_for(&task, "done");
    let logs: Vec<String> = shown["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| fs::read_to_string(run["log_path"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(logs.len(), 2);
    assert!(logs[0].contains("the first") && !logs[0].contains("the second"), "{logs:?}");
    assert!(logs[1].contains("the second") && !logs[1].contains("the first"), "{logs:?}");
}

#[test]
fn no_id_leads_out_of_the_directory_of_the_logs() {
    let fleet = Fleet::boot();
    fs::write(fleet.root().join("secret.log"), "hunter2\n").unwrap();
    fs::write(fleet.home().join("secret.log"), "hunter2\n").unwrap();
    for id in ["../../../secret", "../secret", "/etc/passwd", "t_0123abcd/../../secret", "..", "t_.0123abc"] {
        for verb in ["log", "show", "runs", "context", "attachments"] {
            let output = fleet.cli([verb, id]);
            assert_eq!(output.code, 2, "{verb} {id}: {}{}", output.stdout, output.stderr);
            assert!(!(output.stdout + &output.stderr).contains("hunter2"), "{verb} {id}");
        }
    }
}

#[test]
fn a_worker_neither_reads_nor_writes_the_board_and_its_run_directory() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let root = fleet.root().display().to_string();
        let places = [
            "boards",
            "boards/default/board.db",
            "boards/default/board.db-wal",
            "runs/default",
            "operator.key",
        ];
        let probes: Vec<String> = places
            .iter()
            .map(|place| {
                let path = format!("{root}/{place}");
                format!(
                    "(ls {path} || cat {path}) > /dev/null 2>&1 && echo reads {place}\n\
                     (: >> {path} || : > {path}/x) 2> /dev/null && echo writes {place}\n"
                )
            })
            .collect();
        fleet.start();
        let task = fleet.create("curious", &format!("{}echo tried", probes.concat()), &[]);

        let shown = fleet.wait_for(&task, "done");

        assert_eq!(shown["latest_summary"], "tried", "{shown:#}");
        for place in places {
            assert!(fleet.root().join(place).exists(), "{place} is not there to be found");
        }
    }
}
