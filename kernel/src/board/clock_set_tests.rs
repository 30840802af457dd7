//! Stored times after a clock that was years ahead was set back.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::testing::{Bench, alice, start, titled};
use crate::{
    Clock as _, ClockSet, EndCause, Hold, HoldKind, HoldOn, HoldScope, Missed, NewHold, NewTask, Overlap,
    ScheduleName, ScheduleSpec, Siblings, Start, Status, TaskId, TemplateTask, Timestamp, Timing,
};

/// Error of the clock: ten years.
const AHEAD: Duration = Duration::from_hours(24 * 3650);
const MINUTE: Duration = Duration::from_mins(1);

/// Midnight of 2026-11-02 in UTC.
const NOW: Timestamp = Timestamp::from_secs(1_793_577_600);

/// Returns a board under a clock that is ahead.
fn ahead() -> Bench {
    let bench = Bench::new();
    bench.clock.set(NOW.after(AHEAD));
    bench
}

/// Corrects the clock, and lets the board follow.
fn correct(bench: &Bench) -> ClockSet {
    bench.clock.set(NOW);
    follow(bench)
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "the bare path is not general over lifetimes")]
fn follow(bench: &Bench) -> ClockSet {
    bench.call(|board| board.follow_set_clock()).unwrap()
}

#[expect(clippy::redundant_closure_for_method_calls, reason = "the bare path is not general over lifetimes")]
fn holds(bench: &Bench) -> Vec<Hold> {
    bench.readers.with(|view| view.holds()).unwrap()
}

fn each_minute(missed: Missed) -> ScheduleSpec {
    let task = TemplateTask { task: titled("work"), ..TemplateTask::default() };
    let timing = Timing { every: Some(MINUTE), ..Timing::default() };
    ScheduleSpec { timing, missed, overlap: Overlap::Replace, tasks: vec![task], ..ScheduleSpec::default() }
}

fn define(bench: &Bench, spec: ScheduleSpec) {
    let name: ScheduleName = "s".parse().unwrap();
    bench.call(move |board| board.define_schedules(&[(name, spec)], &BTreeSet::new())).unwrap();
}

/// Returns the ticks that made a task, in the order of decision.
fn ticks(bench: &Bench) -> Vec<Timestamp> {
    let name: ScheduleName = "s".parse().unwrap();
    let ticks = bench.readers.with(|view| view.ticks(&name, 100)).unwrap();
    let mut made: Vec<Timestamp> =
        ticks.into_iter().filter(|tick| !tick.tasks.is_empty()).map(|tick| tick.tick).collect();
    made.reverse();
    made
}

