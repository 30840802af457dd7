//! Schedules on a board: each tick is decided once, for any events in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::testing::{Bench, alice, titled};
use crate::{
    Actor, Archived, Clock as _, Detach, EndCause, EventFilter, FailPoints, Filter, Handoff, ManualClock,
    Missed, NewTask, Overlap, Profile, ScheduleName, ScheduleSpec, SeededEntropy, Status, StopReason,
    StorageKind, Task, TaskId, TemplateTask, TickOutcome, Timestamp, Timing, WriterOptions,
};

/// Midnight of 2026-11-02 in UTC, a Monday.
const MONDAY: Timestamp = Timestamp::from_secs(1_793_577_600);
const HOUR: Duration = Duration::from_hours(1);

fn name(text: &str) -> ScheduleName {
    text.parse().unwrap()
}

fn every(period: Duration) -> Timing {
    Timing { every: Some(period), ..Timing::default() }
}

fn one(title: &str) -> Vec<TemplateTask> {
    vec![TemplateTask { task: titled(title), ..TemplateTask::default() }]
}

fn hourly(overlap: Overlap) -> ScheduleSpec {
    ScheduleSpec { timing: every(HOUR), overlap, tasks: one("work of {date}"), ..ScheduleSpec::default() }
}

/// Returns a board at midnight with one schedule.
fn bench(spec: &ScheduleSpec) -> Bench {
    let bench = Bench::new();
    bench.clock.set(MONDAY);
    define(&bench, spec);
    bench
}

fn define(bench: &Bench, spec: &ScheduleSpec) {
    let spec = spec.clone();
    bench.call(move |board| board.define_schedules(&[(name("s"), spec)], &BTreeSet::new())).unwrap();
}

fn tasks(bench: &Bench) -> Vec<Task> {
    tasks_for(bench, None)
}

/// Returns the tasks of an assignee. A list has at most 10,000.
fn tasks_for(bench: &Bench, assignee: Option<Profile>) -> Vec<Task> {
    let filter = Filter { assignee, limit: 10_000, archived: Archived::Show, ..Filter::default() };
    let mut tasks = bench.readers.with(|view| view.tasks(&filter)).unwrap().tasks;
    tasks.sort_by_key(|task| (task.origin.tick, task.title.clone()));
    tasks
}

fn outcomes(bench: &Bench) -> Vec<TickOutcome> {
    let ticks = bench.readers.with(|view| view.ticks(&name("s"), 100)).unwrap();
    ticks.into_iter().rev().map(|tick| tick.outcome).collect()
}

fn after(bench: &Bench, time: Duration) {
    bench.clock.advance(time);
    bench.wake();
}

fn finish(bench: &Bench, task: &Task) {
    let id = task.id.clone();
    bench.call(move |board| board.complete(&id, Handoff::default(), None, &alice())).unwrap();
}

#[test]
fn a_tick_makes_its_task_and_says_where_it_comes_from() {
    let bench = bench(&hourly(Overlap::Skip));
    assert_eq!(bench.next_wake(), Some(MONDAY.after(HOUR)));

    after(&bench, HOUR);

    let task = tasks(&bench).remove(0);
    assert_eq!((task.title.as_str(), task.status), ("work of 2026-11-02", Status::Ready));
    assert_eq!((task.origin.schedule, task.origin.tick), (Some(name("s")), Some(MONDAY.after(HOUR))));
    assert_eq!(task.created_by.as_deref(), Some("schedule:s"));
    assert_eq!(bench.next_wake(), Some(MONDAY.after(2 * HOUR)));
    bench.check();
}

#[test]
fn a_template_makes_its_tasks_in_the_order_of_their_parents() {
    let named = |name: &str, after: &[&str]| TemplateTask {
        name: name.to_owned(),
        after: after.iter().map(|name| (*name).to_owned()).collect(),
        task: titled(name),
    };
    let tasks_of = vec![named("write", &["scout", "edit"]), named("edit", &["scout"]), named("scout", &[])];
    let bench = bench(&ScheduleSpec { tasks: tasks_of, ..hourly(Overlap::Skip) });

    after(&bench, HOUR);

    let made = tasks(&bench);
    let id = |title: &str| made.iter().find(|task| task.title == title).unwrap().id.clone();
    let parents = bench.readers.with(|view| view.parents(&id("write"))).unwrap();
    assert_eq!(BTreeSet::from_iter(parents), BTreeSet::from([id("scout"), id("edit")]));
    assert_eq!(bench.task(&id("scout")).status, Status::Ready);
    assert_eq!(bench.task(&id("write")).status, Status::Todo);
}

