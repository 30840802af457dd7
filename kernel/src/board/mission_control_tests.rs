//! Missions: creating, pausing, resuming, cancelling and reading them.

use std::time::Duration;

use crate::testing::{Bench, alice, titled};
use crate::{
    Accounts, Actor, EndCause, ErrorCode, MissionCaps, MissionDetails, MissionLimits, MissionState, NewTask,
    Pause, SpendBy, Spent, Status, StopReason, Task, TaskId,
};

fn mission(bench: &Bench, caps: MissionCaps) -> TaskId {
    bench.call(move |board| board.create_mission(titled("site"), &caps, &alice())).unwrap().task.id
}

fn worker(bench: &Bench, id: &TaskId) -> Actor {
    Actor::worker("bob", bench.start(id), id.clone(), None)
}

fn make(bench: &Bench, actor: &Actor, new: NewTask) -> Result<Task, crate::Error> {
    let actor = actor.clone();
    bench.call(move |board| board.create(new, &actor)).map(|created| created.task)
}

fn part_of(id: &TaskId) -> NewTask {
    let lineage = crate::Lineage { mission: Some(id.to_string()), ..crate::Lineage::default() };
    NewTask { lineage, ..titled("a person's part") }
}

fn shown(bench: &Bench, id: &TaskId) -> MissionDetails {
    bench.readers.with(|view| view.mission(id, &MissionLimits::default(), &alice())).unwrap()
}

fn offered(bench: &Bench) -> Vec<TaskId> {
    bench.offered(100, &Accounts::new()).into_iter().map(|candidate| candidate.task).collect()
}

#[test]
fn a_mission_has_limits_of_its_own_from_its_first_task_on() {
    let bench = Bench::new();
    let caps = MissionCaps { max_tasks: Some(2), max_depth: Some(1), ..MissionCaps::default() };
    let id = mission(&bench, caps);
    let bob = worker(&bench, &id);
    let part = make(&bench, &bob, titled("part")).unwrap();
    let refused = make(&bench, &bob, titled("part")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("missions.tasks: this would be 3 tasks of the mission {id}, the limit is 2")
    );
    let below = worker(&bench, &part.id);
    let refused = make(&bench, &below, titled("deeper")).unwrap_err().to_string();
    assert!(refused.contains("missions.depth") && refused.ends_with("the limit is 1"), "{refused}");
    for caps in [
        MissionCaps { max_tasks: Some(0), ..MissionCaps::default() },
        MissionCaps { max_cost_micros: Some(0), ..MissionCaps::default() },
        MissionCaps { max_runtime: Some(Duration::ZERO), ..MissionCaps::default() },
    ] {
        let refused = bench.call(move |board| board.create_mission(titled("x"), &caps, &alice()));
        assert_eq!(refused.unwrap_err().code(), ErrorCode::Invalid);
    }
    bench.check();
}

#[test]
fn a_cent_more_than_its_limit_refuses_the_next_run_of_a_mission_without_parts() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps { max_cost_micros: Some(10_000), ..MissionCaps::default() });
    let run = bench.start(&id);
    let spent = Spent { cost_micros: Some(9_999), ..Spent::default() };
    bench.call(move |board| board.record_spent(run, &spent)).unwrap();
    assert_eq!(shown(&bench, &id).mission.question, None);
    let spent = Spent { cost_micros: Some(10_000), ..Spent::default() };
    bench.call(move |board| board.record_spent(run, &spent)).unwrap();
    bench.finish(run, EndCause::Stopped(StopReason::Preempted));

    assert_eq!(offered(&bench), []);
    let start = crate::testing::start(&*bench.clock);
    let next = id.clone();
    let refused = bench.call(move |board| board.start_run(&next, start)).unwrap_err().to_string();
    assert!(refused.contains("$0.01 of $0.01 (missions.cost_usd)"), "{refused}");
    let mission = shown(&bench, &id).mission;
    assert_eq!((mission.state, mission.usage.cost_micros.used), (MissionState::Paused, 10_000));

    let answered = id.clone();
    bench.call(move |board| board.answer(&answered, "1", &alice())).unwrap();
    assert_eq!(offered(&bench), [id]);
    bench.check();
}

