//! The ways in which a daemon, a run and a task are ended, and what is left then: nothing.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Fleet, User};
use crate::invariants::invariants_hold;
use crate::journal::of_task;

/// A script that leaves a stubborn child behind and goes on until it is ended.
const STUBBORN: &str =
    "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & touch up; while :; do sleep 0.05; done";
/// A script that goes on until a file appears.
const PATIENT: &str = "touch up; while [ ! -e go ]; do sleep 0.02; done; echo went";

/// Creates a task and waits until its script has begun. Returns its id and its workspace.
fn started(fleet: &Fleet, script: &str) -> (String, String) {
    let task = fleet.create("runs", script, &[]);
    let path = fleet.eventually("the script has begun", || {
        let path = fleet.show(&task)["runs"][0]["workspace_path"].as_str()?.to_owned();
        std::path::Path::new(&path).join("up").exists().then_some(path)
    });
    (task, path)
}

#[test]
fn a_reclaimed_worker_is_gone_with_its_children_before_the_task_is_ready_again() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[worker]\ngrace = 1\n");
        fleet.start();
        let (task, _) = started(&fleet, STUBBORN);
        assert!(fleet.processes_with(&of_task(&task)).len() >= 2);

        // Nothing here runs the new assignee's tasks, so that the task stays where it comes to.
        fleet.cli(["reassign", &task, "ghost", "--reclaim", "--reason", "wrong branch"]).ok();

        let shown = fleet.eventually("the task is ready again", || {
            let shown = fleet.show(&task);
            (shown["task"]["status"] == "ready").then_some(shown)
        });
        let left = fleet.processes_with(&of_task(&task));
        assert!(left.is_empty(), "{left:#?}");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1);
        assert_eq!(shown["runs"][0]["outcome"], "reclaimed");
    }
}

#[test]
fn a_reclaimed_task_runs_again_only_after_its_first_worker_is_gone() {
    let fleet = Fleet::boot();
    let (task, path) =
        started(&fleet, "echo start $$ >> times; touch up; while [ ! -e go ]; do sleep 0.02; done");
    fleet.cli(["reclaim", &task]).ok();
    fleet.eventually("the second run has begun", || {
        let times = std::fs::read_to_string(format!("{path}/times")).ok()?;
        (times.lines().count() == 2).then_some(())
    });
    assert!(fleet.processes_with("SUPERVISOR_RUN_ID=1 ").is_empty());
    std::fs::write(format!("{path}/go"), "").unwrap();
    let shown = fleet.wait_for(&task, "done");
    let outcomes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| &run["outcome"]).collect();
    assert_eq!(outcomes, ["reclaimed", "completed"]);
}

#[test]
fn a_running_task_that_is_given_another_time_waits_for_it_when_its_worker_is_gone() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = 1\n");
    fleet.start();
    let (task, _) = started(&fleet, STUBBORN);
    fleet.cli(["schedule", &task, "after the release", "--at", "1h"]).ok();
    let shown = fleet.wait_for(&task, "scheduled");
    let left = fleet.processes_with(&of_task(&task));
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(shown["runs"][0]["outcome"], "reclaimed");
    let due = shown["task"]["not_before"].as_u64().unwrap() - shown["task"]["created_at"].as_u64().unwrap();
    assert!(due >= 3600, "{shown:#}");
}

#[test]
fn a_person_may_complete_a_running_task_and_its_worker_is_ended_first() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = 1\n");
    fleet.start();
    let (task, _) = started(&fleet, STUBBORN);
    let done = fleet.json(["complete", &task, "--summary", "did it myself"]);
    assert_eq!(done["results"][0]["ok"], true);

    let shown = fleet.wait_for(&task, "done");

    assert!(fleet.processes_with(&of_task(&task)).is_empty());
    assert_eq!(shown["latest_summary"], "did it myself");
}

#[test]
fn archiving_a_running_task_ends_its_worker_first() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = 1\n");
    fleet.start();
    let (task, _) = started(&fleet, STUBBORN);
    fleet.cli(["archive", &task]).ok();
    fleet.wait_for(&task, "archived");
    assert!(fleet.processes_with(&of_task(&task)).is_empty());
}

#[test]
fn a_worker_past_its_limit_is_ended_with_everything_it_started() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[worker]\ngrace = 1\n");
        fleet.start();
        let script =
            format!("setsid sh -c '{}' & {STUBBORN}", "trap \"\" TERM; while :; do sleep 0.05; done");
        let task = fleet.create("too long", &script, &["--max-runtime", "1", "--max-retries", "1"]);

        let shown = fleet.wait_for(&task, "blocked");

        assert_eq!(shown["runs"][0]["outcome"], "timed_out", "{shown:#}");
        let left = fleet.processes_with(&of_task(&task));
        assert!(left.is_empty(), "{left:#?}");
    }
}

#[test]
fn a_daemon_that_drains_waits_for_its_workers_and_starts_no_more() {
    let fleet = Fleet::boot();
    let (task, path) = started(&fleet, PATIENT);
    fleet.cli(["stop"]).ok();
    let late = fleet.create("late", "true", &[]);
    fleet.eventually("status says that it drains", || {
        fleet.json(["status"])["daemon"]["stopping"].as_str()?.contains("drain").then_some(())
    });

    std::fs::write(format!("{path}/go"), "").unwrap();

    assert!(fleet.reap_daemon().success());
    assert_eq!((fleet.status_of(&task).as_str(), fleet.status_of(&late).as_str()), ("done", "ready"));
}