#[test]
fn a_tick_whose_tasks_are_refused_makes_none_of_them_and_says_why() {
    let parent: crate::TaskId = "t_00000001".parse().unwrap();
    let tasks_of = ["good", "bad"].map(|title| TemplateTask {
        name: title.to_owned(),
        after: Vec::new(),
        task: NewTask {
            parents: if title == "bad" { vec![parent.clone()] } else { Vec::new() },
            ..titled(title)
        },
    });
    let bench = bench(&ScheduleSpec { tasks: tasks_of.to_vec(), ..hourly(Overlap::Skip) });

    after(&bench, HOUR);

    assert!(tasks(&bench).is_empty());
    let tick = bench.readers.with(|view| view.ticks(&name("s"), 1)).unwrap().remove(0);
    assert_eq!(tick.outcome, TickOutcome::Failed);
    assert!(tick.note.unwrap().contains("t_00000001"));
    assert_eq!(bench.next_wake(), Some(MONDAY.after(2 * HOUR)));
}

#[test]
fn a_tick_makes_nothing_while_an_earlier_task_is_open() {
    let bench = bench(&hourly(Overlap::Skip));

    after(&bench, HOUR);
    after(&bench, HOUR);
    finish(&bench, &tasks(&bench)[0]);
    after(&bench, HOUR);

    assert_eq!(outcomes(&bench), [TickOutcome::Made, TickOutcome::Skipped, TickOutcome::Made]);
    assert_eq!(tasks(&bench).len(), 2);
}

#[test]
fn a_tick_that_is_queued_is_made_when_the_earlier_tasks_are_over() {
    let bench = bench(&hourly(Overlap::Queue));
    after(&bench, HOUR);
    after(&bench, HOUR);
    after(&bench, HOUR);
    assert_eq!(tasks(&bench).len(), 1);

    finish(&bench, &tasks(&bench)[0]);
    assert_eq!(bench.next_wake(), Some(bench.clock.now()), "the daemon wakes the board at once");
    bench.wake();

    let made = tasks(&bench);
    assert_eq!((made.len(), made[1].origin.tick), (2, Some(MONDAY.after(2 * HOUR))));
    assert_eq!(outcomes(&bench), [TickOutcome::Made, TickOutcome::Made, TickOutcome::Queued]);
    assert_eq!(bench.next_wake(), Some(MONDAY.after(4 * HOUR)));
}

#[test]
fn a_tick_that_replaces_archives_the_earlier_tasks_and_says_why() {
    let bench = bench(&hourly(Overlap::Replace));
    after(&bench, HOUR);

    after(&bench, HOUR);

    let made = tasks(&bench);
    assert_eq!([made[0].status, made[1].status], [Status::Archived, Status::Ready]);
    let comments = bench.readers.with(|view| view.comments(&made[0].id)).unwrap();
    assert!(comments[0].body.starts_with("REPLACED"), "{comments:?}");
    bench.check();
}

#[test]
fn a_tick_that_replaces_waits_until_the_run_that_it_ends_has_ended_and_the_latest_of_several_is_made() {
    let bench = bench(&hourly(Overlap::Replace));
    after(&bench, HOUR);
    let first = tasks(&bench).remove(0).id;
    let run = bench.start(&first);

    after(&bench, HOUR);
    after(&bench, HOUR);

    assert_eq!(tasks(&bench).len(), 1, "its run has not ended");
    assert_eq!(outcomes(&bench), [TickOutcome::Made, TickOutcome::Skipped, TickOutcome::Queued]);
    let comments = bench.readers.with(|view| view.comments(&first)).unwrap();
    assert_eq!(comments.len(), 1, "the second tick asks for nothing that the first has asked for");
    bench.finish(run, EndCause::Stopped(StopReason::Verdict));
    assert_eq!(bench.next_wake(), Some(bench.clock.now()), "the end of the run wakes the board");
    bench.wake();
    let made = tasks(&bench);
    assert_eq!([made[0].status, made[1].status], [Status::Archived, Status::Ready]);
    assert_eq!(made[1].origin.tick, Some(MONDAY.after(3 * HOUR)));
    bench.check();
}

