//! Limits of missions, and missions at a limit that wait for a person.

use std::time::Duration;

use crate::testing::{Bench, alice, titled};
use crate::{
    Accounts, Actor, EndCause, Ending, ErrorCode, HoldKind, HoldOn, HoldScope, Lineage, MissionLimits,
    NewTask, Quotas, RunId, SharedQuotas, Spent, StopReason, Task, TaskId, WaitingCode, WriterOptions,
};

fn bench(mission: MissionLimits) -> Bench {
    let mut quotas = Quotas::default();
    quotas.mission = mission;
    let quotas = SharedQuotas::new(quotas);
    Bench::with(|options| WriterOptions { quotas, ..options })
}

fn tasks(tasks: u64) -> MissionLimits {
    MissionLimits { tasks, ..MissionLimits::default() }
}

fn started(bench: &Bench, id: &TaskId) -> Actor {
    Actor::worker("bob", bench.start(id), id.clone(), None)
}

fn make(bench: &Bench, actor: &Actor) -> Result<Task, crate::Error> {
    let actor = actor.clone();
    bench.call(move |board| board.create(titled("part"), &actor)).map(|created| created.task)
}

fn run_of(actor: &Actor) -> RunId {
    actor.run.clone().unwrap().run
}

fn offered(bench: &Bench) -> Vec<TaskId> {
    bench.offered(100, &Accounts::new()).into_iter().map(|candidate| candidate.task).collect()
}

fn mission(name: &TaskId) -> HoldOn {
    HoldOn { scope: HoldScope::Mission, name: name.to_string() }
}

fn why(bench: &Bench, id: &TaskId) -> Option<crate::Waiting> {
    bench.readers.with(|view| view.waiting(id)).unwrap()
}

