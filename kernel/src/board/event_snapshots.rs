//! Snapshots of the events: the keys and values of each kind's payload, and the presence of a run.
//!
//! Scripts and other programs read these. A changed snapshot is a changed contract.

use std::time::Duration;

use crate::testing::{Bench, alice, gated, titled};
use crate::{
    Actor, Approval, BlockKind, Blocking, Detach, EndCause, EventFilter, EventKind, Force, Handoff,
    InitialState, NewTask, Question, RunId, StopReason, Straggler, TaskId,
};

mod chats;
mod checks;
mod edits;
mod egress;
mod endings;
mod files;
mod messages;
mod missions;
mod moves;
mod proposals;
mod returns;
mod schedules;
mod tools;

/// Formats an event for a snapshot, with words in place of ids and times.
pub(crate) fn rendered_events(bench: &Bench, kind: &str) -> String {
    let filter = EventFilter { kinds: vec![kind.to_owned()], limit: 1, ..EventFilter::default() };
    let event = bench.readers.with(|view| view.events(&filter)).unwrap().remove(0);
    let run = if event.run_id.is_some() { "its run" } else { "no run" };
    let payload = event.payload.map_or_else(|| "nothing".to_owned(), |payload| words(&payload).to_string());
    format!("{run}: {payload}")
}

