//! A fault that a run of the simulator finds, with all that is needed to see it again.

use std::collections::VecDeque;

/// How many of the last steps are shown.
const SHOWN: usize = 30;

/// Something that must never be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Which invariant does not hold.
    pub(super) broken: Invariant,
    pub(super) seen: String,
}

/// What always holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Invariant {
    /// What was acknowledged is there, also after a crash.
    NothingLost,
    /// No task has two workers, and no run ends twice or with the end of another one.
    NothingTwice,
    /// A run ends on the board when nothing of it is left, or a person decides it.
    ClaimsByProof,
    /// A write from a run that is over changes nothing.
    FencedByRun,
    /// The log leads to the board, and the file is whole.
    ReplayEqual,
    /// A task that waits says what for, and that is so.
    TrueWhy,
    /// What can start starts, and what has an end ends.
    NoStarvation,
    /// Nothing panics, and nothing fails but for a fault that was injected.
    NoSurprise,
}

impl Fault {
    pub(super) fn new(broken: Invariant, seen: impl Into<String>) -> Self {
        Fault { broken, seen: seen.into() }
    }
}

/// The last steps.
#[derive(Debug, Default)]
pub(super) struct Trail {
    lines: VecDeque<String>,
    /// How many steps there were.
    pub(super) steps: u64,
}

impl Trail {
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

impl std::fmt::Display for Trail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
