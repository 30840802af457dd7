//! Host of a simulation: shims, workers and run directories, which outlive every daemon.

use std::collections::BTreeMap;

use kernel::{Clock as _, ManualClock, RunId, TaskId};
use shim::rundir::{Cause, ExitRecord, FailedStart, Step, StopReason, StopRequest};

use super::dice::Dice;
use super::hazard::{Hazard, Hazards};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShimLife {
    /// Not started yet.
    None,
    /// Started, and has not taken its lock yet.
    Coming,
    Locked,
    /// Has written its pid record.
    Named,
    /// Ended after its run.
    Finished,
    /// Ended in another way.
    Killed,
}

/// State of a worker and of all that it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerLife {
    None,
    Alive,
    Gone,
}

/// Directory of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub(super) is_revoked: bool,
    /// Boot in which its shim wrote the pid record.
    pub(super) named: Option<String>,
    pub(super) is_damaged: bool,
    pub(super) has_started: bool,
    pub(super) exit: Option<ExitRecord>,
}

/// A run on the host.
#[derive(Clone, Debug)]
pub(super) struct HostRun {
    pub(super) run: RunId,
    pub(super) task: TaskId,
    pub(super) shim: ShimLife,
    pub(super) worker: WorkerLife,
    /// Its directory; none once it was removed.
    pub(super) records: Option<Records>,
    /// True if all that it starts stays in its cgroup.
    pub(super) has_cgroup: bool,
    /// True if its processes carry its mark.
    pub(super) is_marked: bool,
    stop: Option<StopReason>,
    /// Exit code of its worker, if it exits by itself.
    pub(super) code: i32,
}

impl HostRun {
    /// Returns true if its lock is held.
    pub(super) fn is_locked(&self) -> bool {
        matches!(self.shim, ShimLife::Locked | ShimLife::Named)
    }

    /// Returns true if any of its processes lives, or will be started without further action.
    pub(super) fn is_alive(&self) -> bool {
        let comes = self.shim == ShimLife::Coming
            && self.records.as_ref().is_some_and(|records| !records.is_revoked && records.exit.is_none());
        comes || self.is_locked() || self.worker == WorkerLife::Alive
    }

    /// Returns true if its shim was asked to end it.
    pub(super) fn is_asked(&self) -> bool {
        self.stop.is_some()
    }

    /// Returns the pid by which it is watched.
    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.run.get()).unwrap_or(i32::MAX).saturating_add(1000)
    }
}

#[derive(Debug, Default)]
pub(super) struct Host {
    runs: BTreeMap<RunId, HostRun>,
    /// Runs with a second worker, which must not happen.
    pub(super) doubles: Vec<RunId>,
    boots: u32,
}

impl Host {
    pub(super) fn boot_id(clock: &ManualClock) -> String {
        clock.boot_id()
    }

    pub(super) fn get(&self, run: RunId) -> Option<&HostRun> {
        self.runs.get(&run)
    }

