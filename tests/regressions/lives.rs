//! A worker's life and end are its own: nothing is mistaken for it, and nothing is done beside it.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::harness::{Fleet, User, binary, skip};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, PATIENT, of_task, outcomes, records};

/// Runs forty workers that end at the same moment, of tasks that are blocked after that number of failures, and returns each task with the code that it ended with.
fn forty_that_end(fleet: &Fleet, retries: &str, code: fn(i64) -> i64) -> Vec<(String, i64)> {
    let journal = Journal::of(fleet, 40, "");
    fleet.start();
    let tasks = (0..40).map(|n| {
        let script = Journal::script(&format!("{PATIENT}; exit {}", code(n)));
        (fleet.create("ends", &script, &["--max-retries", retries]), code(n))
    });
    let tasks = tasks.collect();
    fleet.eventually("all of them run", || (journal.begun() == 40).then_some(()));
    journal.let_go();
    tasks
}

#[test]
fn forty_workers_that_end_at_once_are_each_known_by_their_own_exit_code() {
    let fleet = Fleet::offline();
    for (task, code) in forty_that_end(&fleet, "1", |n| 100 + n) {
        let shown = fleet.wait_for(&task, "blocked");
        let run = &shown["runs"][0];
        assert_eq!((&run["exit_code"], &run["signal"]), (&json!(code), &json!(null)), "{shown:#}");
    }
}

#[test]
fn forty_workers_that_a_service_limits_at_once_are_none_of_them_crashed() {
    let fleet = Fleet::offline();
    for (task, _) in forty_that_end(&fleet, "2", |_| 75) {
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
    // The shim has the lock, so its run lives, also where another process has the number.
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
    invariants_hold(&fleet);
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
    // Its worker has a second to go; a request that is too early is refused.
    fleet.eventually("it can be let go", || (fleet.cli(["unblock", &task]).code == 0).then_some(()));
    fleet.cli(["dispatch"]).ok();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!(outcomes(&shown).last(), Some(&"completed"), "{shown:#}");
    let lines: Vec<String> = journal.lines().into_iter().map(|line| line.what).collect();
    // The second would have met the first in its workspace.
    assert_eq!(lines, ["start", "stubborn", "start", "end"]);
    invariants_hold(&fleet);
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
    let mut command = Command::new("unshare");
    let script = "hostname another-name && exec \"$0\" --root \"$1\" daemon";
    command.args(["--uts", "sh", "-c", script, binary()]).arg(fleet.root());
    fleet.start_by(&mut command);

    assert_eq!(fleet.status_of(&task), "running");
    journal.let_go();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!(outcomes(&shown), ["completed"]);
    journal.audit(&fleet, &[task], Attempts::One);
    invariants_hold(&fleet);
}
