//! The proxy, the only network endpoint of a run under a policy with `[network] mode = "proxy"`.
//!
//! ```text
//! worker ──► 127.0.0.1:3128 of its own network ══listening socket══► this proxy ──► the hosts that its policy names
//! ```
//!
//! The proxy needs no authentication of its callers: each socket was made in the network namespace of one run
//! (`policies::Keeper`). A worker's input is hostile:
//!
//! 1. [`run_proxies`]: each run has a share of connections, and further connections wait in the queue of the run's
//!    socket.
//! 2. [`head`]: the head of a request is limited in bytes and in time.
//! 3. [`host_check`]: the policy must name the host and, if a name resolves to an address that is not public, the
//!    address too. The proxy resolves the name itself and connects to the address that it checked, so that a second
//!    answer of the name server cannot change the target.
//! 4. [`relay`]: idle connections are closed. Bytes are counted.
//! 5. [`broker`]: for a host whose key the worker never has, the worker sends a plain request to the proxy itself, by
//!    `/host/path`. The proxy adds the header with the key and contacts the host over TLS; the key is read from its
//!    file for each request. A tunnel to such a host is terminated here, with a certificate of the run's own
//!    [`authority`], and its request is treated in the same way: [`tls_tunnel`]. Other headers and parameters that
//!    identify the caller are removed: [`credentials`].
//! 6. [`meter`]: a request is admitted while the run, its tenant and its account have budget left.
//! 7. [`traffic`]: traffic is counted for each host; a refusal becomes an event of the run, up to a number of hosts.
//!    The counts include the times at which refusing services accept requests again: [`retry_after`].
//!
//! Except for brokers' requests, the proxy does not inspect the traffic: a worker may send any data that it has to a
//! named host.
//!
//! See decisions 0091 and 0104.

mod addresses;
mod authority;
mod broker;
mod command_proxy;
mod connection;
mod connection_rate;
mod credentials;
#[cfg(test)]
mod fuzz_tests;
mod head;
mod host_check;
mod meter;
mod own_response;
mod reach;
mod relay;
mod resource_claims;
mod retry_after;
mod run_proxies;
mod terms;
mod tls;
mod tls_tunnel;
mod traffic;

pub use authority::{Authority, pem};
pub use command_proxy::CommandProxy;
pub use host_check::unnamed_address;
pub use own_response::DENIED;
pub use run_proxies::{ProxiedRun, RunProxies};
pub use tls::{trusted, trusting};
pub use traffic::DeniedHost;
