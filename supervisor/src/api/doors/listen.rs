//! Binding the daemon's sockets and ports, and setting the doors up behind them.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::loopback;
use super::runtime::WorkersRuntime;
use super::serve::{Door, Side};
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;
use crate::service::Service;

/// How workers reach the board on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Through the workers' Unix socket.
    Unix,
    /// Through a loopback port, because this host cannot grant one Unix socket and refuse the others.
    Loopback,
}

/// The bound doors. Each listener is given to the runtime that serves it.
#[derive(Debug)]
pub(crate) struct Listeners {
    operator: StdUnixListener,
    worker: StdUnixListener,
    loopback: Option<std::net::TcpListener>,
}

impl Listeners {
    /// Binds all doors. The root's lock is held, so a socket file that is in the way is a dead daemon's.
    pub(crate) fn bind(root: &Root, sockets: Sockets) -> Result<Self, Failure> {
        let operator = bind_unix(&root.operator_socket(), 0o600)?;
        let worker = bind_unix(&root.worker_socket(), 0o666)?;
        let loopback = match sockets {
            Sockets::Unix => None,
            Sockets::Loopback => Some(loopback::bind(root)?),
        };
        Ok(Listeners { operator, worker, loopback })
    }

    /// The loopback port, where one is served.
    pub(crate) fn port(&self) -> Option<u16> {
        self.loopback.as_ref().and_then(|l| l.local_addr().ok()).map(|address| address.port())
    }

    /// Serves until cancelled; requests that are under way are answered first. `descriptors` is how many this process
    /// may have.
    pub(crate) fn serve(
        self,
        router: &Router,
        service: &Arc<Service>,
        descriptors: u64,
        workers: &WorkersRuntime,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let failed = |e: std::io::Error| Failure::failed(format!("failed to serve a socket: {e}"));
        let door = |side, rooms: &Handle| {
            Arc::new(Door::new(side, router.clone(), Arc::clone(service), descriptors, rooms.clone()))
        };
        self.operator.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(self.operator).map_err(failed)?;
        tasks.spawn(door(Side::Operator, &Handle::current()).attend(listener, tasks.clone(), stop.clone()));
        let Some((porter, rooms)) = workers.handles() else { return Ok(()) };
        // Whatever is registered or spawned from here on belongs to the porter's runtime.
        let _entered = porter.enter();
        let own = door(Side::Worker, rooms);
        self.worker.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(self.worker).map_err(failed)?;
        tasks.spawn(Arc::clone(&own).attend(listener, tasks.clone(), stop.clone()));
        if let Some(loopback) = self.loopback {
            loopback.set_nonblocking(true).map_err(failed)?;
            let listener = TcpListener::from_std(loopback).map_err(failed)?;
            tasks.spawn(own.attend(listener, tasks.clone(), stop.clone()));
        }
        Ok(())
    }
}

fn bind_unix(path: &Path, mode: u32) -> Result<StdUnixListener, Failure> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !std::os::unix::fs::FileTypeExt::is_socket(&meta.file_type()) => {
            return Err(Failure::new(
                Code::Conflict,
                format!(
                    "{} is in the way: the daemon's socket belongs there, and it is not a socket",
                    path.display()
                ),
            )
            .hint("move that file away and start again"));
        }
        Ok(_) => std::fs::remove_file(path).map_err(|e| Failure::file("remove the old socket", path, &e))?,
        Err(_) => {}
    }
    let listener = StdUnixListener::bind(path).map_err(|e| Failure::file("bind the socket", path, &e))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| Failure::file("set the mode of the socket", path, &e))?;
    Ok(listener)
}
