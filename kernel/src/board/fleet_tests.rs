//! Fleets over many ticks: each task is created once, for any number of dispatches and any end of the other tasks.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fleet::FLEET_BATCH;
use crate::testing::{Bench, alice, titled};
use crate::{
    BlockKind, Blocking, Clock as _, Created, Error, Filter, FleetId, Handoff, NewFleetTask, NewTask, Status,
    Tenant, Tick,
};

fn fleet() -> FleetId {
    FleetId { profile: "insta".parse().unwrap(), root: "/srv/insta".to_owned() }
}

fn member(directory: &str) -> NewFleetTask {
    let tenant: Tenant = directory.parse().unwrap();
    let task = NewTask { tenant: Some(tenant), ..titled(&format!("engage {directory}")) };
    NewFleetTask { directory: directory.to_owned(), task }
}

fn dispatch(bench: &Bench, tick: &str, directories: &[String]) -> Vec<Result<Created, Error>> {
    let tick: Tick = tick.parse().unwrap();
    let tasks = directories.iter().map(|name| member(name)).collect();
    bench.call(move |board| board.dispatch_fleet(&fleet(), &tick, tasks, &alice())).unwrap()
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("acct-{n:02}")).collect()
}

#[test]
fn a_second_dispatch_of_a_tick_makes_nothing_and_returns_what_there_is() {
    let bench = Bench::new();
    let first: Vec<Created> =
        dispatch(&bench, "2026-11-23", &names(3)).into_iter().map(Result::unwrap).collect();
    // In any state, the task still is the task of its tick.
    bench
        .call({
            let id = first[0].task.id.clone();
            move |board| board.archive(&id, crate::Detach::Refuse, &alice())
        })
        .unwrap();

    let again: Vec<Created> =
        dispatch(&bench, "2026-11-23", &names(4)).into_iter().map(Result::unwrap).collect();

    assert!(first.iter().all(|created| !created.existing));
    let existing: Vec<bool> = again.iter().map(|created| created.existing).collect();
    assert_eq!(existing, [true, true, true, false]);
    assert!(first.iter().zip(&again).all(|(first, again)| first.task.id == again.task.id));
    bench.check();
}

#[test]
fn thirty_days_of_ticks_lose_no_task_and_double_none() {
    let bench = Bench::new();
    let accounts = names(50);
    let (mut day, mut expected) = (bench.clock.now(), 0);
    for number in 1..=30 {
        let tick = format!("2026-11-{number:02}");
        // A dispatch is cut off after some directories, and repeated as a whole.
        let cut = number * 7 % accounts.len();
        dispatch(&bench, &tick, &accounts[..cut]);
        let all = dispatch(&bench, &tick, &accounts);
        let existing = all.iter().filter(|made| made.as_ref().unwrap().existing).count();
        assert_eq!(existing, cut, "{tick}");
        expected += accounts.len();
        for made in all {
            let task = made.unwrap().task;
            // A captcha: this task waits for a person from the first day on, and delays no other task.
            let is_met = task.tenant.as_ref().is_some_and(|tenant| tenant.as_str() == "acct-17");
            let settle = move |board: &mut crate::Board<'_>| {
                if is_met {
                    let asked = Blocking { kind: BlockKind::NeedsInput, reason: None, ..Blocking::default() };
                    board.block(&task.id, asked, None, &alice())
                } else {
                    board.complete(&task.id, Handoff::default(), None, &alice())
                }
            };
            bench.call(settle).unwrap();
        }
        day = day.after(Duration::from_hours(24));
        bench.clock.set(day);
    }

    let tasks =
        bench.readers.with(|view| view.tasks(&Filter { limit: 10_000, ..Filter::default() })).unwrap().tasks;
    assert_eq!(tasks.len(), expected);
    let keys: BTreeSet<_> =
        tasks.iter().map(|task| (task.tenant.clone(), task.idempotency_key.clone())).collect();
    assert_eq!(keys.len(), expected, "a directory has two tasks at one tick");
    let waiting: Vec<_> = tasks.iter().filter(|task| task.status != Status::Done).collect();
    assert_eq!(waiting.len(), 30, "one a day waits for its person");
    assert!(
        waiting
            .iter()
            .all(|task| task.status == Status::Blocked && task.tenant == Some("acct-17".parse().unwrap()))
    );
    bench.check();
}

#[test]
fn a_task_that_is_refused_keeps_no_other_from_being_made() {
    let bench = Bench::new();
    let mut broken = member("acct-2");
    broken.task.title = String::new();
    let tasks = vec![member("acct-1"), broken, member("acct-3")];

    let made = bench
        .call(move |board| board.dispatch_fleet(&fleet(), &"t".parse().unwrap(), tasks, &alice()))
        .unwrap();

    let made: Vec<bool> = made.iter().map(Result::is_ok).collect();
    assert_eq!(made, [true, false, true]);
    assert_eq!(bench.readers.with(|view| view.tasks(&Filter::default())).unwrap().tasks.len(), 2);
}

#[test]
fn nobody_else_makes_a_task_that_stands_for_one_of_a_fleet() {
    let bench = Bench::new();
    let key = fleet().key("acct-01", &"2026-11-24".parse().unwrap());
    let forged =
        NewTask { idempotency_key: Some(key), tenant: Some("acct-01".parse().unwrap()), ..titled("forged") };

    let refused = bench.call(move |board| board.create(forged, &alice())).unwrap_err();

    assert!(refused.to_string().contains("those of fleets"), "{refused}");
    assert!(!dispatch(&bench, "2026-11-24", &names(1))[0].as_ref().unwrap().existing);
}

#[test]
fn a_transaction_takes_so_many_and_no_more() {
    let bench = Bench::new();
    let tasks: Vec<_> = (0..=FLEET_BATCH).map(|n| member(&format!("a{n}"))).collect();

    let refused = bench
        .call(move |board| board.dispatch_fleet(&fleet(), &"t".parse().unwrap(), tasks, &alice()))
        .unwrap_err();

    assert!(refused.to_string().contains("251"), "{refused}");
}
