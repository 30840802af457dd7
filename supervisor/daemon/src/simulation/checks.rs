//! Invariants that are checked after each step, limited to the parts that have changed.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{EventFilter, EventId, Holder, Replay, Run, RunId, TaskId};

use super::bench::Bench;
use super::fault::{Fault, Invariant};
use super::host::{Host, HostRun, WorkerLife};
use super::ledger::{AcknowledgedTask, Ledger, Speaker};

/// Checks the effects of a commit: the open runs, and the ends of the others.
pub(super) fn after_commit(bench: &Bench, host: &Host, ledger: &mut Ledger) -> Result<(), Fault> {
    let open = bench.read(|view| view.open_runs());
    let mut of_tasks: BTreeMap<&TaskId, RunId> = BTreeMap::new();
    for run in &open {
        if let Some(other) = of_tasks.insert(&run.task_id, run.id) {
            let seen = format!("{} has two open runs: {other} and {}", run.task_id, run.id);
            return Err(Fault::new(Invariant::NothingTwice, seen));
        }
    }
    let gone: Vec<RunId> =
        ledger.open.keys().filter(|id| open.iter().all(|run| run.id != **id)).copied().collect();
    for id in gone {
        if let Some(left) = host.get(id).filter(|left| left.is_alive() && !ledger.freed.contains(&id)) {
            return Err(Fault::new(
                Invariant::ClaimsByProof,
                format!("run {id} has ended, and lives: {left:?}"),
            ));
        }
        // Of several fruitless starts the board keeps one, and a task may have been deleted.
        if let Some(run) = bench.read(|view| view.run(id)) {
            ended(&run, host, ledger)?;
        }
    }
    for run in &open {
        if ledger.ended.contains_key(&run.id) {
            return Err(Fault::new(Invariant::NothingTwice, format!("run {} is open again", run.id)));
        }
        if run.holder == Holder::Supervisor && !ledger.open.contains_key(&run.id) {
            claimed(run, host, ledger)?;
        }
        if let Some(acknowledged) = ledger.verdicts.get(&run.id)
            && run.verdict.is_none()
        {
            let seen = format!("the verdict of run {} is gone, which was {acknowledged}", run.id);
            return Err(Fault::new(Invariant::NothingLost, seen));
        }
    }
    ledger.open = open.iter().map(|run| (run.id, run.task_id.clone())).collect();
    Ok(())
}

/// Checks a claimed task: nothing of its earlier runs lives.
fn claimed(run: &Run, host: &Host, ledger: &mut Ledger) -> Result<(), Fault> {
    let is_earlier = |other: &&HostRun| {
        other.task == run.task_id
            && other.run != run.id
            && other.is_alive()
            && !ledger.freed.contains(&other.run)
    };
    if let Some(other) = host.all().find(is_earlier) {
        let seen = format!("{} is claimed by run {} while run {} lives", run.task_id, run.id, other.run);
        return Err(Fault::new(Invariant::ClaimsByProof, seen));
    }
    ledger.hears(Speaker {
        run: run.id,
        task: run.task_id.clone(),
        profile: run.profile.clone().unwrap_or_else(|| "nobody".parse().unwrap()),
        tenant: run.tenant.clone(),
    });
    Ok(())
}

/// Checks an ended run: nothing of it lives, and the recorded end is its own.
fn ended(run: &Run, host: &Host, ledger: &mut Ledger) -> Result<(), Fault> {
    let Some(outcome) = run.outcome.filter(|_| run.ended_at.is_some()) else {
        let seen = format!("run {} is neither open nor over", run.id);
        return Err(Fault::new(Invariant::NothingLost, seen));
    };
    if let Some(on_host) = host.get(run.id) {
        let exit = on_host.records.as_ref().and_then(|records| records.exit.as_ref());
        if let (Some(code), Some(exit)) = (run.exit_code, exit)
            && exit.code != Some(code)
        {
            let seen = format!("run {} has ended with code {code}, its worker with {:?}", run.id, exit.code);
            return Err(Fault::new(Invariant::NothingTwice, seen));
        }
    }
    if ledger.verdicts.contains_key(&run.id) && run.verdict.is_none() {
        return Err(Fault::new(
            Invariant::NothingLost,
            format!("run {} has ended without its verdict", run.id),
        ));
    }
    ledger.ends(run.id, outcome);
    Ok(())
}

/// Checks the host: at most one worker for each run and each task.
pub(super) fn after_host(host: &Host, ledger: &Ledger) -> Result<(), Fault> {
    let mut workers: BTreeMap<&TaskId, RunId> = BTreeMap::new();
    for run in host.all().filter(|run| run.worker == WorkerLife::Alive && !ledger.freed.contains(&run.run)) {
        if host.doubles.contains(&run.run) {
            return Err(Fault::new(Invariant::NothingTwice, format!("run {} has two workers", run.run)));
        }
        if let Some(other) = workers.insert(&run.task, run.run) {
            let seen = format!("{} has two workers, of runs {other} and {}", run.task, run.run);
            return Err(Fault::new(Invariant::NothingTwice, seen));
        }
        if !ledger.open.contains_key(&run.run) {
            let seen = format!("the worker of run {} lives, and the run is not open", run.run);
            return Err(Fault::new(Invariant::ClaimsByProof, seen));
        }
    }
    Ok(())
}

