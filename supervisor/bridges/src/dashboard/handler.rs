//! Handler of the dashboard's requests: pages, files, sessions, and the API as the session's owner.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, body::Body};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::checked_request::CheckedRequest;
use super::guard::{self, ResponseKind};
use super::session_body::{SIGNED_OUT, SessionBody};
use super::{pages, sign_in};
use api::{KEY_HEADER, ListenerContext, Peer, Streamed, blocking};
use base::exit::Code;
use base::failure::Failure;

/// Content type of a stream of events.
const EVENTS: &str = "text/event-stream";

/// Handler of the dashboard's port.
#[derive(Clone, Debug)]
pub(super) struct Dashboard {
    listeners: ListenerContext,
}

/// Kind of resource that a path of the dashboard names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathTarget {
    Api,
    Asset(String),
    Session,
    Open,
    Page,
}

/// Returns the router of the dashboard.
pub(super) fn router(dashboard: Dashboard) -> Router {
    Router::new().fallback(respond).with_state(dashboard)
}

async fn respond(
    State(dashboard): State<Dashboard>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Response {
    let target = PathTarget::from_path(request.uri().path());
    let kind = target.kind();
    let response = match dashboard.handle(&target, &peer, request).await {
        Ok(response) => response,
        Err(failure) if kind == ResponseKind::Page => plain(&failure),
        Err(failure) => failure.into_response(),
    };
    guard::with_rules(response, kind)
}

impl PathTarget {
    fn from_path(path: &str) -> Self {
        match path {
            "/open" => PathTarget::Open,
            "/session" => PathTarget::Session,
            "/api" => PathTarget::Api,
            _ if path.starts_with("/api/") => PathTarget::Api,
            _ => match path.strip_prefix("/assets/") {
                Some(name) => PathTarget::Asset(name.to_owned()),
                None => PathTarget::Page,
            },
        }
    }

    fn kind(&self) -> ResponseKind {
        match self {
            PathTarget::Api | PathTarget::Session => ResponseKind::Data,
            PathTarget::Asset(_) => ResponseKind::Asset,
            PathTarget::Open | PathTarget::Page => ResponseKind::Page,
        }
    }
}

impl Dashboard {
    pub(super) fn new(listeners: &ListenerContext) -> Self {
        Dashboard { listeners: listeners.clone() }
    }

    /// Handles a request after checking that no page of another origin made it.
    async fn handle(&self, target: &PathTarget, peer: &Peer, request: Request) -> Result<Response, Failure> {
        let Peer::Browser(browser) = *peer else { return Err(guard::no_session()) };
        let service = Arc::clone(&self.listeners.service);
        let config = service.config();
        let origin =
            guard::check_origin(&config.dashboard, request.method(), request.uri(), request.headers())?;
        // A link on any site may open a page, but no other site may request data or begin a session.
        if target.kind() != ResponseKind::Page {
            guard::check_site(request.headers())?;
        }
        let browsers = service.browsers();
        let sessions = guard::by_cookie(browsers, request.headers(), browser);
        let checked = CheckedRequest { browsers, browser, origin, sessions };
        match target {
            PathTarget::Api => self.api(&checked, request).await,
            PathTarget::Session => match *request.method() {
                Method::POST => sign_in::begin(&service, &checked, request).await,
                Method::GET => checked.known(request.headers()).map(|session| sign_in::describe(&session)),
                Method::DELETE => {
                    let session = checked.known(request.headers())?;
                    sign_in::end(&service, &checked, session.id.clone()).await
                }
                _ => Err(unsupported()),
            },
            PathTarget::Asset(_) | PathTarget::Open | PathTarget::Page
                if !matches!(*request.method(), Method::GET | Method::HEAD) =>
            {
                Err(unsupported())
            }
            PathTarget::Open => pages::file(pages::OPEN, request.headers()).ok_or_else(absent),
            PathTarget::Asset(name) => {
                // Without a session, only the files of the page that takes a link are served.
                if checked.sessions.is_empty() && !pages::FREE.contains(&name.as_str()) {
                    return Err(guard::no_session());
                }
                pages::file(name, request.headers()).ok_or_else(absent)
            }
            PathTarget::Page if request.uri().path() == "/favicon.ico" => {
                Err(absent().hint("the icon of the dashboard is /assets/icon.svg"))
            }
            PathTarget::Page if checked.sessions.is_empty() => {
                Ok(to_the_link(request.uri().path_and_query()))
            }
            PathTarget::Page => pages::page(request.uri(), request.headers()).ok_or_else(absent),
        }
    }

    /// Passes a request to the API, as the owner of its session.
    async fn api(&self, checked: &CheckedRequest<'_>, mut request: Request) -> Result<Response, Failure> {
        let session = checked.known(request.headers())?;
        if checked.browsers.is_due() {
            let service = Arc::clone(&self.listeners.service);
            blocking("the use of the session was not noted", move || service.browsers().note()).await?;
        }
        let headers = request.headers_mut();
        if headers.contains_key(header::UPGRADE) {
            return Err(Failure::usage("the dashboard changes no protocols")
                .hint("read /api/v1/stream, or connect to the operator's socket"));
        }
        // Removes other credentials, which a proxy may have added: only the session counts.
        for name in [header::AUTHORIZATION.as_str(), header::COOKIE.as_str(), KEY_HEADER, guard::KEY] {
            headers.remove(name);
        }
        let asked = self.listeners.ask_for(Arc::new(session.owner.clone()), request);
        let response = tokio::select! {
            response = asked => response,
            // The request is cancelled, as if the client had gone; a write that has begun is completed.
            () = session.ended().cancelled() => return Err(guard::no_session()),
        };
        // A complete body is sent even if the session ends.
        if response.extensions().get::<Streamed>().is_none() {
            return Ok(response);
        }
        let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == EVENTS);
        let last = is_stream.then_some(SIGNED_OUT);
        Ok(response.map(|body| Body::new(SessionBody::new(body, session.ended(), last))))
    }
}

