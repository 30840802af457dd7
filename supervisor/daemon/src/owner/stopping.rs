//! Modes of stopping a daemon, and the reason that a shim gets for the end of its run.

use kernel::{BoardName, Counted, RunId, StopReason, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::run::live::{LiveRun, Phase};

/// Way in which the daemon stops.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// Leaves workers running under their shims; the next daemon adopts them.
    Leave,
    /// Starts nothing more and waits for workers, up to the configured limit; then as `Preempt`.
    Drain,
    /// Ends workers with TERM, grace and KILL; their tasks go back to ready.
    Preempt,
    /// Ends workers at once.
    Kill,
}

impl StopMode {
    pub(crate) fn ends_workers(self) -> bool {
        match self {
            StopMode::Leave | StopMode::Drain => false,
            StopMode::Preempt | StopMode::Kill => true,
        }
    }

    /// Returns the description that `status` shows during the stop.
    pub fn word(self) -> &'static str {
        match self {
            StopMode::Leave => "leaving workers to the next daemon",
            StopMode::Drain => "draining: waits for workers, starts none",
            StopMode::Preempt => "ending workers",
            StopMode::Kill => "killing workers",
        }
    }
}

/// Returns the mode of a stop after a further request.
///
/// `Leave` is possible at any time. A worker that was asked to end cannot be called back, so of the other modes the
/// most urgent one stays.
pub(crate) fn next_mode(before: Option<StopMode>, asked: StopMode) -> StopMode {
    match (before, asked) {
        (None, asked) | (Some(_), asked @ StopMode::Leave) => asked,
        (Some(before), asked) => before.max(asked),
    }
}

/// Returns the mode after a further interrupt, each time one step sharper.
pub(crate) fn sharper_mode(before: Option<StopMode>) -> StopMode {
    match before {
        None => StopMode::Drain,
        Some(StopMode::Leave) => StopMode::Leave,
        Some(StopMode::Drain) => StopMode::Preempt,
        Some(StopMode::Preempt | StopMode::Kill) => StopMode::Kill,
    }
}

/// A run that the daemon can neither end nor wait for, and leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingRun {
    pub task: TaskId,
    pub run: RunId,
    /// Known state of its processes.
    pub note: String,
    /// True if SIGKILL does not end its processes; false if it is not known whether they have ended.
    #[serde(default)]
    pub(crate) is_unkillable: bool,
}

impl RemainingRun {
    /// Describes a live run.
    pub fn from_live(live: &LiveRun) -> Self {
        RemainingRun {
            task: live.task.clone(),
            run: live.run,
            note: live.note.clone().unwrap_or_default(),
            is_unkillable: live.phase == Phase::Unkillable,
        }
    }
}

/// Consequences of a stop for the workers, as the reply to its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopPlan {
    pub pid: u32,
    pub mode: StopMode,
    pub asked: StopMode,
    pub workers: usize,
    /// Number of workers already asked to end.
    pub ending: usize,
    /// Time at which a drain ends the remaining workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Time between TERM and KILL, in seconds.
    pub grace_seconds: u64,
    /// Runs that it can neither end nor wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<RemainingRun>,
    /// Boards with runs that it does not serve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<BoardName>,
}

impl StopPlan {
    /// Describes in lines of text what happens when.
    pub fn lines(&self, now: Timestamp) -> Vec<String> {
        let Self { pid, workers, grace_seconds, .. } = self;
        let counted = Counted(*workers, "worker");
        let ending = format!("its {counted}: TERM now, KILL after {grace_seconds}s; then it ends");
        let what = match self.mode {
            _ if *workers == 0 && !self.unserved.is_empty() => {
                "ends now: no board that it serves has a worker".to_owned()
            }
            _ if *workers == 0 && self.left.is_empty() => "ends now: it has no workers".to_owned(),
            _ if *workers == 0 => "ends now: it has no worker to wait for".to_owned(),
            StopMode::Leave => format!("ends now and leaves its {counted} to the next daemon"),
            StopMode::Drain => {
                let until = self.until.map(|at| format!(" until {}", base::time::timestamp::soon(at, now)));
                format!(
                    "starts no more workers and waits for its {counted}{}; then it ends them: TERM, KILL after \
                     {grace_seconds}s",
                    until.unwrap_or_default()
                )
            }
            StopMode::Preempt => format!("ends {ending}"),
            StopMode::Kill => format!("kills its {counted} and ends"),
        };
        let mut lines = vec![format!("The daemon (pid {pid}) {what}.")];
        if self.mode == StopMode::Leave && self.ending > 0 {
            lines.push(format!("{} of them were already told to end, and will.", self.ending));
        }
        if self.mode > self.asked && *workers > 0 {
            lines.push("Its workers were already told to end; that cannot be undone.".to_owned());
        }
        if self.mode == StopMode::Drain && *workers > 0 {
            lines.push(
                "`supervisor stop --leave` leaves them running, `supervisor stop --now` ends them now."
                    .to_owned(),
            );
        }
        if !self.unserved.is_empty() {
            let boards: Vec<&str> = self.unserved.iter().map(BoardName::as_str).collect();
            let does = if self.mode == StopMode::Leave { "leaves" } else { "ends" };
            lines
                .push(format!("It {does} the runs of boards that it does not serve: {}.", boards.join(", ")));
        }
        lines.extend(self.left.iter().map(|left| {
            let (does, keeps) = if self.mode.ends_workers() && !left.is_unkillable {
                ("It ends what is known to be of", ", and keeps its claim")
            } else {
                ("It leaves", "")
            };
            format!("{does} {} (run {}){keeps}: {}", left.task, left.run, left.note)
        }));
        lines
    }

