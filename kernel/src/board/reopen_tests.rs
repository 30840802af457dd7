//! Reopened and unarchived tasks, and the tasks around them.

use crate::testing::{Bench, alice, gated, titled};
use crate::{
    Actor, Approval, BlockKind, Blocking, Detach, EndCause, Error, Handoff, InitialState, NewTask, Question,
    Status, StopReason, Task, TaskId,
};

fn done(bench: &Bench, id: &TaskId) {
    let (id, result) = (id.clone(), Some("42".to_owned()));
    let handoff = Handoff { result, ..Handoff::default() };
    bench.call(move |board| board.complete(&id, handoff, None, &alice())).unwrap();
}

fn archive(bench: &Bench, id: &TaskId, detach: Detach) {
    let id = id.clone();
    bench.call(move |board| board.archive(&id, detach, &alice())).unwrap();
}

fn unarchive(bench: &Bench, id: &TaskId) -> Result<Task, Error> {
    let id = id.clone();
    bench.call(move |board| board.unarchive(&id, &alice()))
}

fn reopen(bench: &Bench, id: &TaskId) -> Result<crate::Reopened, Error> {
    let id = id.clone();
    bench.call(move |board| board.reopen(&id, Some("the figures are missing"), &alice()))
}

#[test]
fn a_reopened_task_runs_again_and_keeps_its_result_and_what_it_was_told() {
    let bench = Bench::new();
    let id = bench.ready();
    done(&bench, &id);
    let reopened = reopen(&bench, &id).unwrap();
    assert_eq!((reopened.task.status, reopened.task.completed_at), (Status::Ready, None));
    assert_eq!(reopened.task.result.as_deref(), Some("42"));
    let comments = bench.readers.with(|view| view.comments(&id)).unwrap();
    assert_eq!(comments[0].body, "REOPENED: the figures are missing");
    let run = bench.start(&id);
    let (worker, task) = (Actor::worker("bob", run, id.clone(), None), id.clone());
    bench.call(move |board| board.complete(&task, Handoff::default(), None, &worker)).unwrap();
    bench.finish(run, EndCause::Stopped(StopReason::Verdict));
    assert_eq!(bench.task(&id).status, Status::Done);
    bench.check();
}

#[test]
fn children_that_wait_for_a_reopened_task_wait_again_and_those_that_have_begun_go_on() {
    let bench = Bench::new();
    let parent = bench.ready();
    let [waits, works, over] = [0, 1, 2].map(|_| bench.child_of(&[&parent]));
    done(&bench, &parent);
    bench.start(&works);
    done(&bench, &over);
    let mut started = vec![works.clone(), over.clone()];
    started.sort();

    assert_eq!(reopen(&bench, &parent).unwrap().begun, started);

    let status = |id| bench.task(id).status;
    assert_eq!(
        [status(&waits), status(&works), status(&over)],
        [Status::Todo, Status::Running, Status::Done]
    );
    done(&bench, &parent);
    assert_eq!(status(&waits), Status::Ready);
    bench.check();
}

#[test]
fn only_what_is_done_is_reopened_and_only_what_is_archived_is_unarchived() {
    let bench = Bench::new();
    let id = bench.ready();
    for error in [reopen(&bench, &id).unwrap_err(), unarchive(&bench, &id).unwrap_err()] {
        assert!(error.to_string().contains("ready") && error.hint().is_some(), "{error}");
    }
    done(&bench, &id);
    assert!(unarchive(&bench, &id).is_err());
    archive(&bench, &id, Detach::Refuse);
    let hint = reopen(&bench, &id).unwrap_err().hint().unwrap();
    assert!(hint.contains(&format!("supervisor unarchive {id}")), "{hint}");
    let worker = Actor::worker("bob", crate::RunId(1), id.clone(), None);
    assert!(bench.call(move |board| board.unarchive(&id, &worker)).is_err(), "a person decides");
}

