//! The router: one path per verb, the resources that map onto them, and refusals as problem documents.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kernel::{Actor, ActorKind, BoardName, RequestId};

use super::call::{Audience, Call, Verb};
use super::identity::{BOARD_HEADER, OperatorKey, Peer, REQUEST_HEADER, identify};
use super::{files, rest};
use crate::exit::Code;
use crate::failure::{Failure, Problem};
use crate::service::Service;
use crate::verbs;

/// The largest body of a request. Texts have tighter limits of their own, which name the field.
const BODY_LIMIT: usize = 4 << 20;

/// What every handler shares.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(super) service: Arc<Service>,
    pub(super) key: Option<OperatorKey>,
}

/// The paths of the API, without the service behind them.
pub(crate) type Routes = Router<Shared>;

/// The router over a service. Each request must carry a [`Peer`] extension.
pub(crate) fn router(service: Arc<Service>, key: Option<OperatorKey>) -> Router {
    let router = verbs::mount(Router::new());
    files::mount(rest::mount(router))
        .fallback(|| async {
            Failure::new(Code::NotFound, "there is no such path in this API")
                .hint("the paths are listed in docs/api.md")
        })
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(Shared { service, key })
}

/// Adds the path of one verb.
pub(crate) fn mount_verb<V: Verb>(router: Routes) -> Routes {
    router.route(&format!("/api/v1/verbs/{}", V::NAME), post(handle::<V>))
}

async fn handle<V: Verb>(
    State(shared): State<Shared>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Result<Json<V::Reply>, Failure> {
    let body =
        body.map_err(|rejection| Failure::usage(format!("the request's body was not taken: {rejection}")))?;
    let request: V = serde_json::from_slice(if body.is_empty() { b"{}" } else { &body })
        .map_err(|e| Failure::usage(format!("the body of `{}` does not fit: {e}", V::NAME)))?;
    dispatch(&shared, &peer, &headers, request).await.map(Json)
}

/// Runs a verb for whoever stands behind a request.
pub(super) async fn dispatch<V: Verb>(
    shared: &Shared,
    peer: &Peer,
    headers: &HeaderMap,
    verb: V,
) -> Result<V::Reply, Failure> {
    verb.run(admit::<V>(shared, peer, headers)?).await
}

/// Finds out who calls, about which board, and whether they may.
pub(super) fn admit<V: Verb>(shared: &Shared, peer: &Peer, headers: &HeaderMap) -> Result<Call, Failure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    check_host(peer, text("host"))?;
    let name: BoardName = match text(BOARD_HEADER) {
        Some(name) => name.parse().map_err(|e| Failure::usage(format!("the board's name: {e}")))?,
        None => BoardName::default(),
    };
    let service = Arc::clone(&shared.service);
    let opened =
        if V::NAME == verbs::Init::NAME { service.create_board(&name) } else { service.board(&name) };
    // A daemon can be stopped whatever became of the board that the command line names by default.
    let board = match opened {
        Err(failure) if V::NAME == verbs::Stop::NAME => service.any_served().ok_or(failure)?,
        opened => opened?,
    };
    let actor = identify(peer, headers, shared.key.as_ref(), &board)?;
    permit::<V>(&actor)?;
    let request = match text(REQUEST_HEADER) {
        Some(id) => {
            Some(id.parse::<RequestId>().map_err(|e| Failure::usage(format!("the request's id: {e}")))?)
        }
        None => None,
    };
    Ok(Call { service, board, actor, request })
}

fn permit<V: Verb>(actor: &Actor) -> Result<(), Failure> {
    if actor.kind == ActorKind::Worker && V::AUDIENCE == Audience::Operator {
        return Err(Failure::new(Code::NotPermitted, format!("`{}` is not for workers", V::NAME)).hint(
            "a worker may: show, context, heartbeat, comment, attach, create, link, complete, block, request-review, \
                 approve, request-changes, deny",
        ));
    }
    Ok(())
}

/// A browser that was tricked into calling the loopback port names another host there.
fn check_host(peer: &Peer, host: Option<&str>) -> Result<(), Failure> {
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    match (peer, name) {
        (Peer::Worker, Some(name)) if !matches!(name, "localhost" | "127.0.0.1" | "supervisor") => {
            Err(Failure::new(Code::NotPermitted, format!("this API is not served under the name {name}")))
        }
        _ => Ok(()),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&Problem::from(&self)).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}
