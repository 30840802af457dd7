//! Descriptors, memory, processes or space that run out at any one call between the claim and the worker's first instruction
//! cost a task nothing: it waits, says for what, and goes on by itself.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::Fleet;
use crate::http::Http;
use crate::injector::{Injector, SeenCall};
use crate::invariants::invariants_hold;

use crate::steps::Step;

/// Makes a task that may fail once, and returns its id. One attempt that counted would block it.
fn create(api: &Http, policy: &str) -> String {
    let body = json!({
        "title": "starts", "assignee": "shell", "body": "true", "max_retries": 1, "policy": policy,
    });
    api.post("/api/v1/verbs/create", &body).json(200)["id"].as_str().unwrap().to_owned()
}

/// State of the spare shim for the next run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spare {
    Waits,
    /// It was killed, so the daemon starts one when it has the run.
    Killed,
}

/// Waits until the daemon is at rest and a shim waits for the next run.
fn rest(fleet: &Fleet, spare: Spare) {
    let waiting = || {
        let processes = fleet.processes().into_iter();
        processes.filter(|process| process.command.contains("__shim --wait")).collect::<Vec<_>>()
    };
    let waits = fleet.eventually("a shim waits for the next run", || {
        let idle = fleet.json(["status"])["workers"].as_array().is_some_and(Vec::is_empty);
        waiting().pop().filter(|_| idle)
    });
    if spare == Spare::Killed {
        kill(Pid::from_raw(waits.pid), Signal::SIGKILL).unwrap();
        fleet.eventually("it is gone", || waiting().is_empty().then_some(()));
    }
}

/// Lets each kind of call of one part of a start fail: the first and the last of its kind, with another error each.
/// `STARTS=all` in the environment fails each single call with each error, which takes an hour: with `cargo test`, because
/// nextest ends a test after eight minutes.
fn each_call_fails(part: &str, spare: Spare) {
    let policy = "default";
    let fleet = Fleet::offline();
    let Some(injector) = Injector::start_part(&fleet, part) else { return };
    let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let api = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key);
    fleet.wait_for(&create(&api, policy), "done");
    rest(&fleet, spare);
    injector.record();
    fleet.wait_for(&create(&api, policy), "done");
    let steps: Vec<Step> = injector.recorded().into_iter().filter(|step| step.part == part).collect();
    println!("{part}: {steps:?}");
    assert!(steps.len() > 2, "a start has such calls: {steps:?}");

    let every = std::env::var("STARTS").is_ok_and(|which| which == "all");
    let mut failed = 0;
    for step in &steps {
        let errors = step.errors();
        let cases: Vec<_> = if every {
            (0..step.count).flat_map(|pass| errors.iter().map(move |errno| (pass, *errno))).collect()
        } else if step.count == 1 {
            vec![(0, errors[0])]
        } else {
            vec![(0, errors[0]), (step.count - 1, errors[errors.len() - 1])]
        };
        for (pass, errno) in cases {
            rest(&fleet, spare);
            injector.fail_step(step, pass, errno);
            let id = create(&api, policy);
            let shown = fleet.wait_for(&id, "done");
            let what = format!("{} {} number {pass}: {errno}", step.part, step.call);
            assert_eq!(shown["task"]["consecutive_failures"], 0, "{what}: {shown:#}");
            let runs = shown["runs"].as_array().unwrap();
            for run in runs {
                let outcome = run["outcome"].as_str().unwrap();
                assert!(["completed", "reclaimed"].contains(&outcome), "{what}: {shown:#}");
            }
            failed += usize::from(injector.disarm() == SeenCall::Failed);
        }
    }
    assert!(failed >= steps.len(), "{failed} calls have failed of {} kinds", steps.len());
    injector.kill(&fleet);
    fleet.start();
    invariants_hold(&fleet);
}

#[test]
fn what_runs_out_under_the_daemon_in_a_start_costs_no_attempt() {
    each_call_fails("daemon", Spare::Waits);
}

#[test]
fn what_runs_out_under_the_shim_in_a_start_costs_no_attempt() {
    each_call_fails("__shim", Spare::Waits);
}

#[test]
fn what_runs_out_under_the_confinement_of_a_start_costs_no_attempt() {
    each_call_fails("__confine", Spare::Waits);
}

#[test]
fn what_runs_out_where_a_shim_has_to_be_started_first_costs_no_attempt() {
    for part in ["daemon", "__shim"] {
        each_call_fails(part, Spare::Killed);
    }
}

#[test]
fn a_shortage_that_lasts_is_told_by_the_task_that_waits_and_it_goes_on_by_itself_when_it_is_over() {
    let kinds = [
        ("__shim", "timerfd_create", Errno::EMFILE),
        ("__shim", "clone3", Errno::EAGAIN),
        ("__confine", "openat", Errno::ENFILE),
        ("__confine", "landlock_restrict_self", Errno::ENOMEM),
        ("daemon", "mkdir", Errno::ENOSPC),
    ];
    for (part, call, errno) in kinds {
        let fleet = Fleet::offline();
        let Some(injector) = Injector::start_part(&fleet, part) else { return };
        let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
        let api = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key);
        let step = Step { part: part.to_owned(), call: call.to_owned(), count: 1 };
        rest(&fleet, Spare::Waits);
        injector.fail_steps(&step, 0, errno);
        let id = create(&api, "default");
        let what = format!("{part} {call}: {errno}");
        let shown =
            fleet.eventually(&format!("the second try has failed, and the task waits: {what}"), || {
                let shown = fleet.show(&id);
                let tries = shown["runs"][0]["tries"].as_u64().unwrap_or_default();
                (tries >= 2 && shown["task"]["status"] == "ready" && shown["why"]["code"] == "host")
                    .then_some(shown)
            });
        let why = shown["why"]["text"].as_str().unwrap();
        assert!(why.contains("waits for dispatch to resume"), "{what}: {why}");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "one row for all tries: {shown:#}");
        assert_eq!(injector.disarm(), SeenCall::Failed, "{what}");

        let shown = fleet.wait_for(&id, "done");
        assert_eq!(shown["task"]["consecutive_failures"], 0, "{what}: {shown:#}");
        let outcomes: Vec<&str> =
            shown["runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap()).collect();
        assert_eq!(outcomes, ["reclaimed", "completed"], "{what}: {shown:#}");
        injector.kill(&fleet);
        fleet.start();
        invariants_hold(&fleet);
    }
}
