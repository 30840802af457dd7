//! Open items on the board that `status` is asked about.

use std::collections::BTreeMap;

use kernel::{
    Actor, AskingMission, BoardName, Clock as _, ClockSet, Profile, Run, RunId, SystemClock, Task, TaskId,
    Tenant, View,
};

use super::{LISTED, NextTick, SHOWN_CORRECTION};
use daemon::{LiveRun, Phase};

/// Limit on the listed ticks to come.
const TICKS: usize = 3;

/// The board's records of its open runs.
#[derive(Default)]
pub(super) struct OpenRunRecords {
    pub(super) runs: Vec<Run>,
    /// Latest notes of their workers.
    pub(super) notes: BTreeMap<RunId, String>,
    pub(super) titles: BTreeMap<TaskId, String>,
    /// Their tasks, where no daemon knows them.
    pub(super) tasks: BTreeMap<TaskId, Task>,
    /// The next ticks of its schedules.
    pub(super) ticks: Vec<NextTick>,
    /// Latest correction of its stored times, if it is recent.
    pub(super) clock_set: Option<ClockSet>,
    /// Its missions at a limit.
    pub(super) asking: Vec<AskingMission>,
}

/// The next ticks of the schedules of a board.
fn next_ticks(view: &View<'_>) -> Result<Vec<NextTick>, kernel::Error> {
    let schedules = view.schedules()?.into_iter();
    let ticks = schedules.filter_map(|known| Some(NextTick { at: known.next?, schedule: known.name }));
    let mut ticks: Vec<NextTick> = ticks.collect();
    ticks.sort_by(|a, b| (a.at, &a.schedule).cmp(&(b.at, &b.schedule)));
    ticks.truncate(TICKS);
    Ok(ticks)
}

impl OpenRunRecords {
    /// Reads the missions and schedules of a tenant and an assignee for display, and the open runs of all.
    pub(super) fn read(
        view: &View<'_>,
        with_tasks: bool,
        tenant: Option<&Tenant>,
        assignee: Option<&Profile>,
        actor: &Actor,
    ) -> Result<Self, kernel::Error> {
        let runs = view.open_runs_with_spent()?;
        let titles = view.titles(&runs.iter().map(|run| &run.task_id).collect::<Vec<_>>())?;
        let mut open = OpenRunRecords { runs, titles, ..OpenRunRecords::default() };
        // A run without a heartbeat has no note.
        for run in open.runs.iter().filter(|run| run.last_heartbeat_at.is_some()) {
            open.notes.extend(view.last_note(&run.task_id, run.id)?.map(|note| (run.id, note)));
        }
        for run in open.runs.iter().filter(|_| with_tasks) {
            open.tasks.extend(view.task(&run.task_id)?.map(|task| (run.task_id.clone(), task)));
        }
        if tenant.is_none() {
            open.ticks = next_ticks(view)?;
            let now = SystemClock.now();
            let is_recent = |set: &ClockSet| set.at <= now && now.since(set.at) < SHOWN_CORRECTION;
            open.clock_set = view.clock_set()?.filter(is_recent);
        }
        open.asking = view.asking_missions(tenant, assignee, LISTED as usize, actor)?;
        Ok(open)
    }
}

/// An open run as the board alone knows it, while no daemon runs.
pub(super) fn orphan(board: &BoardName, run: &Run, task: Option<&Task>) -> LiveRun {
    LiveRun {
        phase: Phase::Running,
        note: Some("no daemon watches it; the next one takes it over".to_owned()),
        ..LiveRun::from_run(board, run, task)
    }
}
