//! Listener of the dashboard. The dashboard identifies the owner of a session first, and calls the API for the owner
//! afterwards.

use std::io;
use std::net::TcpListener as StdTcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::serve::{ApiRouter, BoundedListener, CallerKind, ListenerContext};
use crate::identity::Peer;
use setup::browsers::Owner;

/// Accepts browsers on the runtime `rooms` until `stop`. Each request that reaches `pages` has the extension
/// [`Browser`](crate::Peer::Browser).
///
/// # Errors
/// Fails if the listener cannot be registered with the runtime.
pub fn serve_browsers(
    shared: &ListenerContext,
    pages: Router,
    listener: StdTcpListener,
    runtime: &Handle,
    stop: CancellationToken,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let _entered = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    let api = ApiRouter { router: pages, admission: Arc::clone(&shared.api.admission) };
    // The connections end when the listener ends, and not only when the daemon ends.
    let shared = ListenerContext { api, stop: stop.clone(), ..shared.clone() };
    let bounded = Arc::new(BoundedListener::new(CallerKind::Browser, &shared, runtime.clone()));
    shared.tasks.spawn_on(bounded.accept_all(listener, stop), runtime);
    Ok(())
}

impl ListenerContext {
    /// Calls the API for the owner of a session.
    pub async fn ask_for(&self, owner: Arc<Owner>, mut request: Request) -> Response {
        request.extensions_mut().insert(Peer::Session(owner));
        match self.api.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