fn words(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) if TaskId::in_full(text).is_ok() => "t_id".into(),
        Value::String(text) if text.starts_with("hand:") || text.starts_with("host:") => "lock".into(),
        Value::Number(number) if number.as_i64().is_some_and(|number| number > 1_000_000_000) => {
            "moment".into()
        }
        Value::Array(list) => list.iter().map(words).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), words(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The snapshot of each kind is called `KIND_tells_of_…`. An imported event has the payload of another program, so it has
/// none.
#[test]
fn each_kind_has_a_snapshot() {
    const FILES: [&str; 15] = [
        include_str!("event_snapshots.rs"),
        include_str!("event_snapshots/chats.rs"),
        include_str!("event_snapshots/checks.rs"),
        include_str!("event_snapshots/edits.rs"),
        include_str!("event_snapshots/egress.rs"),
        include_str!("event_snapshots/endings.rs"),
        include_str!("event_snapshots/files.rs"),
        include_str!("event_snapshots/messages.rs"),
        include_str!("event_snapshots/missions.rs"),
        include_str!("event_snapshots/proposals.rs"),
        include_str!("event_snapshots/moves.rs"),
        include_str!("event_snapshots/returns.rs"),
        include_str!("event_snapshots/schedules.rs"),
        include_str!("event_snapshots/tools.rs"),
        include_str!("hold_tests.rs"),
    ];
    let is_missing =
        |kind: &&EventKind| !FILES.iter().any(|text| text.contains(&format!("fn {kind}_tells_of_")));
    let without: Vec<&EventKind> = EventKind::ALL.iter().filter(is_missing).collect();
    assert_eq!(without, [&EventKind::Imported]);
}

fn handoff() -> Handoff {
    Handoff {
        result: Some("42".to_owned()),
        summary: Some("did it\nand more of it".to_owned()),
        metadata: None,
        artifacts: vec!["out.md".to_owned()],
    }
}

fn worker(name: &str, run: RunId, id: &TaskId) -> Actor {
    Actor::worker(name, run, id.clone(), None)
}

/// Ends a run of a new task, and formats the event.
fn ended(cause: EndCause, kind: &str) -> String {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    bench.finish(run, cause);
    rendered_events(&bench, kind)
}

/// Does an act on a new task, and formats the event.
fn done(
    kind: &str,
    act: impl FnOnce(&mut crate::Board<'_>, &TaskId) -> Result<(), crate::Error> + Send + 'static,
) -> String {
    let bench = Bench::new();
    let id = bench.ready();
    bench.call(move |board| act(board, &id)).unwrap();
    rendered_events(&bench, kind)
}

/// Ends a run of a new task with its worker's verdict, and formats the event.
fn reported(
    kind: &str,
    act: impl FnOnce(&mut crate::Board<'_>, &TaskId, &Actor) -> Result<(), crate::Error> + Send + 'static,
) -> String {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let bob = worker("bob", run, &id);
    bench.call(move |board| act(board, &id, &bob)).unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });
    rendered_events(&bench, kind)
}

fn asks() -> Blocking {
    let question =
        Question { text: "which?".to_owned(), choices: vec!["a".to_owned()], ..Question::default() };
    Blocking { question: Some(question), ..Blocking::default() }
}

fn guarded() -> NewTask {
    NewTask { approval: Approval { class: "spend".parse().ok(), ..gated() }, ..titled("buy") }
}

#[test]
fn created_tells_of_a_new_task() {
    let rendered = {
        let bench = Bench::new();
        bench.ready();
        rendered_events(&bench, "created")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"assignee":"bob","branch_name":null,"by":"alice","goal_mode":false,"parents":[],"skills":[],"status":"ready","tenant":null}"#);
}

#[test]
fn promoted_tells_of_the_last_parent_is_done() {
    let rendered = {
        let bench = Bench::new();
        let parent = bench.ready();
        bench.child_of(&[&parent]);
        bench.call(move |board| board.complete(&parent, handoff(), None, &alice())).unwrap();
        rendered_events(&bench, "promoted")
    };
    insta::assert_snapshot!(rendered, @r#"no run: nothing"#);
}

#[test]
fn scheduled_tells_of_another_time() {
    let rendered = done("scheduled", |board, id| {
        let at = board.now().after(Duration::from_mins(5));
        board.schedule(id, at, Some("later"), &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"in_seconds":300,"not_before":"moment","reason":"later"}"#);
}

#[test]
fn claimed_tells_of_a_claim() {
    let rendered = ended(EndCause::Exited { code: 1 }, "claimed");
    insta::assert_snapshot!(rendered, @r#"its run: {"expires":null,"lock":"lock","run_id":1}"#);
}

#[test]
fn spawned_tells_of_a_start() {
    let rendered = {
        let bench = Bench::new();
        let run = bench.start(&bench.ready());
        bench.call(move |board| board.record_spawned(run, 17, &serde_json::json!({}))).unwrap();
        rendered_events(&bench, "spawned")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"pid":17}"#);
}

#[test]
fn claim_expired_tells_of_a_lease_that_ran_out() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.ready();
        bench
            .call(move |board| {
                board.claim(&id, &crate::ClaimTerms::lasting(Duration::from_mins(1)), &alice())
            })
            .unwrap();
        bench.clock.advance(Duration::from_mins(2));
        bench.wake();
        rendered_events(&bench, "claim_expired")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"claim_expires":"moment","now":"moment","stale_lock":"lock"}"#);
}

#[test]
fn stop_requested_tells_of_a_run_that_is_taken_back() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.ready();
        bench.start(&id);
        bench.call(move |board| board.reclaim(&id, Some("mine"), &alice())).unwrap();
        rendered_events(&bench, "stop_requested")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"by":"alice","reason":"mine","stop_reason":"reclaimed"}"#);
}

#[test]
fn verdict_tells_of_a_verdict() {
    let rendered = reported("verdict", |board, id, bob| board.complete(id, handoff(), None, bob).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"by":"bob","reason":"did it\nand more of it","verdict":"complete"}"#);
}

#[test]
fn completed_tells_of_work_that_is_done() {
    let rendered = reported("completed", |board, id, bob| board.complete(id, handoff(), None, bob).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"artifacts":["out.md"],"result_len":2,"summary":"did it"}"#);
}

#[test]
fn completed_tells_of_work_that_a_person_did() {
    let rendered = done("completed", |board, id| board.complete(id, handoff(), None, &alice()).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"artifacts":["out.md"],"result_len":2,"summary":"did it"}"#);
}

#[test]
fn completed_tells_of_work_that_was_approved() {
    let rendered = done("completed", |board, id| {
        board.request_review(id, handoff(), None, None, &alice())?;
        board.approve(id, None, None, &Actor::person("carol")).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"its run: {"artifacts":["out.md"],"result_len":2,"summary":"did it"}"#);
}

#[test]
fn review_requested_tells_of_work_for_a_reviewer() {
    let rendered = reported("review_requested", |board, id, bob| {
        board.request_review(id, handoff(), Some("eve".parse()?), None, bob).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"its run: {"artifacts":["out.md"],"result_len":2,"reviewer":"eve","summary":"did it","work_by":"worker:bob"}"#);
}

#[test]
fn approved_tells_of_work_that_is_good() {
    let rendered = done("approved", |board, id| {
        board.request_review(id, handoff(), None, None, &alice())?;
        board.approve(id, Some("good"), None, &Actor::person("carol")).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"work_by":"person:alice"}"#);
}

#[test]
fn changes_requested_tells_of_work_that_is_not_good() {
    let rendered = done("changes_requested", |board, id| {
        board.request_review(id, handoff(), None, None, &alice())?;
        board.request_changes(id, "no tests", None, &Actor::person("carol")).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"reason":"no tests"}"#);
}

#[test]
fn approval_requested_tells_of_an_approval_that_is_missing() {
    let rendered = {
        let bench = Bench::new();
        bench.create(guarded());
        rendered_events(&bench, "approval_requested")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"approver":null,"class":"spend","parents":[]}"#);
}

#[test]
fn approval_granted_tells_of_an_approval_that_is_given() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.create(guarded()).id;
        bench.call(move |board| board.approve(&id, Some("go on"), None, &alice())).unwrap();
        rendered_events(&bench, "approval_granted")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"class":"spend","comment":"go on"}"#);
}

#[test]
fn approval_denied_tells_of_an_approval_that_is_denied() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.create(guarded()).id;
        bench.call(move |board| board.deny(&id, "too dear", &alice())).unwrap();
        rendered_events(&bench, "approval_denied")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"class":"spend","reason":"too dear"}"#);
}

#[test]
fn blocked_tells_of_an_approval_after_the_last_parent() {
    let rendered = {
        let bench = Bench::new();
        let parent = bench.ready();
        bench.create(NewTask { parents: vec![parent.clone()], ..guarded() });
        bench.call(move |board| board.complete(&parent, handoff(), None, &alice())).unwrap();
        rendered_events(&bench, "blocked")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"kind":"approval","reason":"waits for the approval of a person (spend)"}"#);
}

#[test]
fn archived_tells_of_a_running_task_that_is_archived() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.ready();
        let run = bench.start(&id);
        bench.call(move |board| board.archive(&id, Detach::Refuse, &alice())).unwrap();
        bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
        rendered_events(&bench, "archived")
    };
    insta::assert_snapshot!(rendered, @r#"its run: {"error":null,"exit_code":null,"failures":0,"outcome":"cancelled","pid":null,"retry_at":null,"signal":null}"#);
}

#[test]
fn blocked_tells_of_a_question_of_a_worker() {
    let rendered = reported("blocked", |board, id, bob| board.block(id, asks(), None, bob).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"kind":"needs_input","reason":"which?","recurrences":1}"#);
}

#[test]
fn blocked_tells_of_a_block_by_a_person() {
    let rendered = done("blocked", |board, id| board.block(id, asks(), None, &alice()).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"kind":"needs_input","reason":"which?","recurrences":1}"#);
}

#[test]
fn block_loop_detected_tells_of_a_task_that_is_blocked_over_and_over() {
    let rendered = done("block_loop_detected", |board, id| {
        for _ in 0..2 {
            board.block(id, Blocking::default(), None, &alice())?;
            board.unblock(id, None, &alice())?;
        }
        board.block(id, Blocking::default(), None, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"its run: {"kind":"needs_input","limit":2,"reason":null,"recurrences":3}"#);
}

#[test]
fn dependency_wait_tells_of_a_worker_that_waits_for_a_task() {
    let rendered = reported("dependency_wait", |board, id, bob| {
        let other = board.create(titled("first"), &alice())?.task.id;
        board.link(&other, id, crate::AtWork::TakeBackWithin(std::time::Duration::ZERO), bob)?;
        let blocking =
            Blocking { kind: BlockKind::Dependency, reason: Some("first".into()), ..Blocking::default() };
        board.block(id, blocking, None, bob).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"its run: {"kind":"dependency","reason":"first","recurrences":1}"#);
}

#[test]
fn answered_tells_of_an_answer() {
    let rendered = done("answered", |board, id| {
        board.block(id, asks(), None, &alice())?;
        board.answer(id, "1", &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"answer":"a","choice":1}"#);
}

#[test]
fn unblocked_tells_of_a_task_that_goes_on() {
    let rendered = done("unblocked", |board, id| {
        board.block(id, asks(), None, &alice())?;
        board.unblock(id, Some("go on"), &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"reason":"go on"}"#);
}

#[test]
fn promoted_manual_tells_of_a_task_that_leaves_triage() {
    let rendered = {
        let bench = Bench::new();
        let id = bench.create(NewTask { initial_state: InitialState::Triage, ..titled("idea") }).id;
        bench.call(move |board| board.promote(&id, Some("good"), Force::No, &alice())).unwrap();
        rendered_events(&bench, "promoted_manual")
    };
    insta::assert_snapshot!(rendered, @r#"no run: {"actor":"alice","forced":false,"reason":"good"}"#);
}

#[test]
fn archived_tells_of_a_task_that_is_archived() {
    let rendered = done("archived", |board, id| board.archive(id, Detach::Refuse, &alice()).map(drop));
    insta::assert_snapshot!(rendered, @r#"no run: {"from":"ready","question":null,"reason":null,"work_by":null}"#);
}

#[test]
fn deleted_tells_of_a_task_that_is_deleted() {
    let rendered = done("deleted", |board, id| {
        board.archive(id, Detach::Refuse, &alice())?;
        board.delete(id, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"assignee":"bob","attachments":[],"branch_name":null,"children":[],"comments":0,"completed_at":null,"created_at":"moment","created_by":"alice","parents":[],"priority":0,"runs":0,"title":"work","workspace":"scratch","workspace_path":null}"#);
}

#[test]
fn linked_tells_of_a_link() {
    let rendered = done("linked", |board, id| {
        let other = board.create(titled("first"), &alice())?.task.id;
        board.link(&other, id, crate::AtWork::TakeBack, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"child":"t_id","parent":"t_id"}"#);
}

#[test]
fn unlinked_tells_of_a_link_that_is_undone() {
    let rendered = done("unlinked", |board, id| {
        let other = board.create(titled("first"), &alice())?.task.id;
        board.link(&other, id, crate::AtWork::TakeBack, &alice())?;
        board.unlink(&other, id, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"child":"t_id","parent":"t_id"}"#);
}

#[test]
fn commented_tells_of_a_comment_of_a_worker() {
    let rendered = reported("commented", |board, id, bob| board.comment(id, "hello", None, bob).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"author":"bob","comment":1,"len":5}"#);
}

#[test]
fn heartbeat_tells_of_a_sign_of_life() {
    let rendered =
        reported("heartbeat", |board, id, bob| board.heartbeat(id, Some("halfway"), bob).map(drop));
    insta::assert_snapshot!(rendered, @r#"its run: {"note":"halfway"}"#);
}

#[test]
fn throttled_tells_of_a_bound_that_a_run_has_met() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    bench.call(move |board| board.note_throttled(run, "requests_per_run")).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "throttled"), @r#"its run: {"bound":"requests_per_run"}"#);
    bench.finish(run, EndCause::Stopped(StopReason::Reclaimed));
    let count = || bench.readers.with(|view| view.last_event()).unwrap();
    let before = count();
    bench.call(move |board| board.note_throttled(run, "requests_per_run")).unwrap();
    assert_eq!(count(), before, "a run that has ended is left alone");
}

#[test]
fn unkillable_tells_of_what_sigkill_does_not_end_once_for_each_run() {
    let bench = Bench::new();
    let run = bench.start(&bench.ready());
    let note = || {
        let left = [Straggler { pid: 17, name: "cat".to_owned(), state: 'D' }];
        bench.call(move |board| board.note_unkillable(run, &left)).unwrap()
    };
    let is_noted = || bench.readers.with(|view| view.is_unkillable(run)).unwrap();
    assert!(!is_noted() && note() && is_noted());
    insta::assert_snapshot!(rendered_events(&bench, "unkillable"), @r#"its run: {"processes":[{"name":"cat","pid":17,"state":"D"}]}"#);
    assert!(!note(), "it is no news");
    bench.finish(run, EndCause::Stopped(StopReason::Reclaimed));
    assert!(!note(), "a run that has ended is left alone");
}

#[test]
fn skipped_nonspawnable_tells_of_an_assignee_that_nothing_can_run() {
    let rendered = done("skipped_nonspawnable", |board, id| board.note_nonspawnable(id, "no lane `bob`"));
    insta::assert_snapshot!(rendered, @r#"no run: {"assignee":"bob","reason":"no lane `bob`"}"#);
}
