//! Requests of a worker about its own task.

pub(crate) mod ask;
pub(crate) mod block;
pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod consult;
pub(crate) mod context;
pub(crate) mod handoff_check;
pub(crate) mod heartbeat;
