//! Network of runs: the proxy of their requests, and the traces that a collector receives.

pub mod proxy;
pub mod telemetry;