    /// Describes the effect of one more interrupt, for a person at the daemon's terminal.
    pub(crate) fn next_interrupt(&self) -> Option<&'static str> {
        match self.mode {
            _ if self.workers == 0 => None,
            StopMode::Leave | StopMode::Kill => None,
            StopMode::Drain => Some("Ctrl-C again ends them now, with TERM."),
            StopMode::Preempt => Some("Ctrl-C again kills them."),
        }
    }
}

/// Returns the urgency of a reason. A later stop may be sharper than the last, never softer.
pub(crate) fn urgency(reason: StopReason) -> u8 {
    match reason {
        StopReason::Verdict => 0,
        StopReason::Reclaimed | StopReason::Cancelled | StopReason::Preempted | StopReason::Stalled => 1,
        StopReason::Kill => 2,
    }
}

/// Returns the shim's reason. A stalled run is ended like a reclaimed one; the board records the difference.
pub(crate) fn shim_reason(reason: StopReason) -> shim::rundir::StopReason {
    use shim::rundir::StopReason as Shim;
    match reason {
        StopReason::Verdict => Shim::Verdict,
        StopReason::Reclaimed | StopReason::Stalled => Shim::Reclaimed,
        StopReason::Cancelled => Shim::Cancelled,
        StopReason::Preempted => Shim::Preempted,
        StopReason::Kill => Shim::Kill,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(mode: StopMode, asked: StopMode) -> StopPlan {
        StopPlan {
            pid: 7,
            mode,
            asked,
            workers: 2,
            ending: 0,
            until: Some(Timestamp::from_secs(1_000_030)).filter(|_| mode == StopMode::Drain),
            grace_seconds: 5,
            left: Vec::new(),
            unserved: Vec::new(),
        }
    }

    #[test]
    fn the_milder_word_wins_where_workers_have_not_been_told_to_end() {
        assert_eq!(next_mode(Some(StopMode::Drain), StopMode::Leave), StopMode::Leave);
        assert_eq!(next_mode(Some(StopMode::Preempt), StopMode::Leave), StopMode::Leave);
        assert_eq!(next_mode(Some(StopMode::Drain), StopMode::Drain), StopMode::Drain);
        assert_eq!(next_mode(Some(StopMode::Kill), StopMode::Drain), StopMode::Kill);
        assert_eq!(next_mode(Some(StopMode::Drain), StopMode::Preempt), StopMode::Preempt);
    }

    #[test]
    fn each_interrupt_is_one_step_sharper_and_says_what_the_next_one_does() {
        let modes = [None, Some(StopMode::Drain), Some(StopMode::Preempt), Some(StopMode::Kill)];
        assert_eq!(
            modes.map(sharper_mode),
            [StopMode::Drain, StopMode::Preempt, StopMode::Kill, StopMode::Kill]
        );
        let hint_for = |mode| plan(mode, mode).next_interrupt();
        assert!(
            hint_for(StopMode::Drain).unwrap().contains("TERM")
                && hint_for(StopMode::Preempt).unwrap().contains("kills")
        );
        assert_eq!(hint_for(StopMode::Kill), None);
    }

    #[test]
    fn a_plan_says_what_happens_until_when_and_what_cannot_be_taken_back() {
        let now = Timestamp::from_secs(1_000_000);
        let drain = plan(StopMode::Drain, StopMode::Drain).lines(now);
        assert!(
            drain[0].contains("waits for its 2 workers until") && drain[0].contains("KILL after 5s"),
            "{drain:?}"
        );
        let late = plan(StopMode::Preempt, StopMode::Drain).lines(now);
        assert!(late[1].contains("cannot be undone"), "{late:?}");
        let none = StopPlan { workers: 0, ..plan(StopMode::Drain, StopMode::Drain) }.lines(now);
        assert_eq!(none, ["The daemon (pid 7) ends now: it has no workers."]);
    }
}