/// Redirects a browser without a session to the page that accepts a sign-in link. That page leads back to `asked`
/// afterwards.
fn to_the_link(asked: Option<&PathAndQuery>) -> Response {
    let to = match asked.map(PathAndQuery::as_str) {
        None | Some("/") => "/open".to_owned(),
        Some(path) => format!("/open?to={}", utf8_percent_encode(path, NON_ALPHANUMERIC)),
    };
    let to = HeaderValue::from_str(&to).unwrap_or(HeaderValue::from_static("/open"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

fn unsupported() -> Failure {
    Failure::new(Code::Method, "this path does not support this method")
}

fn absent() -> Failure {
    Failure::new(Code::NotFound, "the dashboard has no such file").hint("the dashboard begins at /board")
}

/// Formats a refusal as plain text, for a browser that requests a page.
fn plain(failure: &Failure) -> Response {
    let status = StatusCode::from_u16(failure.code.http()).unwrap_or(StatusCode::FORBIDDEN);
    let hint = failure.hint.as_deref().unwrap_or(failure.code.next_step());
    let text = format!("{failure}\n{hint}\n");
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_the_api_is_never_a_page() {
        for path in ["/api", "/api/", "/api/v1/board", "/api/plugins/kanban/tasks", "/api/../open"] {
            assert_eq!(PathTarget::from_path(path), PathTarget::Api, "{path}");
        }
        for path in
            ["/", "/board", "/runs/t1/1", "/apiv1", "/API/v1/board", "//api/v1", "/open/", "/session/x"]
        {
            assert_eq!(PathTarget::from_path(path), PathTarget::Page, "{path}");
        }
        assert_eq!(PathTarget::from_path("/assets/../open"), PathTarget::Asset("../open".to_owned()));
    }
}