#[test]
fn missed_ticks_become_what_the_schedule_says() {
    let made = |missed: Missed| {
        let bench = bench(&ScheduleSpec { missed, ..hourly(Overlap::Replace) });
        after(&bench, 10 * HOUR + HOUR / 2);
        let ticks = bench.readers.with(|view| view.ticks(&name("s"), 100)).unwrap();
        (tasks(&bench).len(), ticks.iter().map(|tick| tick.missed).sum::<u64>())
    };
    assert_eq!(made(Missed::Skip), (0, 10));
    assert_eq!(made(Missed::Once), (1, 9));
    assert_eq!(made(Missed::All), (10, 0));
}

#[test]
fn the_ticks_of_a_command_wait_for_each_other_or_are_skipped_as_the_schedule_says() {
    let due = |overlap: Overlap| {
        let words = ["dispatch-fleet", "shell", "/fleet"].map(str::to_owned).to_vec();
        let spec = ScheduleSpec {
            tasks: Vec::new(),
            command: Some(words),
            missed: Missed::All,
            jitter: Some(HOUR),
            ..hourly(overlap)
        };
        let bench = bench(&spec);
        after(&bench, 3 * HOUR + HOUR / 2);
        let mut carried_out = Vec::new();
        while let Some(command) = bench.readers.with(|view| view.due_commands(8)).unwrap().pop() {
            assert_eq!(command.words.last().unwrap(), "--jitter=3600s");
            carried_out.push(command.tick);
            bench.call(move |board| board.settle_command(&command, None)).unwrap();
        }
        (carried_out, outcomes(&bench))
    };
    let at = |hours: u32| MONDAY.after(hours * HOUR);
    let (carried_out, skipped) = due(Overlap::Queue);
    assert_eq!((carried_out, skipped), (vec![at(1), at(2), at(3)], vec![TickOutcome::Made; 3]));
    let (carried_out, skipped) = due(Overlap::Skip);
    assert_eq!((carried_out, skipped.len()), (vec![at(1), at(2)], 3));
    assert_eq!(skipped[2], TickOutcome::Skipped);

    let spec = ScheduleSpec {
        tasks: Vec::new(),
        command: Some(vec!["dispatch-fleet".to_owned()]),
        ..hourly(Overlap::Replace)
    };
    let refused = crate::check_schedule(&name("s"), &spec).unwrap_err();
    assert!(refused.to_string().contains("overlap"), "{refused}");
}

#[test]
fn a_daemon_that_dies_before_it_has_noted_the_end_of_a_command_loses_no_later_tick() {
    let command = Some(["dispatch-fleet", "shell", "/fleet"].map(str::to_owned).to_vec());
    let bench = bench(&ScheduleSpec { tasks: Vec::new(), command, ..hourly(Overlap::Skip) });
    after(&bench, HOUR);
    let due = || bench.readers.with(|view| view.due_commands(8)).unwrap();
    assert_eq!(due().len(), 1, "it is carried out, and nobody notes it");

    after(&bench, HOUR);

    for hours in 1..=2 {
        let command = due().remove(0);
        assert_eq!(command.tick, MONDAY.after(hours * HOUR));
        bench.call(move |board| board.settle_command(&command, None)).unwrap();
    }
    assert_eq!(outcomes(&bench), [TickOutcome::Made; 2]);
}