#[test]
fn a_mission_at_its_tasks_is_paused_with_all_that_it_has_and_released_has_as_much_again() {
    let bench = bench(tasks(3));
    let first = bench.ready();
    let other = bench.ready();
    let worker = started(&bench, &first);
    let parts: Vec<Task> = (0..2).map(|_| make(&bench, &worker).unwrap()).collect();
    assert_eq!(
        parts[0].lineage,
        Lineage { mission: Some(first.to_string()), depth: 1, ..Lineage::default() }
    );

    let refused = make(&bench, &worker).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Exhausted);
    let told = format!("missions.tasks: this would be 4 tasks of the mission {first}, the limit is 3");
    assert_eq!(refused.to_string(), told);
    assert_eq!(offered(&bench).len(), 3, "the refusal is undone with the write");

    for _ in 0..2 {
        let asks = worker.clone();
        bench.call(move |board| board.ask_for_more_tasks(&asks)).unwrap();
    }
    assert_eq!(offered(&bench), std::slice::from_ref(&other));
    let waits = why(&bench, &parts[0].id).unwrap();
    assert_eq!(waits.code, WaitingCode::Hold);
    let verb = format!("`supervisor answer {first} 1`");
    assert!(
        waits.text.contains("3 tasks of 3 (missions.tasks)") && waits.text.contains(&verb),
        "{}",
        waits.text
    );
    let holds = bench.readers.with(|view| view.holds()).unwrap();
    assert_eq!((holds.len(), holds[0].kind, holds[0].run_id), (1, HoldKind::Limit, Some(run_of(&worker))));
    let told = |id: &TaskId| {
        let all = bench.readers.with(|view| view.diagnose(Some(id))).unwrap();
        all.into_iter().flat_map(|one| one.diagnostics).map(|one| one.code.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((told(&parts[0].id), told(&other)), (vec!["mission_paused".to_owned()], vec![]));

    // Any task of the mission stands for it.
    let part = mission(&parts[1].id);
    bench.call(move |board| board.release(&part, None, &alice())).unwrap();
    assert_eq!(offered(&bench).len(), 3);
    for _ in 0..3 {
        make(&bench, &worker).unwrap();
    }
    assert!(make(&bench, &worker).is_err());
    bench.check();
}

#[test]
fn the_tasks_of_all_workers_below_one_task_count_together_and_those_of_people_do_not() {
    let bench = bench(tasks(3));
    let first = bench.ready();
    let worker = started(&bench, &first);
    let part = make(&bench, &worker).unwrap();
    let below = started(&bench, &part.id);
    assert_eq!(make(&bench, &below).unwrap().lineage.depth, 2);
    assert!(make(&bench, &worker).is_err());
    for _ in 0..5 {
        bench.child_of(&[&first]);
    }
    let neighbour = started(&bench, &bench.ready());
    make(&bench, &neighbour).unwrap();
    bench.check();
}

#[test]
fn run_time_and_cost_of_a_mission_are_summed_up_and_pause_it() {
    let limits = MissionLimits { runtime: Duration::from_mins(10), cost_micros: 3_000_000, ..tasks(20) };
    for (minutes, micros, reason) in [
        (5, 0, "10m of run time of 10m (missions.runtime)"),
        (1, 1_500_000, "$3.00 of $3.00 (missions.cost_usd)"),
    ] {
        let bench = bench(limits);
        let first = bench.ready();
        let end = |id: &TaskId, parts: usize| {
            let worker = started(&bench, id);
            let made: Vec<Task> = (0..parts).map(|_| make(&bench, &worker).unwrap()).collect();
            bench.clock.advance(Duration::from_mins(minutes));
            let spent = Some(Spent { cost_micros: Some(micros), ..Spent::default() });
            let ending = Ending { spent, ..Ending::new(EndCause::Stopped(StopReason::Preempted)) };
            bench.call(move |board| board.finish_run(run_of(&worker), ending)).unwrap();
            made
        };
        // Use from before the task became a mission counts, too.
        assert!(end(&first, 0).is_empty());
        assert_eq!(offered(&bench).len(), 1);
        let part = end(&first, 1).remove(0);

        assert_eq!(offered(&bench), [], "{reason}");
        let holds = bench.readers.with(|view| view.holds()).unwrap();
        assert_eq!((holds[0].reason.as_str(), holds[0].on()), (reason, mission(&first)));
        assert!(why(&bench, &part.id).unwrap().text.contains(reason));
        let refused = bench.call({
            let (id, start) = (part.id.clone(), crate::testing::start(&*bench.clock));
            move |board| board.start_run(&id, start)
        });
        assert!(refused.unwrap_err().to_string().contains("is paused"));
        let kinds: Vec<String> = bench
            .readers
            .with(|view| view.diagnose(Some(&part.id)))
            .unwrap()
            .into_iter()
            .flat_map(|one| one.diagnostics)
            .map(|one| one.code.to_string())
            .collect();
        assert_eq!(kinds, ["mission_paused"]);

        let on = mission(&first);
        bench.call(move |board| board.release(&on, None, &alice())).unwrap();
        assert_eq!(offered(&bench).len(), 2);
        bench.check();
    }
}

/// Runs a task for ten minutes, with an agent that reports this cost.
fn run_for(bench: &Bench, id: &TaskId, micros: u64, cause: EndCause) {
    let run = bench.start(id);
    bench.clock.advance(Duration::from_mins(10));
    let spent = Some(Spent { cost_micros: Some(micros), ..Spent::default() });
    let ending = Ending { spent, ..Ending::new(cause) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
}

fn listed(bench: &Bench) -> usize {
    bench.readers.with(|view| view.missions(None, &MissionLimits::default(), &alice())).unwrap().0.len()
}

#[test]
fn the_runs_of_an_agent_that_divides_nothing_are_counted_and_pause_their_task_at_the_limits_of_missions() {
    let preempted = || EndCause::Stopped(StopReason::Preempted);
    for (limits, reason) in [
        (MissionLimits { cost_micros: 8_000_000, ..tasks(20) }, "$10.00 of $8.00 (missions.cost_usd)"),
        (
            MissionLimits { runtime: Duration::from_mins(15), ..tasks(20) },
            "20m of run time of 15m (missions.runtime)",
        ),
    ] {
        let bench = bench(limits);
        let first = bench.ready();
        run_for(&bench, &first, 5_000_000, preempted());
        assert_eq!((offered(&bench), listed(&bench)), (vec![first.clone()], 0));
        let shown = bench.readers.with(|view| view.mission(&first, &limits, &alice())).unwrap();
        assert_eq!(
            (shown.mission.usage.cost_micros.used, shown.mission.usage.runtime_seconds.used),
            (5_000_000, 600)
        );

        run_for(&bench, &first, 5_000_000, preempted());
        assert_eq!((offered(&bench), listed(&bench)), (vec![], 1));
        let text = why(&bench, &first).unwrap().text;
        assert!(text.contains(reason), "{text}");

        let task = first.clone();
        bench.call(move |board| board.answer(&task, "1", &alice())).unwrap();
        assert_eq!(offered(&bench), [first]);
        bench.check();
    }
}

#[test]
fn a_mission_whose_tasks_are_all_over_holds_nothing_and_asks_for_nothing() {
    let bench = bench(MissionLimits { cost_micros: 8_000_000, ..tasks(2) });
    let holds = || bench.readers.with(|view| view.holds()).unwrap().len();
    let first = bench.ready();
    let worker = started(&bench, &first);
    let part = make(&bench, &worker).unwrap();
    bench.call(move |board| board.ask_for_more_tasks(&worker)).unwrap();
    let done = |id: &TaskId| {
        let id = id.clone();
        bench.call(move |board| board.complete(&id, crate::Handoff::default(), None, &alice())).unwrap();
    };
    done(&part.id);
    assert_eq!(holds(), 1, "its first task is open");
    let run = bench.task(&first).current_run_id.unwrap();
    done(&first);
    let spent = Some(Spent { cost_micros: Some(9_000_000), ..Spent::default() });
    let ending = Ending { spent, ..Ending::new(EndCause::Stopped(StopReason::Cancelled)) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    assert_eq!(holds(), 0, "the cost of its last run changes nothing");
    let again = first.clone();
    bench.call(move |board| board.reopen(&again, None, &alice())).unwrap();
    assert_eq!((holds(), offered(&bench)), (1, vec![]), "until there is more to do");
    bench.check();
}

#[test]
fn a_script_that_reports_no_use_is_no_mission_and_has_no_limit() {
    let bench = bench(MissionLimits { runtime: Duration::from_secs(1), ..tasks(20) });
    let id = bench.ready();
    let run = bench.start(&id);
    bench.clock.advance(Duration::from_hours(3));
    bench.finish(run, EndCause::Stopped(StopReason::Preempted));
    assert_eq!(offered(&bench), [id]);
}

#[test]
fn work_does_not_go_back_to_the_profile_that_it_came_from_through_another() {
    let bench = Bench::new();
    let first = bench.ready();
    let bob = started(&bench, &first);
    let to = |name: &str, actor: &Actor| {
        let (assignee, actor) = (name.parse().ok(), actor.clone());
        bench
            .call(move |board| board.create(NewTask { assignee, ..titled("x") }, &actor))
            .map(|made| made.task)
    };
    to("bob", &bob).unwrap();
    let for_carol = to("carol", &bob).unwrap();
    let start = crate::Start { profile: "carol".parse().ok(), ..crate::testing::start(&*bench.clock) };
    let id = for_carol.id.clone();
    let run = bench.call(move |board| board.start_run(&id, start)).unwrap().id;
    let carol = Actor::worker("carol", run, for_carol.id, None);
    to("carol", &carol).unwrap();
    to("dave", &carol).unwrap();
    let refused = to("bob", &carol).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden);
    assert!(refused.to_string().ends_with("bob → carol → bob"), "{refused}");
    let nobodys = bench
        .call({
            let carol = carol.clone();
            move |board| board.create(NewTask { assignee: None, ..titled("x") }, &carol)
        })
        .unwrap();
    let lead = Actor { role: crate::WorkerRole::Orchestrator, ..carol };
    let id = nobodys.task.id.clone();
    let refused = bench.call(move |board| board.assign(&id, "bob".parse().ok(), &lead)).unwrap_err();
    assert!(refused.to_string().ends_with("bob → carol → bob"), "{refused}");
    bench.check();
}

#[test]
fn a_hold_on_the_mission_of_no_task_is_refused() {
    let bench = Bench::new();
    for name in ["t_ffffffff", "garbage"] {
        let on = HoldOn { scope: HoldScope::Mission, name: name.to_owned() };
        let new = crate::NewHold { kind: HoldKind::Manual, reason: "a look".to_owned(), until: None };
        let refused = bench.call(move |board| board.hold(&on, &new, &alice())).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound, "{refused}");
    }
}

#[test]
fn a_person_holds_a_mission_by_hand_and_that_grants_nothing() {
    let bench = bench(tasks(2));
    let first = bench.ready();
    let worker = started(&bench, &first);
    let part = make(&bench, &worker).unwrap();
    let (on, by_part) = (mission(&first), mission(&part.id));
    bench
        .call(move |board| {
            let new =
                crate::NewHold { kind: HoldKind::Manual, reason: "a look first".to_owned(), until: None };
            board.hold(&by_part, &new, &alice())
        })
        .unwrap();
    assert_eq!(offered(&bench), []);
    bench.call(move |board| board.release(&on, None, &alice())).unwrap();
    assert_eq!(offered(&bench), [part.id]);
    assert!(make(&bench, &worker).is_err());
}

#[test]
fn the_cost_of_a_run_counts_while_it_goes_on_and_once() {
    let bench = bench(MissionLimits { cost_micros: 3_000_000, ..tasks(20) });
    let worker = started(&bench, &bench.ready());
    let costs = |micros| Spent { cost_micros: Some(micros), ..Spent::default() };
    let report = |micros| {
        let run = run_of(&worker);
        bench.call(move |board| board.record_spent(run, &costs(micros))).unwrap();
    };
    report(2_000_000);
    make(&bench, &worker).unwrap();
    report(2_500_000);
    assert_eq!(offered(&bench).len(), 1, "$2.50 of $3.00");
    report(3_000_000);
    assert_eq!(offered(&bench), []);
    let ending =
        Ending { spent: Some(costs(3_000_000)), ..Ending::new(EndCause::Stopped(StopReason::Preempted)) };
    let run = run_of(&worker);
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let holds = bench.readers.with(|view| view.holds()).unwrap();
    assert_eq!(holds[0].reason, "$3.00 of $3.00 (missions.cost_usd)");
}

#[test]
fn the_time_of_runs_under_way_counts_and_pauses_their_mission_when_it_is_used_up() {
    let limits = MissionLimits { runtime: Duration::from_mins(10), ..tasks(20) };
    let bench = bench(limits);
    let worker = started(&bench, &bench.ready());
    let next = || bench.readers.with(|view| view.next_mission_limit(&limits)).unwrap();
    assert_eq!(next(), None, "a task that nobody has divided has no such limit");
    let part = make(&bench, &worker).unwrap();
    make(&bench, &worker).unwrap();
    let after = |minutes| Some(crate::Clock::now(&*bench.clock).after(Duration::from_mins(minutes)));
    assert_eq!(next(), after(10));
    bench.clock.advance(Duration::from_mins(4));
    started(&bench, &part.id);
    assert_eq!(next(), after(3), "two runs use it up");

    bench.clock.advance(Duration::from_mins(3));
    bench.wake();

    assert_eq!((offered(&bench), next()), (Vec::new(), None));
    let holds = bench.readers.with(|view| view.holds()).unwrap();
    assert_eq!(holds[0].reason, "10m of run time of 10m (missions.runtime)");
    let on = holds[0].on();
    bench.call(move |board| board.release(&on, None, &alice())).unwrap();
    bench.wake();
    assert_eq!((offered(&bench).len(), next()), (1, after(5)), "it has as much again");
}
