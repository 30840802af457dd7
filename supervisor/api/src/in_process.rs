//! Calls the router without a socket, for commands that work on the board without a daemon, and for plugins.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use kernel::{BoardName, PluginName, RequestId};

use super::identity::{BOARD_HEADER, CallingPlugin, Peer, PluginScope, REQUEST_HEADER};
use super::listeners::ListenerContext;
use super::router::{Surface, api_router};
use base::failure::{Failure, Problem};
use service::Service;

/// Answers a request of the user of this process. Returns the status and the whole body of the reply.
pub async fn answer(
    service: Arc<Service>,
    surface: Surface,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Failure> {
    let (head, body) = request.into_parts();
    let mut request = Request::from_parts(head, Body::new(body));
    request.extensions_mut().insert(Peer::InProcess(nix::unistd::getuid().as_raw()));
    let response =
        match api_router(service, None, surface, CancellationToken::new()).router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    let status = response.status();
    let body = response.into_body().collect().await;
    let body = body.map_err(|e| Failure::failed(format!("the reply cannot be read: {e}")))?;
    Ok((status, body.to_bytes()))
}

/// Router of the daemon, for requests of plugins.
#[derive(Clone, Debug)]
pub struct InProcessRouter(Router);

/// Request that a plugin makes in its reply.
#[derive(Clone, Debug)]
pub struct PluginRequest<'a> {
    pub plugin: &'a PluginName,
    pub scope: &'a PluginScope,
    pub board: &'a BoardName,
    pub verb: &'a str,
    pub body: &'a serde_json::Value,
    /// Id of the request. A repeat with the same id gets the first reply.
    pub id: Option<RequestId>,
}

impl InProcessRouter {
    /// Returns the router that the listeners of a daemon use.
    pub fn from_listeners(context: &ListenerContext) -> Self {
        InProcessRouter(context.api.router.clone())
    }

    /// Carries out a plugin's request with the rights of the system. A refusal is an error.
    pub async fn carry_out(&self, asked: PluginRequest<'_>) -> Result<(), Failure> {
        let failed = |e: &dyn std::fmt::Display| Failure::failed(format!("the request was not made: {e}"));
        let mut request = Request::post(format!("/api/v1/verbs/{}", asked.verb))
            .header(header::CONTENT_TYPE, "application/json")
            .header(BOARD_HEADER, asked.board.as_str());
        if let Some(id) = &asked.id {
            request = request.header(REQUEST_HEADER, id.as_str());
        }
        let body = serde_json::to_vec(asked.body).map_err(|e| failed(&e))?;
        let mut request = request.body(Body::from(body)).map_err(|e| failed(&e))?;
        request
            .extensions_mut()
            .insert(Peer::Plugin(CallingPlugin { name: asked.plugin.clone(), scope: asked.scope.clone() }));
        let response = match self.0.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let is_done = response.status().is_success();
        let body = response.into_body().collect().await.map_err(|e| failed(&e))?.to_bytes();
        if is_done {
            return Ok(());
        }
        let problem: Problem = serde_json::from_slice(&body).map_err(|e| failed(&e))?;
        Err(Failure::from(problem))
    }
}