#[test]
fn an_archived_task_is_again_what_it_was() {
    let bench = Bench::new();
    let question =
        Question { text: "which?".to_owned(), choices: vec!["a".to_owned()], ..Question::default() };
    let make: Vec<(&str, Status)> = vec![
        ("done", Status::Done),
        ("ready", Status::Ready),
        ("triage", Status::Triage),
        ("blocked", Status::Blocked),
        ("approval", Status::Blocked),
        ("running", Status::Ready),
        ("review", Status::Review),
    ];
    for (how, status) in make {
        let initial_state = if how == "triage" { InitialState::Triage } else { InitialState::Normal };
        let approval = if how == "approval" { gated() } else { Approval::default() };
        let id = bench.create(NewTask { initial_state, approval, ..titled(how) }).id;
        let task = id.clone();
        match how {
            "done" => done(&bench, &id),
            "blocked" => {
                let blocking = Blocking {
                    kind: BlockKind::NeedsInput,
                    reason: Some("which?".to_owned()),
                    question: Some(question.clone()),
                    ..Blocking::default()
                };
                bench.call(move |board| board.block(&task, blocking, None, &alice())).map(drop).unwrap();
            }
            "review" => {
                let author = Actor::person("carol");
                let review = move |board: &mut crate::Board<'_>| {
                    board.request_review(&task, Handoff::default(), None, None, &author)
                };
                bench.call(review).map(drop).unwrap();
            }
            _ => {}
        }
        let run = (how == "running").then(|| bench.start(&id));
        let before = bench.task(&id);
        archive(&bench, &id, Detach::Refuse);
        if let Some(run) = run {
            bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
        }
        assert_eq!(bench.task(&id).status, Status::Archived, "{how}");

        let after = unarchive(&bench, &id).unwrap();

        assert_eq!(after.status, status, "{how}");
        if how != "running" {
            assert_eq!(
                (&after.block_kind, &after.block_reason, &after.question, &after.work_by),
                (&before.block_kind, &before.block_reason, &before.question, &before.work_by),
                "{how}"
            );
        }
        assert_eq!(after.is_done(), how == "done");
        bench.check();
    }
}

#[test]
fn a_task_whose_event_is_folded_comes_back_to_a_person() {
    let bench = Bench::new();
    let id = bench.ready();
    archive(&bench, &id, Detach::Refuse);
    let before = crate::Clock::now(&*bench.clock).after(std::time::Duration::from_secs(1));
    bench.clock.advance(std::time::Duration::from_mins(1));
    bench.call(move |board| board.fold_events(before, 100)).unwrap();
    let task = unarchive(&bench, &id).unwrap();
    assert_eq!((task.status, task.block_kind), (Status::Blocked, Some(BlockKind::NeedsInput)));
    assert!(task.block_reason.unwrap().contains("archived unfinished"));
    bench.check();
}

#[test]
fn what_comes_back_waits_for_no_parent_that_was_archived_unfinished() {
    for reopened in [false, true] {
        let bench = Bench::new();
        let parent = bench.ready();
        let child = bench.child_of(&[&parent]);
        if reopened {
            done(&bench, &child);
        } else {
            archive(&bench, &child, Detach::Refuse);
        }
        archive(&bench, &parent, Detach::Unlink);
        let task =
            if reopened { reopen(&bench, &child).unwrap().task } else { unarchive(&bench, &child).unwrap() };
        assert_eq!(task.status, Status::Ready);
        assert_eq!(bench.readers.with(|view| view.parents(&child)).unwrap(), []);
        bench.check();
    }
}

#[test]
fn a_task_that_was_cancelled_still_is_when_it_is_brought_back() {
    let bench = Bench::new();
    let id = bench.ready();
    let of = id.clone();
    bench.call(move |board| board.cancel(&of, None, &alice())).unwrap();

    archive(&bench, &id, Detach::Refuse);

    assert!(unarchive(&bench, &id).unwrap().is_cancelled());
}
