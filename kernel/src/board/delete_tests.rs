//! Deletion: removed data, kept data, and tasks that go on.

use std::collections::BTreeSet;

use crate::testing::{Bench, alice, titled};
use crate::{Detach, Digest, Error, EventFilter, Handoff, NewTask, Status, TaskId};

fn archived(bench: &Bench, id: &TaskId) {
    let id = id.clone();
    bench.call(move |board| board.archive(&id, Detach::Unlink, &alice())).unwrap();
}

fn complete(bench: &Bench, id: &TaskId) {
    let id = id.clone();
    bench.call(move |board| board.complete(&id, Handoff::default(), None, &alice())).unwrap();
}

fn delete(bench: &Bench, id: &TaskId) -> Result<BTreeSet<Digest>, Error> {
    let id = id.clone();
    bench.call(move |board| board.delete(&id, &alice()))
}

#[test]
fn only_an_archived_task_is_deleted() {
    let bench = Bench::new();
    let id = bench.ready();
    let refused = delete(&bench, &id).unwrap_err();
    assert!(refused.hint().unwrap().contains(&format!("supervisor archive {id}")), "{refused}");
    let run = bench.start(&id);
    archived(&bench, &id);
    assert!(delete(&bench, &id).is_err(), "its worker is still being ended");
    assert_eq!(bench.readers.with(|view| view.run(run)).unwrap().map(|run| run.id), Some(run));
}

#[test]
fn a_deleted_task_is_gone_with_its_rows_and_its_log_and_id_stay() {
    let bench = Bench::new();
    let id = bench.ready();
    let run = bench.start(&id);
    bench.finish(run, crate::EndCause::Exited { code: 1 });
    let commented = id.clone();
    bench.call(move |board| board.comment(&commented, "hello", None, &alice())).unwrap();
    archived(&bench, &id);

    delete(&bench, &id).unwrap();

    let (task, runs, comments, events, known) = bench
        .readers
        .with(|view| {
            let events = view.events(&EventFilter { task: Some(id.clone()), ..EventFilter::default() })?;
            Ok((view.task(&id)?, view.runs(&id)?, view.comments(&id)?, events, view.has_had(&id)?))
        })
        .unwrap();
    assert!(task.is_none() && runs.is_empty() && comments.is_empty());
    let last = events.last().unwrap();
    assert_eq!((last.kind.as_str(), &last.payload.as_ref().unwrap()["comments"]), ("deleted", &1.into()));
    assert_eq!(events[0].kind, "created");
    assert!(known, "the id is never given out again");
    assert!(matches!(delete(&bench, &id), Err(Error::NotFound { .. })));
    bench.check();
}

#[test]
fn the_children_of_a_deleted_task_go_on() {
    let bench = Bench::new();
    let (done, other) = (bench.ready(), bench.ready());
    let child = bench.child_of(&[&done, &other]);
    complete(&bench, &done);
    archived(&bench, &done);

    delete(&bench, &done).unwrap();

    assert_eq!(bench.task(&child).status, Status::Todo, "the other parent is open");
    complete(&bench, &other);
    assert_eq!(bench.task(&child).status, Status::Ready);
    bench.check();
}

#[test]
fn a_child_that_was_left_behind_an_unfinished_parent_goes_on_when_that_is_deleted() {
    let bench = Bench::new();
    let parent = bench.ready();
    let child = bench.child_of(&[&parent]);
    // The child was completed by hand while its parent was open, so the parent could be archived without a refusal.
    complete(&bench, &child);
    archived(&bench, &parent);
    let again = child.clone();
    bench.call(move |board| board.move_task(&again, crate::Destination::Queue, &alice())).unwrap();

    delete(&bench, &parent).unwrap();

    assert_eq!(bench.task(&child).status, Status::Ready);
    bench.check();
}

#[test]
fn a_log_that_has_lost_a_task_without_a_word_is_told() {
    let bench = Bench::new();
    let id = bench.create(NewTask { title: "lost".to_owned(), ..titled("") }).id;
    let gone = id.clone();
    bench.call(move |board| board.tx.delete_task(&gone)).unwrap();
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare path is not general over lifetimes"
    )]
    let differences = bench.readers.with(|view| view.replay()).unwrap();
    assert!(
        matches!(&differences[..], [crate::Difference::Missing { task, .. }] if *task == id),
        "{differences:?}"
    );
}
