//! Listener of the dashboard, open from the first link on, while a link is valid or a session lives.
//!
//! Every user of the host, and a worker whose policy grants the network, can reach a port on loopback; most hosts
//! have no dashboard open at most times. Another port is not taken in place of a used one: bookmarks and the storage
//! of the page belong to the port.

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::assets;
use super::handler::{self, Dashboard};
use api::{ListenerContext, blocking, serve_browsers};
use base::exit::Code;
use base::failure::Failure;

/// Number of threads that run browsers' requests; these never block.
const THREADS: usize = 1;
/// Number of threads on which they read the board and write files.
const BLOCKING: usize = 8;
/// Interval between checks for expired sessions, if none expires earlier.
const CHECK: Duration = Duration::from_hours(1);
/// Pause before another try to bind the port.
const RETRY: Duration = Duration::from_secs(30);

/// Serves browsers until the daemon stops.
pub(super) fn serve(listeners: ListenerContext) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(accept_all(listeners))
}

#[derive(Debug)]
struct OpenPort {
    at: SocketAddr,
    stop: CancellationToken,
}

impl Drop for OpenPort {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The port and its threads, which are not started before the first link.
#[derive(Debug)]
struct Port {
    listeners: ListenerContext,
    runtime: Option<Runtime>,
    open: Option<OpenPort>,
}

async fn accept_all(listeners: ListenerContext) {
    let (service, stop) = (Arc::clone(&listeners.service), listeners.stop.clone());
    let browsers = service.browsers();
    let mut openings = browsers.attend();
    let loading = Arc::clone(&service);
    drop(blocking("the sessions were not read", move || loading.browsers().load()).await);
    let mut port = Port { listeners, runtime: None, open: None };
    loop {
        let tidied = Arc::clone(&service);
        let lasts = blocking("the sessions were not looked at", move || tidied.browsers().tidy()).await;
        let lasts = lasts.ok().flatten();
        let mut look = CHECK;
        if lasts.is_none() || !service.config().dashboard.enabled {
            port.close();
        } else if let Err(failure) = port.open() {
            look = RETRY;
            tracing::warn!(error = %failure, hint = failure.hint.as_deref().unwrap_or_default(), "dashboard_not_served");
        }
        tokio::select! {
            // Cancel-safe, all of them: an unread message or notification is kept.
            opening = openings.recv() => {
                let Some(reply) = opening else { break };
                // The caller may have gone.
                drop(reply.send(port.open()));
            }
            () = browsers.changed().notified() => {}
            () = tokio::time::sleep(lasts.unwrap_or(look).min(look)) => {}
            () = stop.cancelled() => break,
        }
    }
    // Stores the times at which sessions were last used.
    let noting = Arc::clone(&service);
    drop(blocking("the sessions were not written", move || noting.browsers().leave()).await);
}

impl Port {
    /// Listens at the configured address. Returns the address for people.
    fn open(&mut self) -> Result<String, Failure> {
        let config = &self.listeners.service.config().dashboard;
        if !config.enabled {
            self.close();
            return Err(Failure::new(Code::NotPermitted, "the dashboard is switched off").hint(
                "set enabled = true in [dashboard] of supervisor.toml, then run: supervisor service reload",
            ));
        }
        if self.open.as_ref().is_some_and(|open| open.at == config.listen) {
            return Ok(config.base());
        }
        self.close();
        let listener = TcpListener::bind(config.listen).map_err(|e| not_bound(config.listen, &e))?;
        let failed = |e: std::io::Error| Failure::failed(format!("failed to serve the dashboard: {e}"));
        let runtime = if let Some(runtime) = &self.runtime {
            runtime
        } else {
            let runtime = threads().map_err(failed)?;
            // Runs in the background: an earlier request compresses its own file.
            drop(runtime.spawn_blocking(assets::warm));
            self.runtime.insert(runtime)
        };
        let stop = self.listeners.stop.child_token();
        let pages = handler::router(Dashboard::new(&self.listeners));
        serve_browsers(&self.listeners, pages, listener, runtime.handle(), stop.clone()).map_err(failed)?;
        tracing::info!(at = %config.listen, "dashboard_served");
        self.open = Some(OpenPort { at: config.listen, stop });
        Ok(config.base())
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            tracing::info!(at = %open.at, "dashboard_closed");
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // Runs on a thread of another runtime, which must not wait for this one's threads.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn threads() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(BLOCKING)
        .thread_name("dashboard")
        .enable_all()
        .build()
}

/// Makes the error for a port that cannot be bound. No other port is used instead, because people and bookmarks would
/// not find it.
fn not_bound(at: SocketAddr, error: &std::io::Error) -> Failure {
    let free =
        "set another port as `listen` in [dashboard] of supervisor.toml, then run: supervisor service reload";
    match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::new(
            Code::Conflict,
            format!("another program listens on {at}, such as the daemon of another root"),
        )
        .hint(free),
        std::io::ErrorKind::PermissionDenied => {
            Failure::new(Code::NotPermitted, format!("the user of the daemon may not listen on {at}"))
                .hint(free)
        }
        _ => Failure::failed(format!("failed to listen on {at}: {error}")).hint(free),
    }
}
