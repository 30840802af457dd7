//! Connects to a permitted target: resolves its name, checks the addresses, and applies a time limit.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use policies::{Host, Policy, Target};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::host_check::{self, RefusedTarget};
use super::resource_claims::{ResourceHolder, SharedResource};

/// Time limit for resolving a name and connecting to its addresses.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Limit on concurrent look-ups of one run.
const OF_RUN: usize = 4;

/// Reason why a target is not reached.
#[derive(Debug)]
pub(super) enum Unreached {
    Refused(RefusedTarget),
    Unknown,
    Slow,
    Failed(io::Error),
}

impl Unreached {
    /// Returns the status of the response, and the reason. A refusal by the policy has a response of its own.
    pub(super) fn status_and_reason(&self) -> (u16, String) {
        match self {
            Self::Slow => (504, format!("did not answer within {} seconds", CONNECT.as_secs())),
            Self::Failed(error) => (502, format!("cannot be connected to: {error}")),
            Self::Unknown | Self::Refused(_) => (502, "could not be resolved by this host".to_owned()),
        }
    }
}

/// Name look-ups of one run. Each blocks a thread, however slow the name servers are, and cannot be cancelled. So a
/// run gets only a part of its tenant's look-ups, and a tenant leaves some to others.
#[derive(Debug)]
pub(super) struct Lookups {
    of_run: Arc<Semaphore>,
    tenant: Arc<ResourceHolder>,
    all: Arc<SharedResource>,
}

impl Lookups {
    pub(super) fn new(tenant: Arc<ResourceHolder>, all: Arc<SharedResource>) -> Self {
        Lookups { of_run: Arc::new(Semaphore::new(OF_RUN)), tenant, all }
    }

    async fn find(&self, name: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.of_run).acquire_owned().await.map_err(io::Error::other)?;
        self.all.may_claim(&self.tenant).await;
        let claim = self.all.claim(&self.tenant);
        let name = name.to_owned();
        // In a separate task, so that the look-up counts until it has ended, even if the caller has given up.
        let lookup = tokio::spawn(async move {
            let found = tokio::net::lookup_host((name.as_str(), port)).await;
            drop((permit, claim));
            found.map(|all| all.map(|address: SocketAddr| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}

/// Connects to an address that was checked; the name is not resolved again.
pub(super) async fn reach(
    policy: &Policy,
    lookups: &Lookups,
    target: &Target,
) -> Result<TcpStream, Unreached> {
    let connect = async {
        let found = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => lookups.find(name, target.port).await.map_err(|_| Unreached::Unknown)?,
        };
        let addresses = host_check::check_addresses(policy, target, found).map_err(Unreached::Refused)?;
        let mut last = Unreached::Unknown;
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(server) => {
                    // Nagle's delay would hold back the worker's small writes.
                    server.set_nodelay(true).ok();
                    return Ok(server);
                }
                Err(error) => last = Unreached::Failed(error),
            }
        }
        Err(last)
    };
    within(connect).await
}

/// Applies the time limit.
pub(super) async fn within<T>(work: impl Future<Output = Result<T, Unreached>>) -> Result<T, Unreached> {
    tokio::time::timeout(CONNECT, work).await.unwrap_or(Err(Unreached::Slow))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Makes the look-ups of a run whose tenant has used up its share.
    fn busy() -> Lookups {
        Lookups::new(ResourceHolder::with(0), SharedResource::new(8))
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_is_not_found_in_time_is_given_up() {
        let text = "version = 1\n[network]\nmode = 'proxy'\nhosts = ['a.example']";
        let policy = Policy::from_toml(text, Path::new("p.toml")).unwrap();
        let target = Target::parse("a.example:443", None).unwrap();
        let start = tokio::time::Instant::now();
        let unreached = reach(&policy, &busy(), &target).await.unwrap_err();
        assert_eq!(start.elapsed(), CONNECT);
        assert_eq!(unreached.status_and_reason(), (504, "did not answer within 10 seconds".to_owned()));
    }
}
