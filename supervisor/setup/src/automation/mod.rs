//! Configured activities of the supervisor besides running workers: chats, plugins, proposals and schedules. Their
//! rows and rules belong to the kernel.

pub mod chat;
pub mod plugins;
pub mod proposals;
pub mod schedules;