#[test]
fn the_ledger_counts_each_report_once_by_mission_tenant_account_profile_and_day() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps::default());
    let part = make(&bench, &alice(), part_of(&id)).unwrap().id;
    let other = bench.create(NewTask { tenant: "acme".parse().ok(), ..titled("other") }).id;
    for (task, micros) in [(&part, 2_000_000), (&other, 500_000), (&id, 1_000_000)] {
        let start = crate::Start { account: Some("main".to_owned()), ..crate::testing::start(&*bench.clock) };
        let task = task.clone();
        let run = bench.call(move |board| board.start_run(&task, start)).unwrap().id;
        for cost in [micros / 2, micros, micros] {
            let spent = Spent { cost_micros: Some(cost), output_tokens: 7, ..Spent::default() };
            bench.call(move |board| board.record_spent(run, &spent)).unwrap();
        }
        bench.clock.advance(Duration::from_hours(24));
    }
    let sums = |by, since: Option<&str>, actor: &Actor| -> Vec<(Option<String>, u64)> {
        let rows = bench.readers.with(|view| view.spend(by, since, None, actor)).unwrap();
        rows.into_iter().map(|row| (row.name, row.consumed.cost_micros)).collect()
    };
    let all = |by| sums(by, None, &alice());
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(all(SpendBy::Mission), [(named(id.as_str()), 3_000_000), (named(other.as_str()), 500_000)]);
    assert_eq!(all(SpendBy::Tenant), [(None, 3_000_000), (named("acme"), 500_000)]);
    assert_eq!(all(SpendBy::Account), [(named("main"), 3_500_000)]);
    assert_eq!(all(SpendBy::Profile), [(named("bob"), 3_500_000)]);
    let days = all(SpendBy::Day);
    assert_eq!(days.iter().map(|(_, cost)| *cost).collect::<Vec<_>>(), [2_000_000, 500_000, 1_000_000]);
    assert_eq!(sums(SpendBy::Day, days[1].0.as_deref(), &alice()), days[1..]);
    let acme = Actor { tenant: "acme".parse().ok(), ..alice() };
    assert_eq!(sums(SpendBy::Tenant, None, &acme), [(named("acme"), 500_000)]);
}

#[test]
fn the_question_of_a_mission_is_answered_by_number_and_stop_cancels_it() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps { max_tasks: Some(1), ..MissionCaps::default() });
    let bob = worker(&bench, &id);
    make(&bench, &bob, titled("part")).unwrap_err();
    bench.call(move |board| board.ask_for_more_tasks(&bob)).unwrap();
    let question = shown(&bench, &id).mission.question.unwrap();
    assert_eq!(question.choices.len(), 2);
    let answer = |reply: &'static str| {
        let id = id.clone();
        bench.call(move |board| board.answer(&id, reply, &alice()))
    };
    assert_eq!(answer("7").unwrap_err().code(), ErrorCode::Invalid);
    answer("2").unwrap();
    let run = bench.task(&id).current_run_id.unwrap();
    bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
    assert_eq!(
        (bench.task(&id).status, shown(&bench, &id).mission.state),
        (Status::Archived, MissionState::Cancelled)
    );
    assert_eq!(answer("1").unwrap_err().code(), ErrorCode::Conflict);
    bench.check();
}

#[test]
fn a_person_adds_tasks_that_count_and_only_to_a_mission_that_is_there() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps { max_tasks: Some(2), ..MissionCaps::default() });
    let part = make(&bench, &alice(), part_of(&id)).unwrap();
    assert_eq!((part.mission(), part.lineage.depth), (id.as_str(), 1));
    // Any task of the mission stands for it.
    let refused = make(&bench, &alice(), part_of(&part.id)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Exhausted);
    let gone: TaskId = "t_ffffffff".parse().unwrap();
    assert_eq!(make(&bench, &alice(), part_of(&gone)).unwrap_err().code(), ErrorCode::NotFound);
    let other = bench.ready();
    let bob = worker(&bench, &other);
    assert_eq!(make(&bench, &bob, part_of(&id)).unwrap_err().code(), ErrorCode::Forbidden);
    let acme = NewTask { tenant: "acme".parse().ok(), ..part_of(&id) };
    assert_eq!(make(&bench, &alice(), acme).unwrap_err().code(), ErrorCode::Invalid);
    bench.check();
}

