//! What the supervisor does on its own besides running workers. The rows and the rules are the kernel's.

pub(crate) mod chat;
pub(crate) mod plugins;
pub(crate) mod proposals;
pub(crate) mod schedules;
