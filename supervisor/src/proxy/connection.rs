//! One connection of a worker: its request, the verdict on it, and the way to the server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use policies::{Host, Policy, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::head::{self, Kind, Request};
use super::relay::relay;
use super::tally::{Note, Tally};
use super::verdict::{self, Refusal};

/// How long the look-up of a name and the connection to its addresses may take together.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer of the proxy's own may take to be read.
const ANSWER: Duration = Duration::from_secs(5);
/// How many names of one run are looked up at once: a look-up has a thread to itself, however slow its name servers are.
pub(super) const LOOKUPS: usize = 4;

/// What all connections of a run share.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) policy: Policy,
    pub(super) tally: Arc<Tally>,
    pub(super) lookups: Arc<Semaphore>,
}

/// Why a target that is permitted is not reached.
enum Unreached {
    Refused(Refusal),
    Unknown,
    Slow,
    Failed(io::Error),
}

/// Serves a connection. `note` hears of what is refused and is to be noted.
pub(super) async fn serve(mut worker: TcpStream, terms: Arc<Terms>, note: impl Fn(kernel::Denied, &Target)) {
    let Request { target, kind, rest } = match head::read(&mut worker).await {
        Ok(request) => request,
        Err(error) => return answer(worker, error.status(), &error.to_string()).await,
    };
    let mut server = match reach(&terms, &target).await {
        Ok(server) => server,
        Err(Unreached::Refused(refusal)) => {
            let (denied, is_new) = terms.tally.refuse(&terms.policy, &refusal);
            let text = denied.text.clone();
            if is_new == Note::Yes {
                note(denied, &refusal.target);
            }
            return answer(worker, "403 Forbidden", &text).await;
        }
        Err(unreached) => {
            let (status, why) = match unreached {
                Unreached::Slow => {
                    ("504 Gateway Timeout", format!("did not answer within {} seconds", CONNECT.as_secs()))
                }
                Unreached::Failed(error) => ("502 Bad Gateway", format!("cannot be connected to: {error}")),
                Unreached::Unknown | Unreached::Refused(_) => {
                    ("502 Bad Gateway", "has no address that this host can find".to_owned())
                }
            };
            return answer(worker, status, &format!("{target} {why}")).await;
        }
    };
    terms.tally.request();
    let ahead = match kind {
        Kind::Tunnel => {
            if worker.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n").await.is_err() {
                return;
            }
            rest
        }
        Kind::Clear(head) => [head, rest].concat(),
    };
    if server.write_all(&ahead).await.is_ok() {
        terms.tally.sent(ahead.len());
        relay(worker, server, &terms.tally).await;
    }
}

/// Connects to one of the addresses that were looked at: the name is not looked up again.
async fn reach(terms: &Terms, target: &Target) -> Result<TcpStream, Unreached> {
    verdict::of_target(&terms.policy, target).map_err(Unreached::Refused)?;
    let connect = async {
        let found = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => look_up(terms, name, target.port).await.map_err(|_| Unreached::Unknown)?,
        };
        let addresses = verdict::of_addresses(&terms.policy, target, found).map_err(Unreached::Refused)?;
        let mut last = Unreached::Unknown;
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(server) => {
                    // What is passed on is somebody else's stream: it waits for nothing.
                    server.set_nodelay(true).ok();
                    return Ok(server);
                }
                Err(error) => last = Unreached::Failed(error),
            }
        }
        Err(last)
    };
    tokio::time::timeout(CONNECT, connect).await.unwrap_or(Err(Unreached::Slow))
}

async fn look_up(terms: &Terms, name: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    let permit = Arc::clone(&terms.lookups).acquire_owned().await.map_err(io::Error::other)?;
    let name = name.to_owned();
    // It counts until it has ended, also where nobody waits for it any more: it cannot be ended before.
    let found = tokio::spawn(async move {
        let found = tokio::net::lookup_host((name.as_str(), port)).await;
        drop(permit);
        found.map(|all| all.map(|address: SocketAddr| address.ip()).collect())
    });
    found.await.map_err(io::Error::other)?
}

/// Answers in the proxy's own name, and closes the connection.
async fn answer(mut worker: TcpStream, status: &str, text: &str) {
    let text = format!("{text}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    let told = async {
        worker.write_all(answer.as_bytes()).await?;
        worker.shutdown().await?;
        // What was sent and is not read would reset the connection, and the answer with it.
        let mut rest = [0; 1024];
        while worker.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    drop(tokio::time::timeout(ANSWER, told).await);
}
