//! Tasks that are blocked for a dependency.

use crate::testing::{Bench, alice, titled};
use crate::{Actor, AtWork, BlockKind, Blocking, EndCause, Handoff, RunId, Status, StopReason, Task, TaskId};

fn dependency() -> Blocking {
    Blocking { kind: BlockKind::Dependency, reason: Some("the release".to_owned()), ..Blocking::default() }
}

fn worker(id: &TaskId, run: RunId) -> Actor {
    Actor::worker("bob", run, id.clone(), None)
}

/// Returns a task whose worker has blocked it for a dependency.
fn blocked_by_its_worker(bench: &Bench, parents: &[&TaskId]) -> (TaskId, RunId) {
    let id = bench.ready();
    let run = bench.start(&id);
    for parent in parents {
        let (parent, id) = ((*parent).clone(), id.clone());
        bench
            .call(move |board| {
                board.link(&parent, &id, AtWork::TakeBackWithin(std::time::Duration::ZERO), &worker(&id, run))
            })
            .unwrap();
    }
    let task = id.clone();
    bench.call(move |board| board.block(&task, dependency(), None, &worker(&task, run))).unwrap();
    (id, run)
}

fn end(bench: &Bench, id: &TaskId, run: RunId) -> Task {
    bench.finish(run, EndCause::Stopped(StopReason::Verdict));
    bench.task(id)
}

#[test]
fn a_task_that_waits_for_nothing_that_is_linked_waits_for_a_person() {
    let bench = Bench::new();
    let (id, run) = blocked_by_its_worker(&bench, &[]);
    let task = end(&bench, &id, run);
    assert_eq!((task.status, task.block_kind), (Status::Blocked, Some(BlockKind::Dependency)));
    assert_eq!(task.block_reason.as_deref(), Some("the release"));

    let unclaimed = bench.ready();
    let other = unclaimed.clone();
    let settled = bench.call(move |board| board.block(&other, dependency(), None, &alice())).unwrap();
    assert_eq!(
        (settled.task.status, settled.task.block_kind),
        (Status::Blocked, Some(BlockKind::Dependency))
    );
    let other = unclaimed.clone();
    let freed = bench.call(move |board| board.unblock(&other, None, &alice())).unwrap();
    assert_eq!(freed.status, Status::Ready);
    assert_eq!(bench.readers.with(|view| view.replay()).unwrap(), []);
}

#[test]
fn a_worker_that_waits_for_a_linked_task_goes_on_when_that_is_done() {
    for done_before_the_end in [false, true] {
        let bench = Bench::new();
        let parent = bench.create(titled("first")).id;
        let (id, run) = blocked_by_its_worker(&bench, &[&parent]);
        let complete = |bench: &Bench| {
            let parent = parent.clone();
            bench.call(move |board| board.complete(&parent, Handoff::default(), None, &alice())).unwrap();
        };
        if done_before_the_end {
            complete(&bench);
        }
        let status = end(&bench, &id, run).status;
        assert_eq!(status, if done_before_the_end { Status::Ready } else { Status::Todo });
        if !done_before_the_end {
            complete(&bench);
        }
        assert_eq!(bench.task(&id).status, Status::Ready);
        assert_eq!(bench.readers.with(|view| view.replay()).unwrap(), []);
    }
}