fn limited(bench: &Bench, account: Option<&str>) -> TaskId {
    let id = bench.ready();
    let (task, start) = (id.clone(), Start { account: account.map(str::to_owned), ..start(&*bench.clock) });
    let run = bench.call(move |board| board.start_run(&task, start)).unwrap().id;
    let until = bench.clock.now().after(5 * MINUTE);
    let ending =
        crate::Ending { siblings: Siblings::Hold, ..crate::Ending::new(EndCause::RateLimited { until }) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    id
}

#[test]
fn a_schedule_goes_on_from_the_corrected_time() {
    let bench = ahead();
    define(&bench, each_minute(Missed::Once));
    bench.clock.advance(MINUTE);
    bench.wake();

    let set = correct(&bench);

    assert_eq!((set.schedules, bench.next_wake()), (1, Some(NOW.after(MINUTE))));
    bench.clock.advance(MINUTE);
    bench.wake();
    assert_eq!(ticks(&bench), [NOW.after(AHEAD + MINUTE), NOW.after(MINUTE)]);
    assert_eq!(bench.readers.with(|view| view.clock_set()).unwrap(), Some(set));
    assert_eq!(follow(&bench).schedules, 0, "a second look finds nothing");
    bench.check();
}

#[test]
fn a_paused_schedule_that_is_resumed_goes_on_from_the_corrected_time() {
    let bench = ahead();
    define(&bench, each_minute(Missed::Once));
    bench.clock.set(NOW);
    define(&bench, ScheduleSpec { paused: true, ..each_minute(Missed::Once) });
    define(&bench, each_minute(Missed::Once));
    assert_eq!(bench.next_wake(), Some(NOW.after(MINUTE)));
}

#[test]
fn no_tick_is_made_twice_after_a_clock_was_set_back() {
    let bench = Bench::new();
    bench.clock.set(NOW);
    define(&bench, each_minute(Missed::All));
    for _ in 0..3 {
        bench.clock.advance(MINUTE);
        bench.wake();
    }
    bench.clock.set(NOW.after(MINUTE + MINUTE / 2));
    follow(&bench);
    for _ in 0..3 {
        bench.clock.advance(MINUTE);
        bench.wake();
    }

    assert_eq!(ticks(&bench), [1, 2, 3, 4].map(|minute| NOW.after(minute * MINUTE)));
}

#[test]
fn a_clock_that_was_behind_for_a_while_makes_up_for_nothing_that_was_decided() {
    let bench = Bench::new();
    bench.clock.set(NOW);
    define(&bench, each_minute(Missed::All));
    bench.clock.advance(MINUTE);
    bench.wake();
    bench.clock.set(Timestamp::from_secs(0));
    follow(&bench);

    bench.clock.set(NOW.after(MINUTE + MINUTE / 2));
    follow(&bench);
    bench.wake();

    assert_eq!(ticks(&bench), [NOW.after(MINUTE)]);
    assert_eq!(bench.next_wake(), Some(NOW.after(2 * MINUTE)));
}

#[test]
fn a_rate_limit_keeps_its_length() {
    let bench = ahead();
    let alone = limited(&bench, None);
    let of_account = limited(&bench, Some("main"));

    let set = correct(&bench);

    let end = Some(NOW.after(5 * MINUTE));
    assert_eq!((set.tasks, set.holds), (2, 1));
    assert_eq!(holds(&bench).iter().map(|hold| hold.until).collect::<Vec<_>>(), [end]);
    for id in [&alone, &of_account] {
        assert_eq!(bench.task(id).not_before, end);
    }
    assert_eq!(follow(&bench), ClockSet { at: NOW, ..ClockSet::default() });
    bench.clock.advance(5 * MINUTE);
    bench.wake();
    assert_eq!(bench.task(&alone).status, Status::Ready);
    bench.check();
}

#[test]
fn the_pause_of_another_boot_keeps_its_length() {
    let bench = ahead();
    let id = bench.ready();
    let mut pause = Duration::ZERO;
    for _ in 0..3 {
        bench.clock.advance(pause);
        bench.wake();
        let run = bench.start(&id);
        let at = bench.finish(run, EndCause::Exited { code: 1 }).retry_at;
        pause = at.map(|at| at.since(bench.clock.now())).unwrap_or_default();
    }
    bench.clock.reboot("boot-2");

    assert_eq!(correct(&bench).tasks, 1);

    assert_eq!(bench.task(&id).not_before, Some(NOW.after(pause)));
    bench.clock.advance(pause);
    bench.wake();
    assert_eq!(bench.task(&id).status, Status::Ready);
    bench.check();
}

#[test]
fn the_jitter_of_a_tick_keeps_its_length() {
    let bench = ahead();
    define(&bench, ScheduleSpec { jitter: Some(30 * MINUTE), ..each_minute(Missed::Once) });
    bench.clock.advance(MINUTE);
    let id = bench.wake().remove(0);
    let delay = bench.task(&id).not_before.unwrap().since(bench.clock.now());

    correct(&bench);

    assert_eq!(bench.task(&id).not_before, Some(NOW.after(delay)));
    bench.check();
}

#[test]
fn a_breaker_and_a_probe_are_tried_in_their_time() {
    let bench = ahead();
    let on = HoldOn { scope: HoldScope::Environment, name: "program:shell/default".to_owned() };
    let until = bench.clock.now().after(10 * MINUTE);
    bench.call(move |board| board.open_breaker(&on, "no /bin/sh", until)).unwrap();
    limited(&bench, Some("main"));
    bench.clock.advance(5 * MINUTE);
    bench.wake();
    let probe = bench.ready();
    let start = Start { account: Some("main".to_owned()), ..start(&*bench.clock) };
    bench.call(move |board| board.start_run(&probe, start)).unwrap();

    assert_eq!(correct(&bench).holds, 2);

    let mut ends: Vec<_> = holds(&bench).into_iter().map(|hold| (hold.kind, hold.until)).collect();
    ends.sort_by_key(|(_, until)| *until);
    let limit = (HoldKind::RateLimit, Some(NOW.after(MINUTE)));
    assert_eq!(ends, [limit, (HoldKind::Breaker, Some(NOW.after(10 * MINUTE)))]);
}

#[test]
fn a_time_that_a_caller_names_stays_and_is_counted() {
    let bench = ahead();
    let at = bench.clock.now().after(Duration::from_hours(1));
    let id = bench.create(NewTask { not_before: Some(at), ..titled("later") }).id;
    let on = HoldOn { scope: HoldScope::Profile, name: "bob".to_owned() };
    let new = NewHold { kind: HoldKind::Manual, reason: "not now".to_owned(), until: Some(at) };
    bench.call(move |board| board.hold(&on, &new, &alice())).unwrap();

    let set = correct(&bench);

    assert_eq!(set, ClockSet { at: NOW, named: 2, ..ClockSet::default() });
    assert_eq!(bench.task(&id).not_before, Some(at));
    assert_eq!(holds(&bench)[0].until, Some(at));
    assert!(follow(&bench).is_empty(), "it is told once");
    let message = set.to_string();
    assert!(message.contains("kept: 2 times that callers named"), "{message}");
}

#[test]
fn tasks_of_a_clock_that_was_ahead_are_no_younger_than_later_ones() {
    let bench = ahead();
    let first = bench.ready();
    bench.clock.advance(MINUTE);
    let second = bench.ready();

    correct(&bench);

    let third = bench.ready();
    let [a, b, c] = [&first, &second, &third].map(|id| bench.task(id).created_at);
    assert!(a < b && b <= c && c == NOW, "{a:?} {b:?} {c:?}");
    let offered = bench.offered(10, &crate::Accounts::new());
    assert_eq!(offered.first().map(|candidate| &candidate.task), Some(&first));
    bench.check();
}

#[test]
fn a_right_clock_changes_nothing() {
    let bench = Bench::new();
    bench.clock.set(NOW);
    define(&bench, each_minute(Missed::Once));
    limited(&bench, Some("main"));
    bench.create(NewTask { not_before: Some(NOW.after(AHEAD)), ..titled("later") });
    bench.clock.advance(MINUTE);
    bench.wake();
    let before = bench.dump();

    assert!(follow(&bench).is_empty());

    assert_eq!(bench.dump(), before);
}
