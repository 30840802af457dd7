//! Files of tasks.

pub(crate) mod attach;
pub(crate) mod file;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod rm;
