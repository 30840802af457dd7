//! Events of proposals.

use serde_json::{Value, json};

use super::rendered_events;
use crate::board::proposal_tests::asked;
use crate::testing::{Bench, alice, titled};
use crate::{Force, Handoff, InitialState, NewTask, ProposalKind, TaskId};

fn idea(bench: &Bench) -> TaskId {
    bench.create(NewTask { initial_state: InitialState::Triage, ..titled("idea") }).id
}

fn proposed(bench: &Bench, id: &TaskId, kind: ProposalKind, metadata: Value) {
    let new = asked(id, kind);
    let made = bench.call(move |board| board.propose(new, &alice())).unwrap().task.id;
    let handoff = Handoff { metadata: Some(metadata), ..Handoff::default() };
    bench.call(move |board| board.complete(&made, handoff, None, &alice())).unwrap();
}

fn parts() -> Value {
    json!({ "tasks": [{ "name": "a", "title": "a", "body": "b" }], "body": "b" })
}

#[test]
fn proposal_asked_tells_of_the_kind_the_task_and_its_assignee() {
    let bench = Bench::new();
    let id = idea(&bench);
    bench.call(move |board| board.propose(asked(&id, ProposalKind::Specify), &alice()).map(drop)).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "proposal_asked"), @r#"no run: {"assignee":"specifier","kind":"specify","task":"t_id"}"#);
}

#[test]
fn proposal_dropped_tells_of_the_task_that_went_on() {
    let bench = Bench::new();
    let id = idea(&bench);
    let (new, promoted) = (asked(&id, ProposalKind::Specify), id.clone());
    let made = bench.call(move |board| board.propose(new, &alice())).unwrap().task.id;
    bench.call(move |board| board.promote(&promoted, None, Force::No, &alice()).map(drop)).unwrap();
    bench.call(move |board| board.complete(&made, Handoff::default(), None, &alice())).unwrap();
    insta::assert_snapshot!(rendered_events(&bench, "proposal_dropped"), @r#"no run: {"kind":"specify","subject":"t_id"}"#);
}

#[test]
fn specified_tells_of_the_fields_that_have_changed_and_by_whom() {
    let bench = Bench::new();
    let id = idea(&bench);
    proposed(&bench, &id, ProposalKind::Specify, json!({ "title": "t", "body": "b", "assignee": "bob" }));
    insta::assert_snapshot!(rendered_events(&bench, "specified"), @r#"no run: {"by":"specifier","changed_fields":["title","body","assignee"],"proposal":"t_id"}"#);
}

#[test]
fn decomposed_tells_of_the_new_tasks() {
    let bench = Bench::new();
    let id = idea(&bench);
    proposed(&bench, &id, ProposalKind::Decompose, parts());
    insta::assert_snapshot!(rendered_events(&bench, "decomposed"), @r#"no run: {"by":"specifier","changed_fields":["body"],"child_ids":["t_id"],"proposal":"t_id","root_assignee":"bob"}"#);
}

#[test]
fn planned_tells_of_the_new_tasks() {
    let bench = Bench::new();
    let id = bench.ready();
    proposed(&bench, &id, ProposalKind::Plan, parts());
    insta::assert_snapshot!(rendered_events(&bench, "planned"), @r#"no run: {"by":"specifier","changed_fields":["body"],"child_ids":["t_id"],"proposal":"t_id","root_assignee":"bob"}"#);
}

#[test]
fn mission_reviewed_tells_of_the_answer_and_the_reason() {
    let bench = Bench::new();
    let id = bench.ready();
    let tasks = json!([{ "name": "a", "title": "a", "body": "b" }]);
    proposed(
        &bench,
        &id,
        ProposalKind::Progress,
        json!({ "answer": "replan", "reason": "r", "tasks": tasks }),
    );
    insta::assert_snapshot!(rendered_events(&bench, "mission_reviewed"), @r#"no run: {"answer":"replan","by":"specifier","child_ids":["t_id"],"dropped":[],"proposal":"t_id","reason":"r"}"#);
}