#[test]
fn at_most_a_thousand_missed_ticks_are_made_up_for_and_the_rest_is_counted() {
    let spec = ScheduleSpec {
        missed: Missed::All,
        timing: every(Duration::from_secs(10)),
        ..hourly(Overlap::Replace)
    };
    let bench = bench(&spec);

    bench.clock.advance(Duration::from_mins(200));
    while bench.next_wake().is_some_and(|next| next <= bench.clock.now()) {
        bench.wake();
    }

    assert_eq!(tasks(&bench).len(), 1000);
    let filter = EventFilter { kinds: vec!["ticked".to_owned()], limit: 1, ..EventFilter::default() };
    let first = bench.readers.with(|view| view.events(&filter)).unwrap().remove(0);
    assert_eq!(first.payload.unwrap()["missed"], 200);
}

#[test]
fn a_clock_that_is_set_back_makes_no_tick_twice_and_one_that_is_set_forward_misses_some() {
    let bench = bench(&ScheduleSpec { missed: Missed::Skip, ..hourly(Overlap::Replace) });
    after(&bench, HOUR);
    bench.clock.set(MONDAY);
    bench.wake();
    after(&bench, HOUR);
    assert_eq!(outcomes(&bench), [TickOutcome::Made], "the first hour comes twice");

    bench.clock.set(MONDAY.after(5 * HOUR + HOUR / 2));
    bench.wake();

    assert_eq!(outcomes(&bench), [TickOutcome::Made, TickOutcome::Missed]);
    assert_eq!(bench.next_wake(), Some(MONDAY.after(6 * HOUR)));
}

#[test]
fn a_paused_schedule_lets_its_ticks_pass_and_goes_on_with_the_next() {
    let spec = hourly(Overlap::Skip);
    let bench = bench(&spec);
    define(&bench, &ScheduleSpec { paused: true, ..spec.clone() });
    assert_eq!(bench.next_wake(), None);
    after(&bench, 3 * HOUR + HOUR / 2);

    define(&bench, &spec);
    bench.wake();

    assert!(tasks(&bench).is_empty());
    assert_eq!(bench.next_wake(), Some(MONDAY.after(4 * HOUR)));
}

#[test]
fn another_timing_begins_now_and_other_tasks_leave_the_ticks_as_they_are() {
    let spec = hourly(Overlap::Skip);
    let bench = bench(&spec);
    bench.clock.advance(2 * HOUR);
    define(&bench, &ScheduleSpec { tasks: one("other"), ..spec.clone() });
    assert_eq!(bench.next_wake(), Some(MONDAY.after(HOUR)), "what is due stays due");

    define(&bench, &ScheduleSpec { timing: every(2 * HOUR), ..spec });

    assert_eq!(bench.next_wake(), Some(MONDAY.after(4 * HOUR)));
}

#[test]
fn a_schedule_that_is_no_longer_defined_is_forgotten_unless_its_file_is_defective() {
    let bench = bench(&hourly(Overlap::Skip));
    bench.call(|board| board.define_schedules(&[], &BTreeSet::from([name("s")]))).unwrap();
    assert!(bench.next_wake().is_some());

    bench.call(|board| board.define_schedules(&[], &BTreeSet::new())).unwrap();

    assert_eq!(bench.next_wake(), None);
}

#[test]
fn jitter_delays_the_tasks_and_not_the_tick() {
    let jitter = Some(Duration::from_mins(30));
    let bench = bench(&ScheduleSpec { jitter, ..hourly(Overlap::Replace) });

    for _ in 0..20 {
        after(&bench, HOUR);
    }

    let delays: BTreeSet<i64> = tasks(&bench)
        .iter()
        .map(|task| task.not_before.map_or(0, |at| at.as_secs() - task.origin.tick.unwrap().as_secs()))
        .collect();
    assert!(delays.len() > 10, "{delays:?}");
    assert!(delays.iter().all(|delay| (0..=1800).contains(delay)), "{delays:?}");
}

#[test]
fn a_person_runs_a_schedule_at_once_and_a_worker_does_not() {
    let bench = bench(&ScheduleSpec { paused: true, ..hourly(Overlap::Skip) });
    let id = bench.ready();
    let worker = Actor::worker("bob", bench.start(&id), id, None);
    let refused = bench.call(move |board| board.run_schedule(&name("s"), &worker)).unwrap_err();
    assert!(refused.to_string().contains("a worker may not"), "{refused}");

    let tick = bench.call(|board| board.run_schedule(&name("s"), &alice())).unwrap();

    assert_eq!((tick.outcome, tick.tasks.len()), (TickOutcome::Made, 1));
}

