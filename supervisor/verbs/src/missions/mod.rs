//! Missions, and the proposals of profiles about them.

pub(crate) mod control;
pub(crate) mod list;
pub(crate) mod propose;
pub(crate) mod swarm;
