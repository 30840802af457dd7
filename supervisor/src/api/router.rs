//! The router: who calls is found out first, then the path is looked for; refusals are problem documents.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use schemars::Schema;
use tokio_util::sync::CancellationToken;

use super::call::Entry;
use super::doors::{Bound, Busy, Doorway, Front, Gate, Intake, Outgoing, Pass, REST, Seat};
use super::identity::{OperatorKey, Peer, identify};
use super::streams::Streams;
use crate::exit::Code;
use crate::failure::{Failure, Problem};
use crate::service::Service;

/// What every handler shares.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(super) service: Arc<Service>,
    key: Option<OperatorKey>,
    gate: Arc<Gate>,
    /// The streams that are open.
    pub(super) streams: Arc<Streams>,
    /// The daemon stops.
    pub(super) stop: CancellationToken,
    /// Every verb that a path leads to.
    pub(super) verbs: Arc<[Entry]>,
    /// Every path whose messages have a form of their own.
    pub(super) exchanges: Arc<[Messages]>,
}

/// What an API offers: its paths, without the service behind them, and the verbs that they lead to.
#[derive(Debug)]
pub(crate) struct Surface {
    /// The paths.
    pub(crate) routes: Routes,
    pub(crate) verbs: Vec<Entry>,
    /// The paths whose messages have a form of their own.
    pub(crate) exchanges: Vec<Messages>,
    /// What a daemon does beside answering at its doors, until it is stopped.
    pub(crate) beside: Vec<Beside>,
    /// Its doors beside those of operators and workers.
    pub(crate) doors: Vec<OwnDoor>,
}

/// A path whose messages have a form of their own, as a document says it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    /// Where they are posted.
    pub(crate) path: &'static str,
    /// What they are for, in a line.
    pub(crate) about: &'static str,
    /// Who may call this verb may post them; none for everybody.
    pub(crate) verb: Option<&'static str>,
    /// Returns the schema of a message.
    pub(crate) message: fn() -> Schema,
    /// Returns the schema of its answer.
    pub(crate) reply: fn() -> Schema,
}

/// A door that leads to the API in a way of its own, as long as the daemon serves.
pub(crate) type OwnDoor = fn(Doorway) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that a daemon does as long as it serves.
pub(crate) type Beside = fn(Arc<Service>, CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// The paths of the API, without the service behind them.
pub(crate) type Routes = Router<Shared>;

/// The API over a service. `stop` ends the streams.
pub(crate) fn front(
    service: Arc<Service>,
    key: Option<OperatorKey>,
    surface: Surface,
    stop: CancellationToken,
) -> Front {
    let gate = Arc::new(Gate::new(Arc::clone(&service)));
    let shared = Shared {
        service,
        key,
        gate: Arc::clone(&gate),
        streams: Arc::default(),
        stop,
        verbs: surface.verbs.into(),
        exchanges: surface.exchanges.into(),
    };
    let router = surface
        .routes
        .fallback(|| async {
            Failure::new(Code::NotFound, "no such path in this API")
                .hint("the paths are listed in `supervisor help docs/api.md`")
        })
        .method_not_allowed_fallback(|| async {
            Failure::new(Code::Method, "this path does not support this method")
                .hint("the header `Allow` names the methods that it supports")
        })
        // The outermost layer: nobody who is not known learns even which paths there are.
        .layer(middleware::from_fn_with_state(shared.clone(), know_caller))
        .with_state(shared);
    Front { router, gate }
}

/// Finds out who calls and lets a request in, before a handler is looked for; then charges the reply to the caller.
async fn know_caller(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (request, rest) = Intake::lend(request);
    let response = match known(&shared, &peer, request).await {
        Ok((request, pass, busy)) => {
            let response = next.run(request).await;
            Outgoing::charge(response, pass, busy).await
        }
        Err(failure) => failure.into_response(),
    };
    rest.drain().await;
    response
}

/// A request of a known caller, with what it counts for.
type Known = (Request, Option<Arc<Pass>>, Option<Busy>);

async fn known(shared: &Shared, peer: &Peer, mut request: Request) -> Result<Known, Failure> {
    // What comes through a run's own door is the run's, whatever it shows.
    let owner = match peer {
        Peer::Run(board, run) => Some((*board, *run)),
        Peer::Operator(_)
        | Peer::Member(_)
        | Peer::Worker
        | Peer::InProcess(_)
        | Peer::Browser(_)
        | Peer::Session(_)
        | Peer::Plugin(..) => None,
    };
    if let Some(run) = owner {
        shared.gate.count(run)?;
    }
    let caller = identify(&shared.service, shared.key.as_ref(), peer, request.headers()).await?;
    if let Some(counted) = caller.counted().filter(|_| owner.is_none()) {
        shared.gate.count(counted)?;
    }
    let pass = shared.gate.enter(&caller)?.map(Arc::new);
    let busy = request.extensions().get::<Seat>().map(|seat| seat.busy(caller.run())).transpose();
    let busy = busy.map_err(|bound| crowded(pass.as_deref(), bound))?;
    request.extensions_mut().insert(caller);
    if let Some(pass) = &pass {
        request.extensions_mut().insert(Arc::clone(pass));
    }
    Ok((request, pass, busy))
}

fn crowded(pass: Option<&Pass>, bound: Bound) -> Failure {
    match pass {
        Some(pass) => pass.crowded(bound),
        None => Failure::new(Code::Throttled, bound.to_string()),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&Problem::from(&self)).unwrap_or_default();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if self.code == Code::Throttled {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(REST.as_secs()));
        }
        response
    }
}