/// Checks the replies to people and workers, and that nothing failed without an injected fault.
pub(super) fn after_words(bench: &Bench, ledger: &Ledger) -> Result<(), Fault> {
    if let Some(late) = ledger.late.first() {
        return Err(Fault::new(Invariant::FencedByRun, format!("{late}, and its run was over")));
    }
    if let Some(twice) = ledger.twice.first() {
        return Err(Fault::new(Invariant::NothingTwice, format!("{twice}, and was taken")));
    }
    match bench.surprises.first() {
        Some(surprise) => Err(Fault::new(Invariant::NoSurprise, surprise.clone())),
        None => Ok(()),
    }
}

/// Checks the acknowledged facts about all that later events name. Returns the last event.
pub(super) fn of_events(bench: &Bench, ledger: &Ledger, since: EventId) -> Result<EventId, Fault> {
    let filter = EventFilter { since, ..EventFilter::default() };
    let events = bench.read(|view| view.events(&filter));
    for task in events.iter().filter_map(|event| event.task_id.as_ref()).collect::<BTreeSet<_>>() {
        if let Some(acknowledged) = ledger.tasks.get(task) {
            of_task(bench, ledger, (task, acknowledged))?;
        }
    }
    for run in events.iter().filter_map(|event| event.run_id).collect::<BTreeSet<_>>() {
        of_run(bench, ledger, run)?;
    }
    Ok(events.last().map_or(since, |event| event.id))
}

/// Checks that replaying the log so far yields the board.
pub(super) fn of_replay(bench: &Bench, replay: &mut Replay) -> Result<(), Fault> {
    let differences = bench.read(|view| view.replay_on(replay));
    if differences.is_empty() {
        return Ok(());
    }
    Err(Fault::new(Invariant::ReplayEqual, format!("{differences:?}")))
}

/// Checks the acknowledged facts of one task.
fn of_task(
    bench: &Bench,
    ledger: &Ledger,
    (id, acknowledged): (&TaskId, &AcknowledgedTask),
) -> Result<(), Fault> {
    let lost = |seen: String| Err(Fault::new(Invariant::NothingLost, seen));
    let Some(task) = bench.read(|view| view.task(id)) else {
        if ledger.deleted.contains(id) {
            return Ok(());
        }
        return lost(format!("{id} is gone"));
    };
    if task.title != acknowledged.title {
        return lost(format!("the title of {id} is `{}`, not `{}`", task.title, acknowledged.title));
    }
    let comments = bench.read(|view| view.comments(id));
    for text in &acknowledged.comments {
        match comments.iter().filter(|comment| comment.body == *text).count() {
            1 => {}
            0 => return lost(format!("`{text}` on {id} is gone")),
            more => {
                let seen = format!("`{text}` is there {more} times on {id}");
                return Err(Fault::new(Invariant::NothingTwice, seen));
            }
        }
    }
    Ok(())
}

/// Checks that the recorded outcome of an ended run has not changed.
fn of_run(bench: &Bench, ledger: &Ledger, run: RunId) -> Result<(), Fault> {
    let Some(outcome) = ledger.ended.get(&run) else { return Ok(()) };
    if bench.read(|view| view.run(run)).is_some_and(|now| now.outcome != Some(*outcome)) {
        let seen = format!("run {run} has not ended as {outcome} any more");
        return Err(Fault::new(Invariant::NothingTwice, seen));
    }
    Ok(())
}

/// Checks all acknowledged facts, the log and the file.
pub(super) fn thoroughly(bench: &Bench, ledger: &Ledger) -> Result<(), Fault> {
    let lost = |seen: String| Err(Fault::new(Invariant::NothingLost, seen));
    let newest = bench.read(|view| view.last_event()).get();
    if newest < bench.acknowledged {
        return lost(format!("event {} was acknowledged, and the last one is {newest}", bench.acknowledged));
    }
    for one in &ledger.tasks {
        of_task(bench, ledger, one)?;
    }
    let titles =
        bench.read(|view| view.tasks(&kernel::Filter { limit: 10_000, ..kernel::Filter::default() })).tasks;
    let mut seen = BTreeSet::new();
    if let Some(twin) = titles.iter().find(|task| !seen.insert(task.title.as_str())) {
        return Err(Fault::new(Invariant::NothingTwice, format!("`{}` is there twice", twin.title)));
    }
    for run in ledger.ended.keys() {
        of_run(bench, ledger, *run)?;
    }
    of_replay(bench, &mut Replay::default())?;
    let faults = bench.faults();
    if !faults.is_empty() {
        return Err(Fault::new(Invariant::ReplayEqual, faults.join("; ")));
    }
    Ok(())
}
