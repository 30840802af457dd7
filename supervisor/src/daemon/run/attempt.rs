//! A task that is to be started, and by what a failure of its start is judged.

use kernel::Candidate;

use super::environment::Needs;
use crate::roster::Share;

/// A task that is to be started.
#[derive(Debug)]
pub(in crate::daemon) struct Attempt {
    /// The task.
    pub(in crate::daemon) candidate: Candidate,
    /// What it takes of what is limited.
    pub(in crate::daemon) share: Share,
    /// Where a fault of its start may lie.
    pub(in crate::daemon) terms: Terms,
}

/// By what the failure of a start is judged.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct Terms {
    /// What the run needs in common with others; none where nothing is known of its profile.
    pub(in crate::daemon) needs: Option<Needs>,
    /// To whom a failure of that is charged.
    pub(in crate::daemon) charge: Charge,
}

/// To whom a start that fails in its environment is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::daemon) enum Charge {
    /// To the environment, as long as it works for nobody.
    Environment,
    /// To the task: the environment works for others.
    Task,
}
