//! The router: identifies the caller before it looks up the path; refusals become problem documents.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use schemars::Schema;
use tokio_util::sync::CancellationToken;

use super::call::VerbEntry;
use super::identity::{OperatorKey, Peer, identify};
use super::listeners::{
    ApiRouter, Busy, ConnectionLimit, ConnectionPermit, IncomingBody, ListenerContext, OutgoingBody,
    RequestAdmission, RequestPermit,
};
use super::streams::Streams;
use base::exit::Code;
use base::failure::Failure;
use service::Service;

/// State shared by all handlers.
#[derive(Clone, Debug)]
pub struct ApiState {
    pub(super) service: Arc<Service>,
    key: Option<OperatorKey>,
    admission: Arc<RequestAdmission>,
    pub(super) streams: Arc<Streams>,
    /// Cancelled when the daemon stops.
    pub(super) stop: CancellationToken,
    /// Verbs that a path leads to.
    pub(super) verbs: Arc<[VerbEntry]>,
    /// Paths whose messages have their own format.
    pub(super) exchanges: Arc<[Messages]>,
}

/// Contents of an API: its paths, without the service behind them, and the verbs that they lead to.
#[derive(Debug)]
pub struct Surface {
    /// Paths.
    pub routes: Routes,
    pub verbs: Vec<VerbEntry>,
    /// Paths whose messages have their own format.
    pub exchanges: Vec<Messages>,
    /// Background work of a daemon, until it is stopped.
    pub background: Vec<BackgroundWork>,
    /// Listeners in addition to the operators' and the workers'.
    pub listeners: Vec<OwnListener>,
}

/// Description of a path whose messages have their own format.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// Path to which they are posted.
    pub path: &'static str,
    /// Purpose, on one line.
    pub about: &'static str,
    /// Verb whose permission a caller needs; none for every caller.
    pub verb: Option<&'static str>,
    /// Returns the schema of a message.
    pub message: fn() -> Schema,
    /// Returns the schema of the reply.
    pub reply: fn() -> Schema,
}

/// Additional listener of the API, which runs while the daemon serves.
pub type OwnListener = fn(ListenerContext) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Background work that a daemon does while it serves.
pub type BackgroundWork = fn(Arc<Service>, CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Paths of the API, without the service behind them.
pub type Routes = Router<ApiState>;

/// Makes the API of a service. `stop` ends the streams.
pub fn api_router(
    service: Arc<Service>,
    key: Option<OperatorKey>,
    surface: Surface,
    stop: CancellationToken,
) -> ApiRouter {
    let admission = Arc::new(RequestAdmission::new(Arc::clone(&service)));
    let shared = ApiState {
        service,
        key,
        admission: Arc::clone(&admission),
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
        // The outermost layer, so that an unknown caller cannot even learn which paths exist.
        .layer(middleware::from_fn_with_state(shared.clone(), know_caller))
        .with_state(shared);
    ApiRouter { router, admission }
}

/// Identifies and admits the caller before a handler is looked up, and charges the reply to the caller afterwards.
async fn know_caller(
    State(shared): State<ApiState>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (request, rest) = IncomingBody::lend(request);
    let response = match known(&shared, &peer, request).await {
        Ok((request, permit, busy)) => {
            let response = next.run(request).await;
            OutgoingBody::charge(response, permit, busy).await
        }
        Err(failure) => failure.into_response(),
    };
    rest.drain().await;
    response
}

/// A request of an identified caller, with its admission and its busy mark.
type Known = (Request, Option<Arc<RequestPermit>>, Option<Busy>);

async fn known(shared: &ApiState, peer: &Peer, mut request: Request) -> Result<Known, Failure> {
    // Every request on a run's own socket counts for this run, whatever token it presents.
    let owner = peer.run();
    if let Some(run) = owner {
        shared.admission.count(run)?;
    }
    let caller = identify(&shared.service, shared.key.as_ref(), peer, request.headers()).await?;
    if let Some(counted) = caller.counted().filter(|_| owner.is_none()) {
        shared.admission.count(counted)?;
    }
    let permit = shared.admission.admit(&caller)?.map(Arc::new);
    let busy =
        request.extensions().get::<ConnectionPermit>().map(|permit| permit.busy(caller.run())).transpose();
    let busy = busy.map_err(|bound| refuse_connection(permit.as_deref(), bound))?;
    request.extensions_mut().insert(caller);
    if let Some(permit) = &permit {
        request.extensions_mut().insert(Arc::clone(permit));
    }
    Ok((request, permit, busy))
}

fn refuse_connection(permit: Option<&RequestPermit>, bound: ConnectionLimit) -> Failure {
    match permit {
        Some(permit) => permit.refuse_connection(bound),
        None => Failure::new(Code::Throttled, bound.to_string()),
    }
}
