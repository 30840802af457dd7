//! What this program has of the host: cgroups, users, processes beside its own, sockets and timers.

pub(crate) mod account;
pub(crate) mod cgroup;
pub(crate) mod controllers;
pub(crate) mod denial;
pub(crate) mod ended;
pub(crate) mod examine;
pub(crate) mod handback;
pub(crate) mod headroom;
pub(crate) mod home;
pub(crate) mod job;
pub(crate) mod kept;
pub(crate) mod neighbours;
pub(crate) mod own_directory;
pub(crate) mod proc_file;
pub(crate) mod readiness;
pub(crate) mod remove;
pub(crate) mod service_link;
pub(crate) mod service_manager;
pub(crate) mod socket_file;
pub(crate) mod sockets;
pub(crate) mod spare;
pub(crate) mod timer;
pub(crate) mod uids;
pub(crate) mod usage;
pub(crate) mod watch;
pub(crate) mod worker_signal;
