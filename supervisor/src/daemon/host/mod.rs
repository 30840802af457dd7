//! What the daemon has of the host: cgroups, users, processes beside it, sockets and timers.

pub(super) mod cgroup;
pub(super) mod controllers;
pub(super) mod denial;
pub(super) mod examine;
pub(super) mod handback;
pub(super) mod home;
pub(super) mod job;
pub(super) mod neighbours;
pub(super) mod remove;
pub(super) mod service_link;
pub(super) mod sockets;
pub(super) mod spare;
pub(super) mod timer;
pub(super) mod uids;
pub(super) mod watch;
