//! Sessions of browsers: their beginning, description and end.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde_json::json;

use super::checked_request::CheckedRequest;
use super::guard;
use api::blocking;
use base::exit::Code;
use base::failure::Failure;
use service::Service;
use setup::browsers::{self, NewSession, Owner, Session, SessionId, SessionRefusal};

/// Size limit of a request for a session, in bytes.
const LONGEST: usize = 1 << 10;
/// Time limit of its body.
const WITHIN: Duration = Duration::from_secs(10);
/// Life of the cookie in seconds. The session itself may end earlier.
const COOKIE_SECONDS: u64 = 7 * 24 * 3600;

/// Body posted by the page that a link opened.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionDescription {
    code: String,
    /// True if the person agrees to end another user's session in this browser.
    #[serde(default)]
    replace: bool,
}

/// Begins a session with the code of a link.
pub(super) async fn begin(
    service: &Arc<Service>,
    checked: &CheckedRequest<'_>,
    request: Request,
) -> Result<Response, Failure> {
    let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !is_json {
        return Err(Failure::new(Code::MediaType, "the body is not declared as JSON"));
    }
    let body = Limited::new(request.into_body(), LONGEST).collect();
    let body = match tokio::time::timeout(WITHIN, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return Err(Failure::new(Code::TooLarge, "the request for a session is too long")),
        Err(_) => return Err(Failure::new(Code::TryAgain, "the request did not arrive in time")),
    };
    // The error shows no details, because they may contain the code.
    let shown: SessionDescription =
        serde_json::from_slice(&body).map_err(|_| Failure::usage("the request is not {\"code\": \"…\"}"))?;
    let (asking, browser, before) = (Arc::clone(service), checked.browser, checked.sessions.first().cloned());
    let begun = blocking("the session was not begun", move || {
        asking.browsers().begin(&shown.code, browser, before.as_deref(), shown.replace)
    });
    let NewSession { cookie, key, session } = begun.await?.map_err(refused)?;
    tracing::info!(session = %session.id, person = %session.owner.name, tenant = session.owner.tenant.as_ref().map(tracing::field::display), "session_begun");
    let name = checked.browsers.cookie_name();
    let secure = if checked.origin.starts_with("https://") { "; Secure" } else { "" };
    let cookie =
        format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={COOKIE_SECONDS}{secure}");
    let mut cookie = HeaderValue::from_str(&cookie)
        .map_err(|e| Failure::failed(format!("the cookie cannot be written: {e}")))?;
    cookie.set_sensitive(true);
    let mut body = description(&session);
    body["key"] = key.into();
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], axum::Json(body)).into_response())
}

fn refused(why: SessionRefusal) -> Failure {
    match why {
        SessionRefusal::Unknown => {
            Failure::new(Code::NoSession, "this link was used, or is older than 5 minutes")
                .hint("get another one with: supervisor dashboard")
        }
        SessionRefusal::OfAnother => {
            Failure::new(Code::NoSession, "this link is for the browser of the user who has asked for it")
                .hint("get a link for any browser with: supervisor dashboard")
        }
        SessionRefusal::Occupied(owner) => {
            let name = called(&owner);
            Failure::new(Code::Conflict, format!("this browser has a session as {name}"))
                .hint("continue only if you requested this link yourself: the present session then ends")
        }
        SessionRefusal::Failed(failure) => failure,
    }
}

fn called(owner: &Owner) -> String {
    match &owner.tenant {
        Some(tenant) => format!("{} of the tenant {tenant}", owner.name),
        None => owner.name.clone(),
    }
}

pub(super) fn describe(session: &Session) -> Response {
    axum::Json(description(session)).into_response()
}

fn description(session: &Session) -> serde_json::Value {
    let fields: Vec<_> = kernel::TASK_FIELDS.iter().filter(|field| field.is_in("edit")).collect();
    json!({
        "session": session.id,
        "actor": session.owner.name,
        "tenant": session.owner.tenant,
        "began": session.began,
        "ends": browsers::ends(session),
        "fields": fields,
    })
}

pub(super) async fn end(
    service: &Arc<Service>,
    checked: &CheckedRequest<'_>,
    id: SessionId,
) -> Result<Response, Failure> {
    let ending = Arc::clone(service);
    let ended = move || ending.browsers().revoke(|session| session.id == id);
    blocking("the session was not ended", ended).await??;
    let gone = format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", checked.browsers.cookie_name());
    let gone = HeaderValue::from_str(&gone).map_err(|_| guard::no_session())?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}
