//! Commands for a task that should stop or start again: cancel, kill, retry; and the words of other programs for them.

use std::path::Path;

use serde_json::json;

use crate::harness::{Fleet, User};

/// A script that withstands SIGTERM, starts another process, and says when SIGUSR1 comes.
const STUBBORN: &str =
    "trap '' TERM; trap 'echo poked' USR1; echo begun; sleep 1000 & while :; do sleep 0.05; done";

fn begun(fleet: &Fleet, task: &str) {
    fleet
        .eventually("the run has begun", || fleet.cli(["logs", task]).stdout.contains("begun").then_some(()));
}

fn marker(task: &str) -> String {
    format!("SUPERVISOR_TASK={task}")
}

#[test]
fn a_cancelled_task_stays_until_it_is_retried() {
    let fleet = Fleet::boot();
    let task = fleet.create("waits", "echo begun; sleep 1000", &[]);
    begun(&fleet, &task);

    let said = fleet.cli(["cancel", &task, "--reason", "wrong branch"]).ok().stdout;

    assert!(said.starts_with(&format!("Cancelled {task}")), "{said}");
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "cancelled", "{shown:#}");
    assert!(shown["comments"].to_string().contains("wrong branch"), "{shown:#}");
    assert!(fleet.processes_with(&marker(&task)).is_empty());
    assert!(shown["why"]["text"].as_str().unwrap().starts_with("cancelled by "), "{shown:#}");
    assert!(shown["why"]["text"].as_str().unwrap().ends_with(": wrong branch"), "{shown:#}");
    let waited = [fleet.cli(["wait", &task]).code, fleet.cli(["tail", &task]).code];
    assert_eq!(waited, [5, 5]);
    fleet.cli(["cancel", &task]).refused(4, "cannot cancel");
    let killed = fleet.cli(["kill", "-9", &task]).refused(4, "not running");
    assert!(killed.stderr.contains(&format!("supervisor archive {task}")), "{}", killed.stderr);
    fleet.cli(["retry", &task]).ok();
    fleet.eventually("it runs again", || (fleet.show(&task)["runs"].as_array()?.len() == 2).then_some(()));
    fleet.cli(["cancel", &task]).ok();
    fleet.wait_for(&task, "blocked");
    let queued = fleet.create("queued", "true", &["--not-before", "1000d"]);
    fleet.cli(["cancel", &queued]).ok();
    assert_eq!(fleet.status_of(&queued), "blocked");
}

#[test]
fn a_killed_worker_is_gone_at_once_with_all_that_it_has_started() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        fleet.configure("[worker]\ngrace = \"1000s\"\n");
        fleet.start();
        let task = fleet.create("stubborn", STUBBORN, &[]);
        begun(&fleet, &task);
        let sent = fleet.cli(["kill", "--signal", "usr1", &task]).ok();
        assert!(sent.stdout.starts_with("Sent SIGUSR1 to process "), "{sent:?}");
        fleet.eventually("the worker has got it", || {
            fleet.cli(["logs", &task]).stdout.contains("poked").then_some(())
        });
        assert_eq!(fleet.status_of(&task), "running");

        fleet.cli(["kill", &task, "--reason", "enough"]).ok();

        let shown = fleet.wait_for(&task, "blocked");
        assert_eq!(shown["runs"][0]["outcome"], "cancelled", "{shown:#}");
        assert!(fleet.processes_with(&marker(&task)).is_empty());
        fleet.cli(["kill", &task]).refused(4, &format!("error: {task} is not running\n"));
        fleet.cli(["kill", "-s", "HUP", &task]).refused(4, "not running");
        fleet.cli(["kill", "-s", "NOPE", &task]).refused(2, "is not a signal");
    }
}

#[test]
fn what_gave_up_or_is_done_is_retried_and_what_runs_is_not() {
    let fleet = Fleet::boot();
    let bad = fleet.create("bad", "exit 3", &["--max-retries", "1"]);
    fleet.wait_for(&bad, "blocked");
    let script = "echo begun; while [ ! -e go ]; do sleep 0.02; done";
    let runs = fleet.create("runs", script, &[]);
    begun(&fleet, &runs);
    fleet.cli(["retry", &runs]).refused(4, "cannot retry");
    let both = fleet.cli(["retry", &runs, &bad, "--reason", "it is there"]);
    assert_eq!(both.code, 4, "{both:?}");
    assert!(both.stdout.contains(&format!("Retried {bad}")), "{both:?}");
    fleet.eventually("it has run twice", || (fleet.show(&bad)["runs"].as_array()?.len() == 2).then_some(()));
    assert_eq!(fleet.cli(["wait", &bad]).code, 3);
    let workspace = fleet.show(&runs)["runs"][0]["workspace_path"].as_str().unwrap().to_owned();
    std::fs::write(Path::new(&workspace).join("go"), "").unwrap();
    fleet.wait_for(&runs, "done");
    fleet.cli(["retry", &runs]).ok();
    fleet.eventually("it has run twice", || (fleet.show(&runs)["runs"].as_array()?.len() == 2).then_some(()));
    assert_eq!(fleet.json(["wait", &runs])["status"], json!("done"));
}

#[test]
fn a_word_of_another_program_leads_to_ours() {
    let fleet = Fleet::offline();
    for (line, way) in [
        ("ps", "supervisor status"),
        ("add ls", "supervisor create"),
        ("delete t_0123abcd", "supervisor archive t_0123abcd --rm t_0123abcd"),
        ("rm t_0123abcd", "supervisor archive t_0123abcd"),
        ("stop t_0123abcd", "supervisor cancel t_0123abcd"),
        ("restart t_0123abcd", "supervisor retry t_0123abcd"),
        ("status t_0123abcd", "supervisor show t_0123abcd"),
        ("list --failed", "supervisor list --status blocked"),
        ("images", "supervisor --help"),
        ("lits", "supervisor list"),
        ("boards lst", "supervisor boards list"),
        ("frobnicate", "supervisor --help"),
    ] {
        let refused = fleet.cli(line.split(' ')).refused(2, "");
        let (_, hint) = refused.stderr.split_once("\nhint: ").unwrap();
        assert!(hint.starts_with(way), "{line}: {}", refused.stderr);
    }
}
