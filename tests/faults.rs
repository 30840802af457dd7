//! A disk that fails or is full at any one call: acknowledged and kept, or refused and its repeat is right; work goes on.

use std::fs;

use nix::errno::Errno;
use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::http::{Http, HttpAnswer};
use crate::injector::{Calls, Injector, SeenCall, Whom};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal};

/// The files of a board that carry what is written. Its shared memory is never made durable.
const BOARD: [&str; 2] = ["/board.db", "/board.db-wal"];

/// A verb, its body for a task, and what must be so when it is done.
struct Deed {
    verb: &'static str,
    body: fn(&str, &str) -> Value,
    is_done: fn(&Value, &str) -> bool,
}

const DEEDS: [Deed; 6] = [
    Deed {
        verb: "create",
        body: |_, word| json!({ "title": word, "idempotency_key": word }),
        is_done: |shown, word| {
            shown["task"]["title"] == word && shown["events"].as_array().unwrap().len() == 1
        },
    },
    Deed {
        verb: "comment",
        body: |task, word| json!({ "task_id": task, "body": word }),
        is_done: |shown, word| {
            let comments = shown["comments"].as_array().unwrap();
            comments.iter().filter(|comment| comment["body"] == word).count() == 1
        },
    },
    Deed {
        verb: "claim",
        body: |task, _| json!({ "task_id": task }),
        is_done: |shown, _| {
            shown["task"]["status"] == "running" && shown["runs"].as_array().unwrap().len() == 1
        },
    },
    Deed {
        verb: "complete",
        body: |task, word| json!({ "task_ids": [task], "summary": word }),
        is_done: |shown, word| {
            shown["latest_summary"] == word && shown["runs"].as_array().unwrap().len() == 1
        },
    },
    Deed {
        verb: "block",
        body: |task, word| json!({ "task_id": task, "reason": word }),
        is_done: |shown, _| {
            shown["task"]["status"] == "blocked" && shown["runs"].as_array().unwrap().len() == 1
        },
    },
    Deed {
        verb: "archive",
        body: |task, _| json!({ "task_ids": [task] }),
        is_done: |shown, _| shown["task"]["status"] == "archived",
    },
];

/// The operator's door of a fleet.
fn door(fleet: &Fleet) -> Http {
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key)
}

fn call(api: &Http, verb: &str, body: &Value) -> HttpAnswer {
    api.post(&format!("/api/v1/verbs/{verb}"), body)
}

fn show(api: &Http, task: &str) -> Value {
    call(api, "show", &json!({ "task_id": task })).json(200)
}

/// Makes a task that nobody runs.
fn make(api: &Http, title: &str) -> String {
    call(api, "create", &json!({ "title": title })).json(200)["id"].as_str().unwrap().to_owned()
}

/// Returns the common part of the replies to a request and its repeat. They differ in the token, because the board
/// keeps none.
fn without_token(mut reply: Value) -> Value {
    if let Some(fields) = reply.as_object_mut() {
        fields.remove("token");
    }
    reply
}

/// Does each deed with each of its writes failing in turn.
fn each_write_fails(errno: Errno) {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    let Some(injector) = Injector::start(&fleet, Whom::Daemon) else { return };
    let api = door(&fleet);
    let wait = "while [ ! -e \"${JOURNAL%/*}/go\" ]; do sleep 0.05; done";
    let patient = fleet.create("lives through it", &Journal::script(wait), &[]);
    fleet.eventually("the worker runs and the board is quiet", || {
        (journal.begun() == 1 && show(&api, &patient)["runs"][0]["worker_pid"].is_i64()).then_some(())
    });
    let worker = show(&api, &patient)["runs"][0]["worker_pid"].clone();
    let mut kept = Vec::new();
    let mut refusals = 0;
    for deed in &DEEDS {
        for pass in 0.. {
            let word = format!("{} {pass}", deed.verb);
            let task = make(&api, "for a deed");
            let body = (deed.body)(&task, &word);
            let asked = api.with("x-request-id", &word.replace(' ', "-"));

            injector.arm(pass, errno, Calls::Any, &BOARD);
            let answer = call(&asked, deed.verb, &body);
            let seen = injector.disarm();

            if answer.status != 200 {
                refusals += 1;
                refused(&answer, errno, &word);
            }
            // The next one works, and so does the repeat, which does it once.
            make(&api, "after it");
            let repeated = call(&asked, deed.verb, &body).json(200);
            if answer.status == 200 {
                assert_eq!(without_token(answer.json(200)), without_token(repeated.clone()), "{word}");
            }
            let task = if deed.verb == "create" { repeated["id"].as_str().unwrap().to_owned() } else { task };
            let shown = show(&api, &task);
            assert!((deed.is_done)(&shown, &word), "{word}: {shown:#}");
            kept.push((deed, task, word));
            if seen == SeenCall::Nothing {
                assert!(pass > 1, "{} writes to the board", deed.verb);
                break;
            }
        }
    }
    assert!(refusals >= 2 * DEEDS.len(), "{refusals} refusals");

    // It dies with all that it has only in memory.
    injector.kill(&fleet);
    fleet.start();

    let report = fleet.json(["doctor", "--replay"]);
    assert_eq!(report["ok"], true, "{report:#}");
    for (deed, task, word) in &kept {
        let shown = show(&api, task);
        assert!((deed.is_done)(&shown, word), "after the restart: {word}: {shown:#}");
    }
    assert_eq!(show(&api, &patient)["runs"][0]["worker_pid"], worker, "the worker lives on");
    fs::write(journal.dir().join("go"), "").unwrap();
    fleet.wait_for(&patient, "done");
    let begun = journal.lines().iter().filter(|line| line.task == patient && line.what == "start").count();
    assert_eq!(begun, 1);
    invariants_hold(&fleet);
}

