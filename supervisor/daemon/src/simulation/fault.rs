//! A fault found by the simulator, with all that is needed to reproduce it.

use std::collections::VecDeque;

/// Number of last steps shown.
const SHOWN: usize = 30;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) broken: Invariant,
    pub(super) seen: String,
}

/// Rules that always hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invariant {
    /// Acknowledged facts survive, also a crash.
    NothingLost,
    /// No task has two workers. No run ends twice, or with the end of another one.
    NothingTwice,
    /// A run ends on the board when nothing of it is left, or a person decides it.
    ClaimsByProof,
    /// A write from an ended run changes nothing.
    FencedByRun,
    /// Replaying the log yields the board, and the file is intact.
    ReplayEqual,
    /// A waiting task has a reason, which is true.
    TrueWhy,
    /// Tasks that can start do so, and runs that can end do so.
    NoStarvation,
    /// Nothing panics, and nothing fails without an injected fault.
    NoSurprise,
}

impl Fault {
    pub(super) fn new(broken: Invariant, seen: impl Into<String>) -> Self {
        Fault { broken, seen: seen.into() }
    }
}

/// The last steps.
#[derive(Debug, Default)]
pub(super) struct StepHistory {
    lines: VecDeque<String>,
    /// Number of steps so far.
    pub(super) steps: u64,
}

impl StepHistory {
    /// Begins a step.
    pub(super) fn step(&mut self, what: &str) {
        self.steps += 1;
        if self.lines.len() == SHOWN {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>8}  {what}", self.steps));
    }

    /// Adds to the last step.
    pub(super) fn note(&mut self, what: &str) {
        if let Some(line) = self.lines.back_mut() {
            line.push_str(" → ");
            line.push_str(what);
        }
    }
}

impl std::fmt::Display for StepHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
