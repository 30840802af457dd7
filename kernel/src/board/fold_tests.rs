//! Folding: replies to readers, events that are not folded, and failures that leave the log unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::testing::{Bench, alice, titled};
use crate::{
    Clock as _, Detach, EventFilter, EventId, FailPoints, Folded, StorageKind, Timestamp, WriterOptions,
};

fn fold(bench: &Bench, before: Timestamp, limit: u32) -> Result<Folded, crate::Error> {
    bench.call(move |board| board.fold_events(before, limit))
}

fn log(bench: &Bench) -> Vec<EventId> {
    let events =
        bench.readers.with(|view| view.events(&EventFilter { limit: 1000, ..EventFilter::default() }));
    events.unwrap().into_iter().map(|event| event.id).collect()
}

fn ends(bench: &Bench) -> (Option<EventId>, EventId) {
    bench
        .readers
        .with(|view| Ok((view.horizon()?.map(|horizon| horizon.through), view.last_event()?)))
        .unwrap()
}

/// Returns a time after all events so far.
fn soon(bench: &Bench) -> Timestamp {
    bench.clock.now().after(Duration::from_secs(1))
}

#[test]
fn a_log_says_where_it_starts_and_its_last_event_stays_what_it_was() {
    let bench = Bench::new();
    for _ in 0..3 {
        bench.ready();
    }
    let last = *log(&bench).last().unwrap();
    assert_eq!(ends(&bench), (None, last));
    assert_eq!(fold(&bench, soon(&bench), 2).unwrap().events, 2);
    assert_eq!(ends(&bench), (Some(EventId(2)), last));
    assert_eq!(fold(&bench, soon(&bench), 100).unwrap().events, 1);
    assert_eq!((ends(&bench), log(&bench)), ((Some(last), last), vec![]));
    assert_eq!(fold(&bench, soon(&bench), 100).unwrap(), Folded::default());
    bench.ready();
    assert_eq!(log(&bench), [EventId(last.0 + 1)], "an id is never used again");
    bench.check();
}

#[test]
fn only_what_is_old_is_folded_and_nothing_after_a_younger_event() {
    let bench = Bench::new();
    bench.ready();
    bench.clock.advance(Duration::from_hours(48));
    let yesterday = bench.clock.now();
    bench.ready();
    let foldable = bench.readers.with(|view| view.foldable(yesterday)).unwrap();
    assert_eq!((foldable.events, foldable), (1, fold(&bench, yesterday, 100).unwrap()));
    assert_eq!(log(&bench).len(), 1);
    bench.check();
}

#[test]
fn a_task_that_was_deleted_leaves_no_state_behind() {
    let bench = Bench::new();
    let id = bench.ready();
    fold(&bench, soon(&bench), 100).unwrap();
    bench
        .call(move |board| {
            board.archive(&id, Detach::Refuse, &alice())?;
            board.delete(&id, &alice())
        })
        .unwrap();
    bench.check();
    fold(&bench, soon(&bench), 100).unwrap();
    bench.check();
    bench.readers.with(|view| view.tx.each_folded_state(|task, _| panic!("{task} has a state"))).unwrap();
}

#[test]
fn an_event_that_makes_no_sense_is_evidence_and_stays() {
    let bench = Bench::new();
    let id = bench.create(titled("a")).id;
    bench.call(move |board| board.tx.store_folded_state(&id, Some(crate::State::Done))).unwrap();
    let refused = fold(&bench, soon(&bench), 100).unwrap_err();
    assert!(refused.hint().unwrap().contains("doctor --replay"), "{refused}");
    assert_eq!((log(&bench).len(), ends(&bench).0), (1, None));
}

#[test]
fn a_step_whose_commit_fails_leaves_the_log_as_it_was() {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let fail_point = FailPoints::failing(move |point| {
        (point == "commit" && switch.load(Ordering::Relaxed)).then_some(StorageKind::Full)
    });
    let bench = Bench::with(|options| WriterOptions { fail_point, ..options });
    bench.ready();
    bench.ready();
    let before = log(&bench);
    broken.store(true, Ordering::Relaxed);
    assert!(fold(&bench, soon(&bench), 1).is_err());
    broken.store(false, Ordering::Relaxed);
    assert_eq!((log(&bench), ends(&bench).0), (before, None));
    bench.check();
    assert_eq!(fold(&bench, soon(&bench), 100).unwrap().events, 2);
    bench.check();
}

#[test]
fn a_replay_that_goes_on_sees_each_change_and_begins_anew_after_what_was_folded_before_it_was_played() {
    let bench = Bench::new();
    let mut replay = crate::Replay::default();
    let first = bench.ready();
    let mut goes_on = |when: &str| {
        let found = bench.readers.with(|view| view.replay_on(&mut replay)).unwrap();
        assert_eq!(found, [], "{when}");
    };
    goes_on("at first");
    bench.ready();
    goes_on("with one more");
    bench.ready();
    fold(&bench, soon(&bench), 100).unwrap();
    goes_on("after what it has not played was folded");
    let gone = first.clone();
    bench
        .call(move |board| {
            board.archive(&gone, Detach::Refuse, &alice())?;
            board.delete(&gone, &alice())
        })
        .unwrap();
    goes_on("after one was deleted");
    let lost = bench.ready();
    goes_on("with one that will be lost");
    bench.call(move |board| board.tx.delete_task(&lost)).unwrap();
    let found = bench.readers.with(|view| view.replay_on(&mut replay)).unwrap();
    assert!(matches!(found[..], [crate::Difference::Missing { .. }]), "{found:?}");
}
