//! The daemon's doors: the operator's socket, the workers' socket, and a loopback port where sockets cannot be granted.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::serve::IncomingStream;
use kernel::Actor;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::identity::{Peer, person};
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;

/// How workers reach the board on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Through the workers' Unix socket.
    Unix,
    /// Through a loopback port, because this host cannot grant one Unix socket and refuse the others.
    Loopback,
}

/// The bound doors.
#[derive(Debug)]
pub(crate) struct Listeners {
    operator: UnixListener,
    worker: UnixListener,
    loopback: Option<TcpListener>,
}

/// Looked up once for each connection: it may mean to read files.
#[derive(Clone, Debug)]
struct Operator(Arc<Actor>);

impl Connected<IncomingStream<'_, UnixListener>> for Operator {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        // A peer whose credentials cannot be read is nobody: the key or a token must speak for it.
        Operator(Arc::new(person(stream.io().peer_cred().map_or(u32::MAX, |peer| peer.uid()))))
    }
}

impl Listeners {
    /// Binds all doors. The root's lock is held, so a socket file that is in the way is a dead daemon's.
    pub(crate) async fn bind(root: &Root, sockets: Sockets) -> Result<Self, Failure> {
        let operator = bind_unix(&root.operator_socket(), 0o600)?;
        let worker = bind_unix(&root.worker_socket(), 0o666)?;
        let loopback =
            match sockets {
                Sockets::Unix => None,
                Sockets::Loopback => Some(TcpListener::bind(("127.0.0.1", 0)).await.map_err(|e| {
                    Failure::failed(format!("failed to bind a loopback port for workers: {e}"))
                })?),
            };
        Ok(Listeners { operator, worker, loopback })
    }

    /// The loopback port, where one is served.
    pub(crate) fn port(&self) -> Option<u16> {
        self.loopback.as_ref().and_then(|l| l.local_addr().ok()).map(|address| address.port())
    }

    /// Serves until cancelled; requests that are under way are answered first.
    pub(crate) fn serve(self, router: &Router, tasks: &TaskTracker, stop: &CancellationToken) {
        let operator =
            router.clone().layer(middleware::from_fn(
                |ConnectInfo(Operator(person)): ConnectInfo<Operator>,
                 mut request: Request,
                 next: Next| async move {
                    request.extensions_mut().insert(Peer::Operator(person));
                    next.run(request).await
                },
            ));
        let worker = router.clone().layer(middleware::from_fn(mark_worker));
        let service = operator.into_make_service_with_connect_info::<Operator>();
        let stopped = stop.clone().cancelled_owned();
        tasks.spawn(async move { axum::serve(self.operator, service).with_graceful_shutdown(stopped).await });
        let stopped = stop.clone().cancelled_owned();
        let service = worker.clone().into_make_service();
        tasks.spawn(async move { axum::serve(self.worker, service).with_graceful_shutdown(stopped).await });
        if let Some(loopback) = self.loopback {
            let stopped = stop.clone().cancelled_owned();
            let service = worker.into_make_service();
            tasks.spawn(async move { axum::serve(loopback, service).with_graceful_shutdown(stopped).await });
        }
    }
}

async fn mark_worker(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Peer::Worker);
    next.run(request).await
}

fn bind_unix(path: &Path, mode: u32) -> Result<UnixListener, Failure> {
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
    let listener = UnixListener::bind(path).map_err(|e| Failure::file("bind the socket", path, &e))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| Failure::file("set the mode of the socket", path, &e))?;
    Ok(listener)
}
