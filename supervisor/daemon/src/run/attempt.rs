//! A task to be started, and the basis for judging a failure of its start.

use kernel::Candidate;

use super::environment::Needs;
use setup::roster::PoolClaim;

/// A task to be started.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub candidate: Candidate,
    /// Limited resources that it takes.
    pub resources: PoolClaim,
    /// Basis for judging a failure of its start.
    pub terms: Terms,
}

/// Basis for judging a failed start.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Environments that the run shares with others; none if its profile is not known.
    pub needs: Option<Needs>,
    /// Target of the charge when one of those environments fails.
    pub charge: Charge,
}

/// Target of the charge when a start fails in its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The environment, as long as it works for no other task.
    Environment,
    /// The task, because the environment works for others.
    Task,
}
