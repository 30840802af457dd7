//! Handler of the dashboard's requests: pages, files, sessions, and the API as the session's owner.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, body::Body};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::guard::{self, Kind};
use super::until::{SIGNED_OUT, Until};
use super::visit::Visit;
use super::{pages, sign_in};
use api::{Doorway, KEY_HEADER, Peer, Streamed, blocking};
use base::exit::Code;
use base::failure::Failure;

/// Content type of a stream of events.
const EVENTS: &str = "text/event-stream";

/// Handler of the dashboard's port.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    doorway: Doorway,
}

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    Api,
    Asset(String),
    Session,
    Open,
    Page,
}

/// Returns the router of the dashboard.
pub(super) fn router(desk: Desk) -> Router {
    Router::new().fallback(answer).with_state(desk)
}

async fn answer(State(desk): State<Desk>, Extension(peer): Extension<Peer>, request: Request) -> Response {
    let way = Way::of(request.uri().path());
    let kind = way.kind();
    let response = match desk.admitted(&way, &peer, request).await {
        Ok(response) => response,
        Err(failure) if kind == Kind::Page => plain(&failure),
        Err(failure) => failure.into_response(),
    };
    guard::with_rules(response, kind)
}

impl Way {
    fn of(path: &str) -> Self {
        match path {
            "/open" => Way::Open,
            "/session" => Way::Session,
            "/api" => Way::Api,
            _ if path.starts_with("/api/") => Way::Api,
            _ => match path.strip_prefix("/assets/") {
                Some(name) => Way::Asset(name.to_owned()),
                None => Way::Page,
            },
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Way::Api | Way::Session => Kind::Data,
            Way::Asset(_) => Kind::Asset,
            Way::Open | Way::Page => Kind::Page,
        }
    }
}

impl Desk {
    pub(super) fn new(doorway: &Doorway) -> Self {
        Desk { doorway: doorway.clone() }
    }

    /// Handles a request after checking that no page of another origin made it.
    async fn admitted(&self, way: &Way, peer: &Peer, request: Request) -> Result<Response, Failure> {
        let Peer::Browser(browser) = *peer else { return Err(guard::no_session()) };
        let service = Arc::clone(&self.doorway.service);
        let config = service.config();
        let origin =
            guard::check_origin(&config.dashboard, request.method(), request.uri(), request.headers())?;
        if way.kind() != Kind::Page {
            guard::check_site(request.headers())?;
        }
        let browsers = service.browsers();
        let sessions = guard::by_cookie(browsers, request.headers(), browser);
        let visit = Visit { browsers, browser, origin, sessions };
        match way {
            Way::Api => self.api(&visit, request).await,
            Way::Session => match *request.method() {
                Method::POST => sign_in::begin(&service, &visit, request).await,
                Method::GET => visit.known(request.headers()).map(|session| sign_in::describe(&session)),
                Method::DELETE => {
                    let session = visit.known(request.headers())?;
                    sign_in::end(&service, &visit, session.id.clone()).await
                }
                _ => Err(unsupported()),
            },
            Way::Asset(_) | Way::Open | Way::Page
                if !matches!(*request.method(), Method::GET | Method::HEAD) =>
            {
                Err(unsupported())
            }
            Way::Open => pages::file(pages::OPEN, request.headers()).ok_or_else(absent),
            Way::Asset(name) => {
                if visit.sessions.is_empty() && !pages::FREE.contains(&name.as_str()) {
                    return Err(guard::no_session());
                }
                pages::file(name, request.headers()).ok_or_else(absent)
            }
            Way::Page if request.uri().path() == "/favicon.ico" => {
                Err(absent().hint("the icon of the dashboard is /assets/icon.svg"))
            }
            Way::Page if visit.sessions.is_empty() => Ok(to_the_link(request.uri().path_and_query())),
            Way::Page => pages::page(request.uri(), request.headers()).ok_or_else(absent),
        }
    }

    /// Passes a request to the API, as the owner of its session.
    async fn api(&self, visit: &Visit<'_>, mut request: Request) -> Result<Response, Failure> {
        let session = visit.known(request.headers())?;
        if visit.browsers.is_due() {
            let service = Arc::clone(&self.doorway.service);
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
        let asked = self.doorway.ask_for(Arc::new(session.owner.clone()), request);
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
        Ok(response.map(|body| Body::new(Until::new(body, session.ended(), last))))
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
            assert_eq!(Way::of(path), Way::Api, "{path}");
        }
        for path in
            ["/", "/board", "/runs/t1/1", "/apiv1", "/API/v1/board", "//api/v1", "/open/", "/session/x"]
        {
            assert_eq!(Way::of(path), Way::Page, "{path}");
        }
        assert_eq!(Way::of("/assets/../open"), Way::Asset("../open".to_owned()));
    }
}
