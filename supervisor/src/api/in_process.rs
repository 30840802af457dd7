//! The router without a socket: a command that works on the board by itself asks it as any client would.

use std::sync::Arc;

use axum::body::Body;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use tower::ServiceExt as _;

use super::identity::Peer;
use super::router::{Surface, front};
use crate::failure::Failure;
use crate::service::Service;

/// Answers one request of the person who runs this process. Returns the status and the whole body.
pub(crate) async fn answer(
    service: Arc<Service>,
    surface: Surface,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Failure> {
    let (head, body) = request.into_parts();
    let mut request = Request::from_parts(head, Body::new(body));
    request.extensions_mut().insert(Peer::InProcess(nix::unistd::getuid().as_raw()));
    let response = match front(service, None, surface).router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    let body = response.into_body().collect().await;
    let body = body.map_err(|e| Failure::failed(format!("the reply cannot be read: {e}")))?;
    Ok((status, body.to_bytes()))
}