#[test]
fn nobody_takes_the_key_of_a_tick() {
    let bench = Bench::new();
    let new = NewTask { idempotency_key: Some("schedule:s:1:".to_owned()), ..titled("mine") };

    let refused = bench.call(move |board| board.create(new, &alice())).unwrap_err();

    assert!(refused.to_string().contains("schedules"), "{refused}");
}

/// Reproducible random numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Opens the board again, like the next daemon. While `failing` is set, its commits are lost.
fn reopen(directory: &Bench, clock: &Arc<ManualClock>, failing: &Arc<AtomicBool>, seed: u64) -> Bench {
    let failing = Arc::clone(failing);
    let fail = move |point| (point == "commit" && failing.load(Ordering::SeqCst)).then_some(StorageKind::Io);
    let options = WriterOptions {
        clock: clock.clone(),
        entropy: Arc::new(SeededEntropy::new(seed)),
        fail_point: FailPoints::failing(fail),
        ..WriterOptions::default()
    };
    Bench::at(&directory.path, clock.clone(), options)
}

#[test]
fn ten_thousand_ticks_of_a_month_with_kills_at_random_are_each_made_once() {
    let of = |assignee: &str| {
        let task = NewTask { assignee: Some(assignee.parse().unwrap()), ..titled("work") };
        vec![TemplateTask { task, ..TemplateTask::default() }]
    };
    let spec = |name: &str, timing| {
        let (missed, overlap, tasks) = (Missed::All, Overlap::Replace, of(name));
        ScheduleSpec { timing, missed, overlap, tasks, ..ScheduleSpec::default() }
    };
    let berlin = |cron: &str| Timing {
        cron: Some(cron.to_owned()),
        time_zone: Some("Europe/Berlin".to_owned()),
        ..Timing::default()
    };
    let specs = [
        (name("five"), spec("five", every(Duration::from_mins(5)))),
        (name("half"), spec("half", berlin("*/30 * * * *"))),
        (name("day"), spec("day", berlin("0 9 * * mon-fri"))),
    ];
    let month = Duration::from_hours(24 * 30);
    let directory = Bench::new();
    let clock = Arc::clone(&directory.clock);
    clock.set(MONDAY);
    let (defined, none) = (specs.clone(), BTreeSet::new());
    directory.call(move |board| board.define_schedules(&defined, &none)).unwrap();
    let expected: BTreeMap<ScheduleName, BTreeSet<i64>> = specs
        .iter()
        .map(|(name, spec)| {
            let ticks = crate::rules::ticks::Ticks::parse(&spec.timing).unwrap();
            let first = ticks.after(MONDAY);
            let all = std::iter::successors(first, |at| ticks.after(*at)).map(Timestamp::as_secs);
            (name.clone(), all.take_while(|at| *at <= MONDAY.after(month).as_secs()).collect())
        })
        .collect();
    directory.writer.close();
    let (failing, mut chance) = (Arc::new(AtomicBool::new(false)), Chance(11));
    let mut daemon = reopen(&directory, &clock, &failing, 0);
    let mut kills = 0;
    while clock.now() < MONDAY.after(month) {
        let left = MONDAY.after(month).since(clock.now());
        let longest = if chance.below(50) == 0 { 200_000 } else { 4000 };
        let step = Duration::from_secs(1 + chance.below(longest));
        clock.advance(step.min(left));
        match chance.below(6) {
            // Killed before the commit, after it, or while idle.
            0 => {
                failing.store(true, Ordering::SeqCst);
                daemon.writer.call(|board| board.wake_due()).unwrap_err();
                failing.store(false, Ordering::SeqCst);
            }
            1 => drop(daemon.wake()),
            2 => {}
            _ => {
                drop(daemon.wake());
                continue;
            }
        }
        kills += 1;
        daemon.writer.close();
        daemon = reopen(&directory, &clock, &failing, kills);
    }
    while daemon.next_wake().is_some_and(|next| next <= clock.now()) {
        daemon.wake();
    }

    assert!(kills > 100, "{kills} kills");
    assert!(expected.values().map(BTreeSet::len).sum::<usize>() > 10_000);
    for (name, expected) in expected {
        let made = tasks_for(&daemon, Some(name.as_str().parse().unwrap()));
        let made: Vec<i64> = made.iter().map(|task| task.origin.tick.unwrap().as_secs()).collect();
        assert_eq!(made.len(), expected.len(), "{name}");
        assert_eq!(BTreeSet::from_iter(made), expected, "{name}");
    }
    daemon.check();
}

