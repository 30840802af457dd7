//! Progress reviews of missions: their due times, and the effects of answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::proposal_tests::asked;
use crate::testing::{Bench, alice, titled};
use crate::{
    Error, Handoff, Lineage, MissionCaps, MissionLimits, NewTask, ProposalKind, ReviewTerms, Status, TaskId,
};

fn mission(bench: &Bench) -> TaskId {
    let caps = MissionCaps::default();
    bench.call(move |board| board.create_mission(titled("site"), &caps, &alice())).unwrap().task.id
}

fn part(bench: &Bench, mission: &TaskId, title: &str) -> TaskId {
    let lineage = Lineage { mission: Some(mission.to_string()), ..Lineage::default() };
    bench.create(NewTask { lineage, ..titled(title) }).id
}

fn due(bench: &Bench, terms: ReviewTerms) -> usize {
    bench.readers.with(|view| view.due_reviews(&terms, 10)).unwrap().len()
}

/// Asks for a review of a mission, and gives the answer in place of the reviewer.
fn reviewed(bench: &Bench, mission: &TaskId, answer: Value) -> Result<(), Error> {
    let new = asked(mission, ProposalKind::Progress);
    let made = bench.call(move |board| board.propose(new, &alice())).unwrap().task.id;
    let handoff = Handoff { metadata: Some(answer), ..Handoff::default() };
    bench.call(move |board| board.complete(&made, handoff, None, &alice()).map(drop))
}

#[test]
fn a_review_is_due_after_so_many_moves_or_when_nothing_has_moved_for_the_time_and_then_not_again() {
    let bench = Bench::new();
    let id = mission(&bench);
    let moves = |moves| ReviewTerms { moves: Some(moves), idle: None };
    let idle = ReviewTerms { moves: None, idle: Some(Duration::from_mins(30)) };
    part(&bench, &id, "a");
    assert_eq!((due(&bench, moves(3)), due(&bench, moves(2)), due(&bench, idle)), (0, 1, 0));
    let next = bench.readers.with(|view| view.next_review(&idle)).unwrap().unwrap();
    bench.clock.advance(Duration::from_mins(30));
    assert_eq!((due(&bench, idle), next), (1, crate::Clock::now(&*bench.clock)));

    let new = asked(&id, ProposalKind::Progress);
    assert_eq!(bench.call(move |board| board.ask_for_review(new)).unwrap(), None);

    bench.clock.advance(Duration::from_hours(24));
    assert_eq!((due(&bench, moves(1)), due(&bench, idle)), (0, 0), "nothing has moved since");
    assert_eq!(bench.readers.with(|view| view.next_review(&idle)).unwrap(), None);
    let open = bench.offered(10, &crate::Accounts::new());
    assert_eq!(open.len(), 3, "the mission, its part and the review");
    let review = open.into_iter().find(|one| one.assignee.as_str() == "specifier").unwrap().task;
    let handoff =
        Handoff { metadata: Some(json!({ "answer": "continue", "reason": "fine" })), ..Handoff::default() };
    bench.call(move |board| board.complete(&review, handoff, None, &alice())).unwrap();
    assert_eq!(due(&bench, moves(1)), 0, "its own review moves nothing");
    part(&bench, &id, "b");
    assert_eq!(due(&bench, moves(1)), 1);
    let over = id.clone();
    bench.call(move |board| board.complete(&over, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(due(&bench, moves(1)), 0, "it is over");
    bench.check();
}

#[test]
fn another_plan_drops_and_makes_tasks_at_once_or_not_at_all() {
    let bench = Bench::new();
    let id = mission(&bench);
    let (a, b) = (part(&bench, &id, "a"), part(&bench, &id, "b"));
    let other = bench.ready();
    let new = |after: &[&TaskId]| json!([{ "name": "c", "title": "c", "body": "b", "after": after }]);
    for (drop, after, told) in [
        (vec![&other], vec![], "task of the mission"),
        (vec![&id], vec![], "not part of the plan"),
        (vec![&a], vec![&other], "task of the mission"),
    ] {
        let answer = json!({ "answer": "replan", "reason": "r", "drop": drop, "tasks": new(&after) });
        let refused = reviewed(&bench, &id, answer).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
        assert_eq!((bench.task(&a).status, bench.task(&id).status), (Status::Ready, Status::Ready));
    }

    reviewed(&bench, &id, json!({ "answer": "replan", "reason": "r", "drop": [a], "tasks": new(&[&b]) }))
        .unwrap();

    assert_eq!(bench.task(&a).status, Status::Archived);
    let waits_for = |task: &TaskId| bench.readers.with(|view| view.parents(task)).unwrap();
    let made = waits_for(&id);
    assert_eq!((made.len(), waits_for(&made[0])), (1, vec![b]));
    assert_eq!((bench.task(&id).status, bench.task(&made[0]).mission()), (Status::Todo, id.as_str()));
    bench.check();
}

#[test]
fn a_review_that_says_stop_pauses_the_mission_and_asks_a_person() {
    let bench = Bench::new();
    let id = mission(&bench);
    reviewed(&bench, &id, json!({ "answer": "stop", "reason": "nobody reads it" })).unwrap();
    let shown = bench.readers.with(|view| view.mission(&id, &MissionLimits::default(), &alice())).unwrap();
    assert!(shown.mission.question.unwrap().text.contains("its review says stop: nobody reads it"));
    assert_eq!(bench.offered(10, &crate::Accounts::new()).len(), 0);
    assert_eq!(due(&bench, ReviewTerms { moves: Some(1), idle: None }), 0, "one that is paused");
    bench.check();
}