/// Checks that a refusal says what the matter is, and no more than is known.
#[track_caller]
fn refused(answer: &HttpAnswer, errno: Errno, word: &str) {
    let problem = answer.json(503);
    assert_eq!(problem["code"], "try_again", "{word}: {problem}");
    let (detail, hint) = (problem["detail"].as_str().unwrap(), problem["hint"].as_str().unwrap());
    let about = if errno == Errno::ENOSPC { "full" } else { "disk I/O error" };
    let about = [about, "disk I/O error"].iter().any(|about| detail.contains(about));
    assert!(about, "{word}: {problem}");
    if detail.contains("failed to commit") && !detail.contains("full") {
        // Its rows are perhaps in the log, which a restart reads.
        assert!(hint.contains("may have been kept") && hint.contains("request id"), "{word}: {problem}");
    } else {
        assert!(hint.contains("nothing"), "{word}: {problem}");
    }
}

#[test]
fn a_write_that_the_disk_fails_is_refused_and_its_repeat_is_right() {
    each_write_fails(Errno::EIO);
}

#[test]
fn a_write_that_has_no_room_is_refused_and_its_repeat_is_right() {
    each_write_fails(Errno::ENOSPC);
}

/// Runs tasks one after another, with another of the calls that their runs make failing for each.
fn each_run_goes_on(whom: Whom, errno: Errno, calls: Calls, step: usize, paths: &[&str]) {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    let Some(injector) = Injector::start(&fleet, whom) else { return };
    let mut tasks = Vec::new();
    for pass in (0..).step_by(step) {
        injector.arm(pass, errno, calls, paths);
        let body = json!({ "title": "runs", "assignee": "shell", "body": Journal::script("true") });
        let request = door(&fleet).with("x-request-id", &format!("run-{pass}"));
        let id = fleet.eventually("it is created", || {
            let answer = call(&request, "create", &body);
            (answer.status == 200).then(|| answer.json(200)["id"].as_str().unwrap().to_owned())
        });
        let shown = fleet.wait_for(&id, "done");
        let open = shown["runs"].as_array().unwrap().iter().filter(|run| run["outcome"].is_null()).count();
        assert_eq!(open, 0, "{shown:#}");
        tasks.push(id);
        if injector.disarm() == SeenCall::Nothing {
            break;
        }
    }
    assert!(tasks.len() > 2, "a run makes such calls");
    // What a daemon cannot write costs nothing; without its shim's records the end of a worker is not known.
    let attempts = if whom == Whom::Daemon { Attempts::One } else { Attempts::Many };
    journal.audit(&fleet, &tasks, attempts);
    injector.kill(&fleet);
    fleet.start();
    assert_eq!(fleet.json(["doctor", "--replay"])["ok"], true);
    journal.audit(&fleet, &tasks, attempts);
    invariants_hold(&fleet);
}

#[test]
fn a_sync_of_the_board_that_fails_under_a_run_costs_it_no_attempt() {
    each_run_goes_on(Whom::Daemon, Errno::EIO, Calls::Sync, 1, &BOARD);
}

#[test]
fn a_write_to_the_board_without_room_under_a_run_costs_it_no_attempt() {
    each_run_goes_on(Whom::Daemon, Errno::ENOSPC, Calls::Any, 6, &BOARD);
}

#[test]
fn a_run_directory_without_room_costs_a_run_no_attempt() {
    each_run_goes_on(Whom::Daemon, Errno::ENOSPC, Calls::Any, 1, &["/runs/default/"]);
}

#[test]
fn a_shim_that_cannot_write_its_records_ends_its_run_all_the_same() {
    for errno in [Errno::ENOSPC, Errno::EIO] {
        each_run_goes_on(Whom::Shims, errno, Calls::Any, 1, &["/runs/default/"]);
    }
}