#[test]
fn a_paused_mission_starts_nothing_and_goes_on_when_it_is_resumed() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps::default());
    let parts: Vec<TaskId> = (0..2).map(|_| make(&bench, &alice(), part_of(&id)).unwrap().id).collect();
    let run = bench.start(&parts[0]);
    let other = bench.ready();
    let pause = |what| {
        let id = id.clone();
        bench.call(move |board| board.pause_by_hand(&id, what, None, &alice())).unwrap()
    };
    assert_eq!(pause(Pause::Starts).ending, []);
    assert_eq!(offered(&bench), std::slice::from_ref(&other));
    assert!(bench.runs_to_stop().is_empty(), "what runs goes on");
    assert_eq!(pause(Pause::Runs).ending, std::slice::from_ref(&parts[0]));
    assert_eq!(bench.runs_to_stop().len(), 1);
    bench.finish(run, EndCause::Stopped(StopReason::Reclaimed));
    assert_eq!(offered(&bench), std::slice::from_ref(&other), "its task is ready again, and held");

    let resumed = parts[1].clone();
    bench.call(move |board| board.resume_mission(&resumed, None, &alice())).unwrap();
    assert_eq!(offered(&bench).len(), 4);
    let again = id.clone();
    let refused = bench.call(move |board| board.resume_mission(&again, None, &alice())).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    bench.check();
}

#[test]
fn a_cancelled_mission_ends_its_runs_and_lets_nothing_outside_go_on_without_it() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps::default());
    let done = make(&bench, &alice(), part_of(&id)).unwrap().id;
    let finished = done.clone();
    bench.call(move |board| board.complete(&finished, crate::Handoff::default(), None, &alice())).unwrap();
    let runs = make(&bench, &alice(), part_of(&id)).unwrap().id;
    let waits = make(&bench, &alice(), NewTask { parents: vec![runs.clone()], ..part_of(&id) }).unwrap().id;
    let awaited = make(&bench, &alice(), part_of(&id)).unwrap().id;
    let outside = bench.child_of(&[&awaited]);
    let run = bench.start(&runs);

    let cancelled = waits.clone();
    let ends = bench.call(move |board| board.cancel_mission(&cancelled, Some("no"), &alice())).unwrap();

    assert_eq!((ends.ended.len(), ends.ending), (4, vec![runs.clone()]));
    let status = |id: &TaskId| bench.task(id).status;
    assert_eq!(status(&runs), Status::Running, "until its death is proved");
    bench.finish(run, EndCause::Stopped(StopReason::Cancelled));
    assert_eq!([&id, &runs, &waits].map(status), [Status::Archived; 3]);
    assert_eq!([&done, &awaited, &outside].map(status), [Status::Done, Status::Blocked, Status::Todo]);
    assert_eq!(offered(&bench), []);
    bench.check();
}

#[test]
fn a_mission_shows_its_progress_its_tree_and_what_waits_for_a_person() {
    let bench = Bench::new();
    let id = mission(&bench, MissionCaps::default());
    let bob = worker(&bench, &id);
    let part = make(&bench, &bob, titled("part")).unwrap().id;
    let asks = make(
        &bench,
        &bob,
        NewTask { parents: vec![part.clone()], approval: crate::testing::gated(), ..titled("buy") },
    );
    let asks = asks.unwrap().id;
    let run = bench.start(&part);
    let handoff = crate::Handoff { summary: Some("found it".to_owned()), ..crate::Handoff::default() };
    let finished = part.clone();
    bench
        .call(move |board| {
            board.complete(&finished, handoff, None, &Actor::worker("bob", run, finished.clone(), None))
        })
        .unwrap();
    bench.finish(run, EndCause::Exited { code: 0 });

    let shown = shown(&bench, &asks);

    assert_eq!((shown.mission.done, shown.mission.tasks, shown.mission.state), (1, 3, MissionState::Active));
    let tree: Vec<_> = shown.tree.iter().map(|task| (&task.id, task.under.as_ref())).collect();
    assert_eq!(tree, [(&id, None), (&part, Some(&id)), (&asks, Some(&id))]);
    assert_eq!(shown.tree[1].summary.as_deref(), Some("found it"));
    assert_eq!(shown.tree[2].needs.as_ref().unwrap().text, "Approve this task: buy");
    assert_eq!(shown.tree[2].command, Some(format!("supervisor approve {asks}")));
    let (listed, more) =
        bench.readers.with(|view| view.missions(None, &MissionLimits::default(), &alice())).unwrap();
    assert_eq!((listed, more), (vec![shown.mission], false));
    let acme = Actor { tenant: "acme".parse().ok(), ..alice() };
    let seen = bench.readers.with(|view| view.missions(None, &MissionLimits::default(), &acme)).unwrap();
    assert_eq!(seen.0, []);
    let unseen = bench.readers.with(|view| view.mission(&id, &MissionLimits::default(), &acme));
    assert_eq!(unseen.unwrap_err().code(), ErrorCode::NotFound);
}