#[test]
fn a_task_of_a_schedule_that_is_archived_is_open_no_more() {
    let bench = bench(&hourly(Overlap::Skip));
    after(&bench, HOUR);
    let id = tasks(&bench)[0].id.clone();
    bench.call(move |board| board.archive(&id, Detach::Refuse, &alice())).unwrap();

    after(&bench, HOUR);

    assert_eq!(outcomes(&bench), [TickOutcome::Made, TickOutcome::Made]);
}

#[test]
fn the_user_who_saved_a_schedule_is_the_creator_of_its_tasks_whoever_asks_for_the_tick() {
    let saved = |creator_uid| ScheduleSpec { creator_uid, ..hourly(Overlap::Replace) };
    let bench = bench(&saved(Some(1000)));
    let newest = || tasks(&bench).pop().unwrap().creator_uid;
    after(&bench, HOUR);
    assert_eq!(newest(), Some(1000));
    let root = Actor { uid: Some(0), ..alice() };
    bench.clock.advance(Duration::from_mins(1));
    bench.call(move |board| board.run_schedule(&name("s"), &root)).unwrap();
    assert_eq!(newest(), Some(1000), "root has not written its tasks");
    define(&bench, &saved(None));
    after(&bench, HOUR);
    assert_eq!(newest(), None, "an unknown creator is no user");
}

#[test]
fn a_schedule_is_stuck_while_a_task_of_an_earlier_tick_waits_for_a_person_in_any_status() {
    type Act = fn(&mut crate::Board<'_>, &TaskId) -> Result<crate::Settled, crate::Error>;
    let cases: [(Act, usize, &str); 3] = [
        (|board, id| board.move_task(id, crate::Destination::Triage, &alice()), 1, "triage"),
        (|board, id| board.request_review(id, Handoff::default(), None, None, &alice()), 1, "review"),
        (
            |board, id| board.request_review(id, Handoff::default(), "carol".parse().ok(), None, &alice()),
            0,
            "review by a profile",
        ),
    ];
    for (act, expected, waits) in cases {
        let bench = bench(&hourly(Overlap::Skip));
        after(&bench, HOUR);
        after(&bench, HOUR);
        let id = tasks(&bench)[0].id.clone();
        bench.call(move |board| act(board, &id)).unwrap();
        let stuck = bench.readers.with(|view| view.stuck_schedules()).unwrap();
        assert_eq!(stuck.len(), expected, "{waits}");
        assert!(stuck.iter().all(|stuck| stuck.status.as_str() == waits), "{stuck:?}");
    }
}

#[test]
fn a_schedule_is_stuck_while_its_ticks_make_nothing_for_a_blocked_task() {
    for overlap in [Overlap::Skip, Overlap::Queue] {
        let bench = bench(&hourly(overlap));
        let stuck = || {
            let tasks = |view: &crate::View<'_>| {
                Ok(view.stuck_schedules()?.into_iter().map(|stuck| stuck.task).collect::<Vec<TaskId>>())
            };
            bench.readers.with(tasks).unwrap()
        };
        after(&bench, HOUR);
        after(&bench, HOUR);
        assert_eq!(stuck(), Vec::new(), "its task may still start");
        let id = tasks(&bench)[0].id.clone();
        let blocked = id.clone();
        bench.call(move |board| board.block(&blocked, crate::Blocking::default(), None, &alice())).unwrap();
        assert_eq!(stuck(), [id], "{overlap}");
        define(&bench, &ScheduleSpec { paused: true, ..hourly(overlap) });
        assert_eq!(stuck(), Vec::new(), "its ticks are left out by a person");
    }
}
