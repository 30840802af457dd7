//! The life of one run, from the claim of its task to the end by proof.

pub(super) mod artifacts;
pub(super) mod attempt;
mod claim;
pub(super) mod closed;
pub(super) mod conclude;
pub(super) mod environment;
pub(super) mod external;
pub(super) mod fault;
pub(super) mod files;
mod finish;
pub(super) mod key;
pub(super) mod launch;
pub(super) mod live;
pub(super) mod place;
pub(super) mod pokes;
mod private;
pub(super) mod recover;
mod remains;
pub(super) mod report;
pub(super) mod run_task;
mod seal;
mod settle;
mod stage;
pub(super) mod starts;
mod survivors;
pub(super) mod usable;
