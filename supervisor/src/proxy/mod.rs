//! The way out: the proxy that is all a run under a policy with `[network] mode = "proxy"` can reach.
//!
//! ```text
//! worker ──► 127.0.0.1:3128 of its own network ══listening socket══► this proxy ──► the hosts that its policy names
//! ```
//!
//! Who calls is known by construction: the socket was made in the network of one run (`policies::Keeper`). What a worker
//! sends is hostile:
//!
//! 1. [`ways`]: each run has a share of connections, and what is too much waits in its own queue, in the kernel.
//! 2. [`head`]: the head of a request is bounded in bytes and in time.
//! 3. [`verdict`]: the policy names the host, and where a name leads to an address that is not the internet's, the address
//!    too. The proxy resolves the name and connects to the very address that was looked at.
//! 4. [`relay`]: what is idle for long ends. Bytes are counted.
//! 5. [`broker`]: a host whose key the worker never has is asked in the clear at the proxy itself, by `/host/path`. The proxy adds
//!    the header with the key and asks the host over TLS; the key is read from its file for each request.
//!    A tunnel to such a host is ended here, with a certificate of the run's own [`authority`], and comes to the same: [`ended`].
//!    Whatever else says who asks, headers and parameters, stays with the worker: [`credentials`].
//! 6. [`meter`]: a request is let through as long as the run, its tenant and its account have something left of their budgets.
//! 7. [`tally`]: what passes is counted for each host; what is refused is an event of the run, up to a number of hosts. When a service that
//!    refuses a run can be asked again, as it says to a broker, is known there too: [`retry_after`].
//!
//! Beside what a broker adds, it does not look into what it passes on: the worker may send whatever it has to a host that is named.

mod addresses;
mod alone;
mod answer;
mod authority;
mod broker;
mod connection;
mod credentials;
mod ended;
#[cfg(test)]
mod fuzz_tests;
mod head;
mod meter;
mod pace;
mod reach;
mod relay;
mod retry_after;
mod shares;
mod tally;
mod terms;
mod tls;
mod verdict;
mod ways;

pub(crate) use alone::Alone;
pub(crate) use answer::DENIED;
pub(crate) use authority::{Authority, pem};
pub(crate) use tally::DeniedHost;
pub(crate) use tls::{trusted, trusting};
pub(crate) use verdict::unnamed_address;
pub(crate) use ways::{Served, WaysOut};
