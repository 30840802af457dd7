//! Tests of the waits for a failure's end: pauses, shortages and environments.

use super::testing::{at, key as other};
use super::*;
use crate::run::environment::Needs;

fn key() -> TaskKey {
    other(1)
}

fn exact() -> Backoff {
    Backoff { chance: || 0.0, ..Backoff::default() }
}

fn started(backoff: &mut Backoff, key: &TaskKey) -> bool {
    backoff.started(key, Needs::scratch("shell").all(), at(10), at(10))
}

fn breakage(backoff: &Backoff, n: u32) -> Option<Waiting> {
    backoff.breakage(&other(n), Needs::scratch("shell").all(), &BTreeSet::new())
}

fn trip(backoff: &mut Backoff, n: u32, now: Timestamp) {
    backoff.trip(Needs::scratch("shell").program(), other(n), "no /bin/sh".to_owned(), now);
}

#[test]
fn a_pause_ends_with_one_probe_and_with_everything_when_that_works() {
    let mut backoff = exact();
    backoff.pause("disk full".to_owned(), at(0));
    assert_eq!(backoff.allowance(), Allowance::Nothing);
    assert_eq!(backoff.nearest(), Some(at(1)));
    let waiting = backoff.obstacle().unwrap();
    assert_eq!(
        (waiting.text.as_str(), waiting.until),
        ("waits for dispatch to resume: disk full", Some(at(1)))
    );
    assert!(backoff.expire(at(1)));
    assert_eq!(backoff.allowance(), Allowance::OneProbe);
    assert_eq!(backoff.nearest(), None);
    backoff.probing(at(1));
    assert_eq!(backoff.allowance(), Allowance::Nothing);
    assert!(started(&mut backoff, &key()));
    assert_eq!(backoff.allowance(), Allowance::Everything);
}

#[test]
fn shortages_in_a_row_are_probed_more_and_more_seldom() {
    let mut backoff = exact();
    let waits: Vec<_> = (0..8)
        .map(|_| {
            backoff.shortage("no descriptors".to_owned(), at(0));
            let until = backoff.nearest().unwrap();
            backoff.probing(at(0));
            until
        })
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60].map(at));
    started(&mut backoff, &key());
    backoff.shortage("no descriptors".to_owned(), at(0));
    assert_eq!(backoff.nearest(), Some(at(1)));
}

#[test]
fn what_fails_of_one_shortage_at_the_same_moment_makes_no_longer_pause() {
    let mut backoff = exact();
    for _ in 0..16 {
        backoff.shortage("no descriptors".to_owned(), at(0));
    }
    assert_eq!(backoff.nearest(), Some(at(1)));
    assert!(backoff.expire(at(1)));
    backoff.shortage("no descriptors".to_owned(), at(1));
    assert_eq!(backoff.nearest(), Some(at(3)), "nobody has shown that it is over");
}

#[test]
fn a_wait_is_shorter_by_chance_and_never_longer() {
    let mut backoff = Backoff { chance: || 1.0, ..Backoff::default() };
    backoff.shortage("no descriptors".to_owned(), at(0));
    assert_eq!(backoff.nearest(), Some(Timestamp::from_micros(800_000)));
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_a_wait() {
    let mut backoff = exact();
    backoff.defer(key(), "no such policy".to_owned(), at(100_000));
    assert!(backoff.deferral(&key()).unwrap().text.ends_with("no such policy"));
    assert!(backoff.expire(at(10)));
    assert_eq!(backoff.deferral(&key()), None);
}

#[test]
fn after_the_first_failure_another_task_looks_at_once_and_later_all_wait_for_one() {
    let mut backoff = exact();
    trip(&mut backoff, 1, at(0));
    assert_eq!(breakage(&backoff, 1).unwrap().until, Some(at(1)));
    assert_eq!(breakage(&backoff, 2), None, "it tells whether the task is at fault");
    backoff.try_environments(&other(2), Needs::scratch("shell").all());
    assert!(breakage(&backoff, 3).unwrap().text.ends_with("another task is trying it"));
    trip(&mut backoff, 2, at(0));
    for n in 1..4 {
        let waiting = breakage(&backoff, n).unwrap();
        assert_eq!((waiting.code, waiting.until), (WaitingCode::Environment, Some(at(2))));
    }
    assert!(backoff.expire(at(2)));
    assert_eq!(breakage(&backoff, 1), None);
    let elsewhere = Needs::scratch("other");
    assert_eq!(backoff.breakage(&other(9), elsewhere.all(), &BTreeSet::new()), None);
}

#[test]
fn an_environment_that_works_for_another_task_is_not_what_is_broken() {
    let mut backoff = exact();
    trip(&mut backoff, 1, at(0));
    assert_eq!(backoff.charge(&other(1)), Charge::Environment);
    assert!(started(&mut backoff, &other(2)));
    assert_eq!(backoff.charge(&other(1)), Charge::Task);
    assert_eq!(breakage(&backoff, 1), None);
    started(&mut backoff, &other(1));
    assert_eq!(backoff.charge(&other(1)), Charge::Environment);
}

#[test]
fn a_run_that_began_before_something_broke_says_nothing_of_it() {
    let mut backoff = exact();
    trip(&mut backoff, 1, at(20));
    backoff.shortage("no descriptors".to_owned(), at(20));
    let needs = Needs::scratch("shell");
    assert!(!backoff.started(&other(2), needs.all(), at(19), at(30)));
    assert!(breakage(&backoff, 1).is_some());
    assert_eq!((backoff.allowance(), backoff.charge(&other(1))), (Allowance::Nothing, Charge::Environment));
    backoff.try_environments(&other(3), needs.all());
    assert!(backoff.started(&other(3), needs.all(), at(19), at(30)), "it has tried it, by whatever clock");
    assert!(breakage(&backoff, 1).is_none());
}

#[test]
fn what_works_after_the_clock_was_set_back_works() {
    let mut backoff = exact();
    trip(&mut backoff, 1, at(1000));
    assert!(backoff.started(&other(2), Needs::scratch("shell").all(), at(5), at(6)));
    assert!(breakage(&backoff, 1).is_none());
}

#[test]
fn a_probe_that_came_to_nothing_leaves_room_for_the_next() {
    let mut backoff = exact();
    trip(&mut backoff, 1, at(0));
    backoff.try_environments(&other(2), Needs::scratch("shell").all());
    backoff.tried(&other(2));
    assert_eq!(breakage(&backoff, 3), None);
}