    pub(super) fn get_mut(&mut self, run: RunId) -> Option<&mut HostRun> {
        self.runs.get_mut(&run)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &HostRun> {
        self.runs.values()
    }

    /// Makes the directory of a run.
    pub(super) fn prepare(&mut self, run: &kernel::Run, dice: &mut Dice) {
        let made = HostRun {
            run: run.id,
            task: run.task_id.clone(),
            shim: ShimLife::None,
            worker: WorkerLife::None,
            records: Some(Records::default()),
            has_cgroup: !dice.one_in(3),
            is_marked: !dice.one_in(4),
            stop: None,
            code: match dice.below(12) {
                0..8 => 0,
                // The code for a limit of the service.
                8 => 75,
                _ => i32::try_from(run.id.get() % 60).unwrap_or(1) + 1,
            },
        };
        self.runs.insert(run.id, made);
    }

    /// Starts the shim of a run.
    pub(super) fn spawn(&mut self, run: RunId) {
        if let Some(run) = self.runs.get_mut(&run) {
            run.shim = ShimLife::Coming;
        }
    }

    /// Asks the shim of a run to end it. An unread request has no effect.
    pub(super) fn stop(&mut self, run: RunId, request: &StopRequest) {
        if let Some(run) = self.runs.get_mut(&run) {
            run.stop = Some(request.reason);
        }
    }

    /// Removes the directory of a run, like a daemon that has recorded its end.
    pub(super) fn remove(&mut self, run: RunId) {
        if let Some(run) = self.runs.get_mut(&run) {
            run.records = None;
        }
    }

    /// Removes runs of which only the number is left.
    pub(super) fn tidy(&mut self) {
        self.runs.retain(|_, run| run.is_alive() || run.records.is_some() || run.shim == ShimLife::Coming);
    }

    /// Ends every process, like a reboot. Directories stay.
    pub(super) fn reboot(&mut self, clock: &ManualClock) {
        self.boots += 1;
        clock.reboot(&format!("boot-{}", self.boots + 1));
        for run in self.runs.values_mut() {
            if run.worker == WorkerLife::Alive {
                run.worker = WorkerLife::Gone;
            }
            if !matches!(run.shim, ShimLife::None | ShimLife::Finished) {
                run.shim = ShimLife::Killed;
            }
        }
        self.doubles.clear();
    }

    /// Returns the runs that can advance by themselves.
    pub(super) fn movable(&self) -> Vec<RunId> {
        let moves = |run: &&HostRun| {
            !matches!(run.shim, ShimLife::None | ShimLife::Finished | ShimLife::Killed)
                || run.worker == WorkerLife::Alive
        };
        self.runs.values().filter(moves).map(|run| run.run).collect()
    }

    /// Advances a run by one step. Without hazards, workers and survivors come to their end.
    pub(super) fn advance(
        &mut self,
        id: RunId,
        dice: &mut Dice,
        clock: &ManualClock,
        hazards: &Hazards,
    ) -> String {
        let mut step_text = format!("run {id} on the host: ");
        let Some(run) = self.runs.get_mut(&id) else { return step_text };
        if dice.one_in(15) && hazards.contains(&Hazard::Kills) {
            run.suffer(dice, &mut step_text);
            return step_text;
        }
        let now_us = u64::try_from(clock.boottime().as_micros()).unwrap_or_default();
        let done = match (run.shim, run.worker) {
            (ShimLife::Coming, _) => match &run.records {
                Some(records) if !records.is_revoked => {
                    run.shim = ShimLife::Locked;
                    "its shim locks"
                }
                Some(_) | None => {
                    run.shim = ShimLife::Finished;
                    "its shim finds that it is revoked"
                }
            },
            (ShimLife::Locked, _) => {
                run.shim = ShimLife::Named;
                if let Some(records) = &mut run.records {
                    records.named = Some(clock.boot_id());
                }
                "its shim says who it is"
            }
            (ShimLife::Named, WorkerLife::None) => run.begin(dice, now_us, hazards),
            (ShimLife::Named, WorkerLife::Alive) => {
                if run.stop.is_none() && !dice.one_in(3) && !hazards.is_empty() {
                    "its worker works"
                } else {
                    run.worker = WorkerLife::Gone;
                    "its worker ends"
                }
            }
            (ShimLife::Named, WorkerLife::Gone) => {
                run.record(now_us);
                "its shim records the end"
            }
            (ShimLife::None | ShimLife::Finished | ShimLife::Killed, WorkerLife::Alive) => {
                if dice.one_in(8) || hazards.is_empty() {
                    run.worker = WorkerLife::Gone;
                    "what survived ends"
                } else {
                    "something survives"
                }
            }
            (ShimLife::None | ShimLife::Finished | ShimLife::Killed, WorkerLife::None | WorkerLife::Gone) => {
                "nothing"
            }
        };
        step_text.push_str(done);
        step_text
    }
}

impl HostRun {
    /// Applies a random fault to it.
    fn suffer(&mut self, dice: &mut Dice, step_text: &mut String) {
        let what = match dice.below(6) {
            0..3 if self.shim != ShimLife::Finished && self.shim != ShimLife::None => {
                self.shim = ShimLife::Killed;
                if self.worker == WorkerLife::Alive && dice.one_in(2) {
                    self.worker = WorkerLife::Gone;
                }
                "its shim is killed"
            }
            3 => {
                self.worker = if self.worker == WorkerLife::Alive { WorkerLife::Gone } else { self.worker };
                "its worker is killed"
            }
            // A run without cgroup and mark keeps its directory, because it is the only trace of the run.
            4 if self.has_cgroup || self.is_marked => {
                self.records = None;
                "its directory is taken away"
            }
            5 if self.shim == ShimLife::Killed => {
                if let Some(records) = &mut self.records {
                    records.is_damaged = true;
                }
                "its records are damaged"
            }
            _ => "nothing",
        };
        step_text.push_str(what);
    }

    fn begin(&mut self, dice: &mut Dice, now_us: u64, hazards: &Hazards) -> &'static str {
        if self.records.is_none() {
            // confine finds no spec, and the shim has no place for its records.
            self.shim = ShimLife::Killed;
            return "its shim finds no directory";
        }
        if self.stop.is_some() {
            self.worker = WorkerLife::Gone;
            return "its shim is asked to end it before its worker begins";
        }
        if dice.one_in(15) && hazards.contains(&Hazard::FailedStarts) {
            let step = *dice
                .pick(&[Step::Exec, Step::Lease, Step::Cwd, Step::Apply, Step::Log])
                .unwrap_or(&Step::Exec);
            let errno = if dice.one_in(3) { nix::errno::Errno::ENOSPC } else { nix::errno::Errno::ENOENT };
            let failed = FailedStart::new(step, &std::io::Error::from_raw_os_error(errno as i32));
            if let Some(records) = &mut self.records {
                records.exit = Some(ExitRecord::with_cause(Cause::SpawnFailed(failed), now_us));
            }
            self.worker = WorkerLife::Gone;
            self.shim = ShimLife::Finished;
            return "its worker cannot be started";
        }
        self.worker = WorkerLife::Alive;
        if let Some(records) = &mut self.records {
            records.has_started = true;
        }
        "its worker begins"
    }

    /// Records the end, once the shim has seen that nothing is left.
    fn record(&mut self, now_us: u64) {
        self.shim = ShimLife::Finished;
        let code = self.code;
        let cause = self.stop.map_or(Cause::Exited, |reason| Cause::Stopped { reason });
        if let Some(records) = &mut self.records {
            let wall = None;
            records.exit = Some(ExitRecord {
                code: Some(code),
                ended_at_wall_us: wall,
                ..ExitRecord::with_cause(cause, now_us)
            });
        }
    }
}
