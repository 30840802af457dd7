//! Order of runs, waiting tasks, and tasks that are given up.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::journal::{Journal, PATIENT, outcomes};

#[test]
fn four_workers_that_ignore_their_deadline_hold_up_nobody() {
    let fleet = Fleet::offline();
    // They are asked to end, and have all the time that this test takes.
    let journal = Journal::of(&fleet, 8, "grace = 600\n");
    fleet.start();
    let stubborn = "trap 'say asked' TERM; while [ ! -e \"${JOURNAL%/*}/go\" ]; do sleep 0.05; done; exit 1";
    let script = Journal::script(stubborn);
    let tasks: Vec<String> = (0..4)
        .map(|_| fleet.create("stubborn", &script, &["--max-runtime", "10", "--max-retries", "1"]))
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
