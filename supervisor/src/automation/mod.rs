//! Configured activities of the supervisor besides running workers: chats, plugins, proposals and schedules. Their
//! rows and rules belong to the kernel.

pub(crate) mod chat;
pub(crate) mod plugins;
pub(crate) mod proposals;
pub(crate) mod schedules;
