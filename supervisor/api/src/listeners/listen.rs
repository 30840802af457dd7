//! Listeners that belong to no single run: binds them and serves their connections.

use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::bind::{bind_loopback, bind_unix};
use super::run_listeners::RunListeners;
use super::self_probe::{ProbedListener, SelfProbe, self_probe};
use super::serve::{BoundedListener, CallerKind, ListenerContext};
use base::failure::Failure;
use base::paths::Root;
use host::manager_socket::OperatorSocket;

/// Sockets through which the workers on this host reach the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// Each run has a Unix socket of its own.
    Unix,
    /// All runs use a loopback port, because this host cannot grant one Unix socket and refuse the others.
    Loopback,
}

/// Bound listeners that belong to no single run.
#[derive(Debug)]
pub struct Listeners {
    /// Listener of the operator's socket; none if the service manager accepts its connections.
    operator: Option<StdUnixListener>,
    members: StdUnixListener,
    probes: mpsc::Receiver<UnixStream>,
    loopback: Option<std::net::TcpListener>,
}

impl Listeners {
    /// Binds the listeners, and creates the bell with which the daemon probes its own operator's socket. The caller holds
    /// the root's lock, so an existing socket file belongs to a dead daemon, unless a service manager listens there.
    pub fn bind(
        root: &Root,
        sockets: Sockets,
        operator: OperatorSocket,
    ) -> Result<(Self, SelfProbe), Failure> {
        let operator = match operator {
            OperatorSocket::Passed(listener) => Some(listener),
            OperatorSocket::Held => None,
            OperatorSocket::Free => Some(bind_unix(&root.operator_socket(), 0o600)?),
        };
        // The mode keeps every user but the owner out until a tenant has members.
        let members = bind_unix(&root.members_socket(), 0o600)?;
        let loopback = match sockets {
            Sockets::Unix => None,
            Sockets::Loopback => Some(bind_loopback(root)?),
        };
        let (sender, probes) = self_probe();
        Ok((Listeners { operator, members, probes, loopback }, sender))
    }

    /// Returns the loopback port, if there is one.
    pub fn port(&self) -> Option<u16> {
        self.loopback.as_ref().and_then(|l| l.local_addr().ok()).map(|address| address.port())
    }

    /// Starts the tasks that serve the listeners until the daemon stops. Requests in progress are still answered then.
    pub fn serve(self, shared: &ListenerContext, runs: &RunListeners) -> Result<(), Failure> {
        let failed = |e: std::io::Error| Failure::failed(format!("failed to serve a socket: {e}"));
        let bounded = Arc::new(BoundedListener::new(CallerKind::Operator, shared, Handle::current()));
        let listener = self.operator.map(|operator| {
            operator.set_nonblocking(true)?;
            UnixListener::from_std(operator)
        });
        let listener = listener.transpose().map_err(failed)?;
        shared
            .tasks
            .spawn(bounded.accept_all(ProbedListener::new(listener, self.probes), shared.stop.clone()));
        // Members are served on the workers' runtime, so that they cannot slow down operators.
        self.members.set_nonblocking(true).map_err(failed)?;
        let members = UnixListener::from_std(self.members).map_err(failed)?;
        let bounded = Arc::new(BoundedListener::new(CallerKind::Member, shared, runs.runtime()));
        shared.tasks.spawn(bounded.accept_all(members, shared.stop.clone()));
        shared.service.open_to_members();
        self.loopback.map_or(Ok(()), |loopback| runs.serve_loopback(loopback)).map_err(failed)
    }
}