#[test]
fn leaving_the_workers_is_possible_during_a_drain_and_each_answer_says_what_happens() {
    let fleet = Fleet::boot();
    let (task, path) = started(&fleet, PATIENT);
    let drain = fleet.cli(["stop"]).ok();
    assert!(drain.stdout.contains("waits for its 1 worker until "), "{}", drain.stdout);
    assert!(drain.stdout.contains("TERM, KILL after"), "{}", drain.stdout);
    // Asked once more it says the same and presses nobody.
    let again = fleet.json(["stop"]);
    assert_eq!((&again["mode"], &again["ending"]), (&json!("drain"), &json!(0)), "{again:#}");
    assert!(again["until"].as_i64().is_some(), "{again:#}");

    let left = fleet.json(["stop", "--leave"]);

    assert_eq!((&left["mode"], &left["workers"]), (&json!("leave"), &json!(1)), "{left:#}");
    assert!(fleet.reap_daemon().success());
    assert!(!fleet.processes_with(&of_task(&task)).is_empty(), "the worker goes on");
    std::fs::write(format!("{path}/go"), "").unwrap();
    fleet.start();
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
}

#[test]
fn an_interrupted_daemon_says_at_once_what_it_waits_for_and_what_the_next_interrupt_does() {
    let fleet = Fleet::boot();
    let (_, path) = started(&fleet, PATIENT);
    fleet.signal(Signal::SIGINT);
    fleet.eventually("it says what it waits for", || {
        let log = fleet.log();
        (log.contains("waits for its 1 worker until ") && log.contains("Ctrl-C again ends them"))
            .then_some(())
    });
    std::fs::write(format!("{path}/go"), "").unwrap();
    assert!(fleet.reap_daemon().success());
}

#[test]
fn sigterm_drains_and_a_second_one_ends_the_workers() {
    let fleet = Fleet::boot();
    let (task, _) = started(&fleet, PATIENT);
    fleet.signal(Signal::SIGTERM);
    fleet.eventually("it drains", || fleet.json(["status"])["daemon"]["stopping"].as_str().map(|_| ()));

    fleet.signal(Signal::SIGTERM);

    assert!(fleet.reap_daemon().success());
    let shown = fleet.show(&task);
    assert_eq!(
        (&shown["task"]["status"], &shown["runs"][0]["outcome"]),
        (&json!("ready"), &json!("preempted"))
    );
    assert_eq!(shown["task"]["consecutive_failures"], 0, "what the operator does counts against no task");
    assert!(fleet.processes().is_empty(), "{:#?}", fleet.processes());
    invariants_hold(&fleet);
}

#[test]
fn a_daemon_that_is_stopped_now_or_killed_leaves_no_worker() {
    for flag in ["--now", "--kill"] {
        let fleet = Fleet::offline();
        fleet.configure("[worker]\ngrace = 1\n");
        fleet.start();
        let (task, _) = started(&fleet, STUBBORN);

        assert!(fleet.stop(&[flag]).success());

        assert!(fleet.processes_with(&of_task(&task)).is_empty(), "{flag}");
        assert_eq!(fleet.status_of(&task), "ready", "{flag}");
    }
}

#[test]
fn a_daemon_that_leaves_its_workers_is_followed_by_one_that_takes_them_over() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (task, path) = started(&fleet, PATIENT);
        assert!(fleet.stop(&["--leave"]).success());
        assert!(!fleet.processes_with(&of_task(&task)).is_empty(), "the worker goes on");
        let status = fleet.cli(["status", "--json"]);
        assert_eq!((status.code, &status.json()["workers"][0]["task"]), (3, &json!(task)));
        std::fs::write(format!("{path}/go"), "").unwrap();

        fleet.start();

        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["latest_summary"], "went");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "it ran once");
    }
}

#[test]
fn a_killed_daemon_is_followed_by_one_that_finishes_what_ended_meanwhile() {
    let fleet = Fleet::boot();
    let (task, path) = started(&fleet, PATIENT);
    fleet.kill_daemon();
    std::fs::write(format!("{path}/go"), "").unwrap();
    fleet.eventually("the worker has ended", || {
        fleet.processes_with(&of_task(&task)).is_empty().then_some(())
    });
    let seconds = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let ended = seconds();
    fleet.eventually("the daemon comes two seconds later", || (seconds() >= ended + 2).then_some(()));

    fleet.start();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!((&shown["latest_summary"], shown["runs"].as_array().unwrap().len()), (&json!("went"), 1));
    let run = &shown["runs"][0];
    assert!(run["ended_at"].as_u64().unwrap() <= ended, "the time of its end, not of its discovery: {run:#}");
}

#[test]
fn a_reload_takes_new_limits_and_refuses_a_broken_file_without_harm() {
    let fleet = Fleet::boot();
    fleet.configure("[limits]\nmax_running = 2\n");
    fleet.signal(Signal::SIGHUP);
    fleet.eventually("the limit is taken", || (fleet.json(["status"])["daemon"]["slots"] == 2).then_some(()));
    fleet.write_config("supervisor.toml", "[limits]\nmax_runing = 3\n");
    fleet.signal(Signal::SIGHUP);
    fleet.eventually("the log names the key", || fleet.log().contains("max_runing").then_some(()));
    let task = fleet.create("goes on", "true", &[]);
    fleet.wait_for(&task, "done");
    assert_eq!(fleet.json(["status"])["daemon"]["slots"], 2);
}

#[test]
fn a_stop_looks_for_survivors_without_a_configuration_that_can_be_used() {
    let fleet = Fleet::boot();
    fleet.write_config("supervisor.toml", "[limits]\nmax_runing = 3\n");
    let output = fleet.cli(["stop", "--kill", "--wait"]).ok();
    assert!(!output.stderr.contains("unknown whether"), "{}", output.stderr);
    assert!(fleet.reap_daemon().success());
}
