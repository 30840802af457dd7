//! State of the daemon and of the host, and their control.

pub(crate) mod dashboard;
pub(crate) mod diagnostics;
pub(crate) mod doctor;
pub(crate) mod gc;
pub(crate) mod metrics;
pub(crate) mod reload;
pub(crate) mod spend;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod stop;
