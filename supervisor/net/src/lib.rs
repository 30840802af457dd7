//! Network of runs: the proxy of their requests, and the traces that a collector receives; with the HTTP client of all
//! other crates.

pub mod http_client;
pub mod proxy;
pub mod telemetry;
