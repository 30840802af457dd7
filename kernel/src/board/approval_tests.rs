//! Questions and approvals.

use std::time::Duration;

use crate::testing::{Bench, alice, gated, titled};
use crate::{
    Actor, Approval, BlockKind, Blocking, Error, ErrorCode, EventFilter, Force, Handoff, NewTask, Question,
    Status, Task, TaskId,
};

/// Way to let a task go on.
type Way = fn(&mut crate::Board<'_>, &TaskId) -> Result<(), Error>;

fn ann() -> Actor {
    Actor::person("ann")
}

fn guarded(parents: Vec<TaskId>) -> NewTask {
    NewTask {
        approval: Approval { approver: Some("ann".to_owned()), class: "spend".parse().ok(), ..gated() },
        parents,
        ..titled("order it")
    }
}

fn approved_by(approver: &str) -> NewTask {
    let mut new = guarded(Vec::new());
    new.approval.approver = Some(approver.to_owned());
    new
}

fn approve(bench: &Bench, id: &TaskId, actor: Actor) -> Result<Task, Error> {
    let id = id.clone();
    bench.call(move |board| board.approve(&id, None, None, &actor)).map(|settled| settled.task)
}

fn kinds(bench: &Bench, id: &TaskId) -> Vec<String> {
    let filter = EventFilter { task: Some(id.clone()), ..EventFilter::default() };
    let events = bench.readers.with(|view| view.events(&filter)).unwrap();
    events.into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_review_is_no_way_around_an_approval() {
    let bench = Bench::new();
    let parent = bench.ready();
    let id = bench.create(guarded(vec![parent])).id;
    let task = id.clone();
    let asked = bench.call(move |b| b.request_review(&task, Handoff::default(), None, None, &alice()));
    assert_eq!(asked.unwrap_err().code(), ErrorCode::Conflict);
    assert_eq!(bench.task(&id).status, Status::Todo);
}

#[test]
fn a_task_waits_for_its_parents_and_then_parks_with_their_results_until_its_approver_lets_it_go() {
    let bench = Bench::new();
    let parent = bench.ready();
    let id = bench.create(guarded(vec![parent.clone()])).id;
    assert_eq!(bench.task(&id).status, Status::Todo);
    let handoff = Handoff { summary: Some("it costs 5".to_owned()), ..Handoff::default() };
    let task = parent.clone();
    bench.call(move |board| board.complete(&task, handoff, None, &alice())).unwrap();

    let task = bench.task(&id);
    assert_eq!((task.status, task.block_kind), (Status::Blocked, Some(BlockKind::Approval)));
    assert_eq!(task.block_reason.as_deref(), Some("waits for the approval of ann (spend)"));
    assert_eq!(task.question.unwrap().results[0].summary.as_deref(), Some("it costs 5"));
    assert_eq!(kinds(&bench, &id), ["created", "blocked", "approval_requested"]);
    for actor in [alice(), Actor::person("bob")] {
        assert_eq!(approve(&bench, &id, actor).unwrap_err().code(), ErrorCode::Forbidden);
    }
    let refused: [Way; 5] = [
        |board, id| board.unblock(id, None, &alice()).map(drop),
        |board, id| board.complete(id, Handoff::default(), None, &alice()).map(drop),
        |board, id| board.promote(id, None, Force::Yes, &alice()).map(drop),
        |board, id| board.move_task(id, crate::Destination::Queue, &alice()).map(drop),
        |board, id| board.schedule(id, board.now().after(Duration::from_hours(1)), None, &alice()).map(drop),
    ];
    for way in refused {
        let id = id.clone();
        assert!(bench.call(move |board| way(board, &id)).is_err());
    }
    assert_eq!(bench.task(&id).status, Status::Blocked);

    assert_eq!(approve(&bench, &id, ann()).unwrap().status, Status::Ready);

    let run = bench.start(&id);
    bench.finish(run, crate::EndCause::Exited { code: 1 });
    assert_eq!(bench.task(&id).status, Status::Ready, "an approval holds for every attempt");
    bench.check();
}

#[test]
fn a_denied_task_goes_to_triage_and_asks_again_when_it_is_promoted() {
    let bench = Bench::new();
    let id = bench.create(guarded(Vec::new())).id;
    let child = bench.child_of(&[&id]);
    let task = id.clone();
    let error = bench.call(move |board| board.deny(&task, " ", &ann())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    let task = id.clone();
    let denied = bench.call(move |board| board.deny(&task, "too dear", &ann())).unwrap();
    assert_eq!(denied.task.status, Status::Triage);
    assert_eq!(bench.task(&child).status, Status::Todo);
    let task = id.clone();
    let again = bench.call(move |board| board.promote(&task, None, Force::No, &alice())).unwrap();
    assert_eq!((again.status, again.block_kind), (Status::Blocked, Some(BlockKind::Approval)));
    let task = id.clone();
    let error =
        bench.call(move |board| board.assign(&task, Some("ann".parse().unwrap()), &alice())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    bench.check();
}

#[test]
fn without_a_name_any_person_approves_and_no_worker_does() {
    let bench = Bench::new();
    let new = NewTask { approval: gated(), ..titled("send it") };
    let id = bench.create(new).id;
    let other = bench.ready();
    let run = bench.start(&other);
    let eve = Actor::worker("eve", run, other, None);
    assert_eq!(approve(&bench, &id, eve).unwrap_err().code(), ErrorCode::Forbidden);
    assert_eq!(approve(&bench, &id, alice()).unwrap().status, Status::Ready);
    for wrong in [
        NewTask {
            approval: Approval { state: None, class: None, ..guarded(Vec::new()).approval },
            ..guarded(Vec::new())
        },
        approved_by("bob"),
    ] {
        let error = bench.call(move |board| board.create(wrong, &alice())).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid, "{error}");
    }
}

#[test]
fn an_approver_is_a_person_or_a_profile_and_never_one_for_the_other() {
    let bench = Bench::new();
    let worker = |name: &str| {
        let own = bench.ready();
        Actor::worker(name, bench.start(&own), own, None)
    };
    for (approver, may, may_not) in [
        ("ann", ann(), worker("ann")),
        ("person:ann", ann(), worker("ann")),
        ("worker:ann", worker("ann"), ann()),
    ] {
        let id = bench.create(approved_by(approver)).id;
        let refused = approve(&bench, &id, may_not).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Forbidden, "{approver}");
        assert_eq!(approve(&bench, &id, may).unwrap().status, Status::Ready, "{approver}");
    }
}

#[test]
fn an_approval_for_another_run_is_refused() {
    let bench = Bench::new();
    let id = bench.create(guarded(Vec::new())).id;
    let task = id.clone();
    let run = Some(crate::RunId(999));
    let refused = bench.call(move |board| board.approve(&task, None, run, &ann())).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict, "{refused}");
    assert_eq!(bench.task(&id).block_kind, Some(BlockKind::Approval));
}

fn ask(bench: &Bench, id: &TaskId, question: Question) -> Result<(), Error> {
    let id = id.clone();
    let blocking = Blocking { question: Some(question), ..Blocking::default() };
    bench.call(move |board| board.block(&id, blocking, None, &alice())).map(drop)
}

#[test]
fn an_answer_is_a_choice_or_its_number_or_free_words_where_they_will_do() {
    let bench = Bench::new();
    let id = bench.ready();
    let choices = vec!["PostgreSQL".to_owned(), "SQLite".to_owned()];
    let question = Question { text: "which one?".to_owned(), choices, ..Question::default() };
    ask(&bench, &id, question.clone()).unwrap();
    let waiting = bench.readers.with(|view| view.waiting(&id)).unwrap().unwrap().text;
    assert!(waiting.contains("which one? [1: PostgreSQL, 2: SQLite]"), "{waiting}");
    for wrong in ["3", "0", "", "MySQL"] {
        let task = id.clone();
        let error = bench.call(move |board| board.answer(&task, wrong, &alice())).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid, "{wrong}");
    }
    let task = id.clone();
    let answered = bench.call(move |board| board.answer(&task, "2", &alice())).unwrap();
    assert_eq!((answered.answer.as_str(), answered.task.status), ("SQLite", Status::Ready));
    assert_eq!(answered.task.question, None);
    let comments = bench.readers.with(|view| view.comments(&id)).unwrap();
    assert_eq!(comments[0].body, "which one?\nAnswer: SQLite");
    let task = id.clone();
    let error = bench.call(move |board| board.answer(&task, "2", &alice())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    ask(&bench, &id, Question { free_text: true, ..question.clone() }).unwrap();
    let task = id.clone();
    assert_eq!(bench.call(move |board| board.answer(&task, "MySQL", &alice())).unwrap().answer, "MySQL");
    let many = (0..7).map(|n| n.to_string()).collect();
    let twice = vec!["a".to_owned(), "A".to_owned()];
    for choices in [many, twice, vec![String::new()]] {
        let error = ask(&bench, &id, Question { choices, ..question.clone() }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
    }
    bench.check();
}

#[test]
fn the_third_block_of_a_kind_goes_to_triage() {
    let bench = Bench::new();
    let id = bench.ready();
    for round in 1..=3 {
        let task = id.clone();
        let settled =
            bench.call(move |board| board.block(&task, Blocking::default(), None, &alice())).unwrap();
        if round < 3 {
            assert_eq!(settled.task.status, Status::Blocked);
            let task = id.clone();
            bench.call(move |board| board.unblock(&task, None, &alice())).unwrap();
        } else {
            assert_eq!(settled.task.status, Status::Triage);
        }
    }
    assert_eq!(kinds(&bench, &id).last().unwrap(), "block_loop_detected");
    bench.check();
}

#[test]
fn a_promoted_task_goes_on_at_once_and_force_unlinks_what_it_waits_for() {
    let bench = Bench::new();
    let parent = bench.ready();
    let id = bench.child_of(&[&parent]);
    let task = id.clone();
    let error = bench.call(move |board| board.promote(&task, None, Force::No, &alice())).unwrap_err();
    assert!(error.to_string().contains(&format!("waits for {parent}")), "{error}");
    let task = id.clone();
    let seen = bench
        .call(move |board| board.rehearse(|board| board.promote(&task, None, Force::Yes, &alice())))
        .unwrap();
    assert_eq!((seen.status, bench.task(&id).status), (Status::Ready, Status::Todo), "nothing was done");
    let task = id.clone();
    let forced = bench.call(move |board| board.promote(&task, None, Force::Yes, &alice())).unwrap();
    assert_eq!(forced.status, Status::Ready);
    assert!(kinds(&bench, &id).contains(&"unlinked".to_owned()));
    let later = crate::Clock::now(&*bench.clock).after(std::time::Duration::from_hours(1));
    let id = bench.create(NewTask { not_before: Some(later), ..titled("later") }).id;
    let task = bench.call(move |board| board.promote(&id, None, Force::No, &alice())).unwrap();
    assert_eq!((task.status, task.not_before), (Status::Ready, None));
    bench.check();
}

#[test]
fn a_person_overrides_an_approver_that_is_nobody_and_the_log_tells_whom() {
    let bench = Bench::new();
    let new = NewTask {
        approval: Approval { approver: Some("nobody-here".to_owned()), ..gated() },
        ..titled("buy")
    };
    let id = bench.create(new).id;
    let (by, again) = (id.clone(), id.clone());
    let refused = bench.call(move |board| board.approve(&by, None, None, &alice())).unwrap_err();
    assert!(refused.hint().unwrap().contains("--override"), "{refused:?}");

    bench.call(move |board| board.override_approval(&again, Some("she is away"), &alice())).unwrap();

    assert_eq!(bench.task(&id).status, crate::Status::Ready);
    let rendered = crate::board::event_snapshots::rendered_events(&bench, "approval_granted");
    assert!(rendered.contains(r#""overridden":"nobody-here""#), "{rendered}");
    let again = bench.call(move |board| board.override_approval(&id, None, &alice())).unwrap_err();
    assert!(matches!(again, crate::Error::Conflict { .. }), "it waits for none any more: {again}");
}

#[test]
fn a_person_who_has_the_name_of_a_profile_is_somebody_else_than_its_worker() {
    let bench = Bench::new();
    let id = bench.create(NewTask { approval: gated(), ..titled("buy") }).id;
    let bob = crate::Actor::person("bob");
    bench.call(move |board| board.approve(&id, None, None, &bob)).unwrap();
}

#[test]
fn nobody_blocks_a_task_in_the_supervisors_own_words() {
    let bench = Bench::new();
    for kind in crate::BlockKind::ALL.iter().copied() {
        let id = bench.ready();
        let blocking = crate::Blocking { kind, reason: Some("x".to_owned()), ..Blocking::default() };
        let blocked = bench.call(move |board| board.block(&id, blocking, None, &alice()));
        let invalid = matches!(blocked, Err(crate::Error::Invalid { .. }));
        assert_eq!(invalid, !crate::BlockKind::TOLD.contains(&kind), "{kind}");
    }
}