#[test]
fn a_worker_that_waits_for_what_it_made_goes_on_with_its_notes_and_the_results() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let by = worker(&id, run);
    let made = |new: crate::NewTask, by: &Actor| {
        let by = by.clone();
        bench.call(move |board| board.create(new, &by)).unwrap().task.id
    };
    let parts = [made(titled("one"), &by), made(titled("two"), &by)];
    let finished = made(titled("finished"), &by);
    let after = made(crate::NewTask { parents: vec![id.clone()], ..titled("after") }, &by);
    let stranger = bench.ready();
    let complete = |part: &TaskId, summary: &str| {
        let (part, summary) = (part.clone(), Some(summary.to_owned()));
        let handoff = Handoff { summary, ..Handoff::default() };
        bench.call(move |board| board.complete(&part, handoff, None, &alice())).unwrap();
    };
    complete(&finished, "early");

    let (task, again) = (id.clone(), by.clone());
    bench
        .call(move |board| {
            board.keep_notes(&task, "merge the two\nthen test", &again)?;
            board.block(&task, dependency(), None, &again)
        })
        .unwrap();

    assert_eq!(end(&bench, &id, run).status, Status::Todo);
    let parents = bench.readers.with(|view| view.parents(&id)).unwrap();
    assert_eq!(parents.len(), 3, "what waits for it or is a stranger's is none: {stranger} {after}");
    complete(&parts[0], "found one");
    assert_eq!(bench.task(&id).status, Status::Todo);
    complete(&parts[1], "found two");
    assert_eq!(bench.task(&id).status, Status::Ready);
    bench.start(&id);
    let limits = crate::ContextLimits::default();
    let context = bench.readers.with(|view| view.context(&id, limits, &|_| None)).unwrap().text;
    for words in [
        "## Notes of an earlier run\n\n> merge the two\n> then test\n",
        "> early",
        "> found one",
        "> found two",
    ] {
        assert!(context.contains(words), "{words}: {context}");
    }
    bench.check();
}

#[test]
fn a_worker_whose_parts_are_all_done_goes_on_at_once_with_their_results() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    let by = worker(&id, run);
    let maker = by.clone();
    let part = bench.call(move |board| board.create(titled("quick"), &maker)).unwrap().task.id;
    let handoff = Handoff { summary: Some("found it".to_owned()), ..Handoff::default() };
    bench.call(move |board| board.complete(&part, handoff, None, &alice())).unwrap();

    let task = id.clone();
    let goes_on = bench
        .call(move |board| {
            board.block(&task, dependency(), None, &by)?;
            board.goes_on_by_itself(&task)
        })
        .unwrap();

    assert!(goes_on);
    assert_eq!(end(&bench, &id, run).status, Status::Ready);
    bench.clock.advance(std::time::Duration::from_secs(1));
    let again = bench.start(&id);
    let context = |bench: &Bench| {
        let limits = crate::ContextLimits::default();
        bench.readers.with(|view| view.context(&id, limits, &|_| None)).unwrap().text
    };
    assert!(context(&bench).contains("> found it"), "{}", context(&bench));

    // A task of an earlier run that was done before this run began is no reason to go on: a person is asked.
    let (task, by) = (id.clone(), worker(&id, again));
    bench.call(move |board| board.block(&task, dependency(), None, &by)).unwrap();
    assert_eq!(end(&bench, &id, again).status, Status::Blocked);
    bench.check();
}

#[test]
fn a_worker_keeps_notes_of_its_own_task_alone() {
    let bench = Bench::new();
    let (id, other) = (bench.ready(), bench.ready());
    let by = worker(&id, bench.start(&id));
    let keep = |id: &TaskId, notes: &str| {
        let (id, notes, by) = (id.clone(), notes.to_owned(), by.clone());
        bench.call(move |board| board.keep_notes(&id, &notes, &by))
    };
    keep(&id, "mine").unwrap();
    assert!(keep(&other, "not mine").is_err());
    assert!(keep(&id, " ").is_err() && keep(&id, &"x".repeat(crate::model::limits::SUMMARY + 1)).is_err());
    assert_eq!(bench.task(&id).notes.as_deref(), Some("mine"));
}

#[test]
fn a_task_in_the_queue_that_is_blocked_for_its_open_parent_goes_on_by_itself() {
    let bench = Bench::new();
    let parent = bench.create(titled("first")).id;
    let child = bench.child_of(&[&parent]);
    let id = child.clone();
    let settled = bench.call(move |board| board.block(&id, dependency(), None, &alice())).unwrap();
    assert_eq!(settled.task.status, Status::Todo);
    bench.call(move |board| board.complete(&parent, Handoff::default(), None, &alice())).unwrap();
    assert_eq!(bench.task(&child).status, Status::Ready);
    assert_eq!(bench.readers.with(|view| view.replay()).unwrap(), []);
}
