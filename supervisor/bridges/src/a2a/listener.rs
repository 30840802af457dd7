//! Listener of the A2A bridge: serves one request per connection, with limits that apply before a method is called.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request as Http, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use kernel::Profile;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::card;
use super::message::RpcRequest;
use super::methods::{MethodResult, Methods};
use super::reply::RpcError;
use super::senders::{SenderRefusal, Senders};
use super::stream;
use super::unauthenticated::{UnauthenticatedConnection, UnauthenticatedConnections};
use base::a2a_wire::VERSION;
use host::accept::next_connection;
use service::Service;
use setup::config::a2a::A2aConfig;

/// Time limits of a request's head, and of its body.
const HEAD: Duration = Duration::from_secs(10);
const BODY: Duration = Duration::from_secs(30);
/// Size limit of a body, in bytes. A message may have 1 MiB, and its encoding needs more.
const BODY_BYTES: usize = 2 << 20;
/// Longest duration of a connection. A stream ends earlier.
const LONGEST: Duration = Duration::from_mins(61);

/// Pause after the first failed try to listen, and the longest pause.
const FIRST_TRY: Duration = Duration::from_secs(1);
const LAST_TRY: Duration = Duration::from_mins(1);

type HttpReply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// State shared by all connections.
#[derive(Debug)]
struct A2aListener {
    service: Arc<Service>,
    senders: Senders,
    stop: CancellationToken,
}

/// Group of connections or requests in which a connection counts.
#[derive(Debug)]
enum CountedAgainst {
    /// Unauthenticated connections.
    Unauthenticated(
        #[expect(dead_code, reason = "it is held until it is dropped")] UnauthenticatedConnection,
    ),
    /// Requests in progress of its sender.
    Sender(#[expect(dead_code, reason = "it is held until it is dropped")] OwnedSemaphorePermit),
}

/// Serves other agents until stopped. Returns at once if the configuration has no address to listen at.
pub(super) fn serve(
    service: Arc<Service>,
    stop: CancellationToken,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(accept_all(service, stop))
}

async fn accept_all(service: Arc<Service>, stop: CancellationToken) {
    let Some(listener) = listen(&service, &stop).await else { return };
    let shared = Arc::new(A2aListener { service, senders: Senders::default(), stop: stop.clone() });
    let (unauthenticated, served) = (Arc::new(UnauthenticatedConnections::default()), TaskTracker::new());
    loop {
        tokio::select! {
            // Cancel-safe: a connection that is not accepted waits in the kernel.
            stream = next_connection(&listener, &"a2a") => {
                let (connection, end) = UnauthenticatedConnections::enter(&unauthenticated);
                drop(served.spawn(converse(Arc::clone(&shared), stream, connection, end)));
            }
            () = stop.cancelled() => break,
        }
    }
    served.close();
    served.wait().await;
}

/// Listens at the configured address, which is read anew at each try. Returns none if no address is configured, or if
/// the daemon ends first.
async fn listen(service: &Service, stop: &CancellationToken) -> Option<TcpListener> {
    let mut pause = FIRST_TRY;
    let mut told = None;
    loop {
        let at = service.config().a2a.listen?;
        match TcpListener::bind(at).await {
            Ok(listener) => {
                service.set_bridge(None);
                tracing::info!(%at, "a2a_served");
                return Some(listener);
            }
            Err(error) => {
                let why = format!("cannot listen on {at}: {error}");
                service.set_bridge(Some(why.clone()));
                // A reason is logged only when it differs from the last one.
                if told.as_ref() != Some(&why) {
                    tracing::error!(%at, %error, hint = "it is tried again: free the address, or set another a2a.listen", "a2a_not_served");
                }
                told = Some(why);
            }
        }
        tokio::select! {
            // Cancel-safe: only a pause is dropped.
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return None,
        }
        pause = (pause * 2).min(LAST_TRY);
    }
}

async fn converse(
    shared: Arc<A2aListener>,
    stream: TcpStream,
    connection: UnauthenticatedConnection,
    end: CancellationToken,
) {
    let counted = Arc::new(Mutex::new(CountedAgainst::Unauthenticated(connection)));
    let stop = shared.stop.clone();
    let answering = service_fn(move |request| {
        let (shared, counted) = (Arc::clone(&shared), Arc::clone(&counted));
        async move { Ok::<_, Infallible>(answer(&shared, request, &counted).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false).max_buf_size(64 << 10);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), answering));
    tokio::select! {
        // An error means that the client closed the connection.
        ended = tokio::time::timeout(LONGEST, connection.as_mut()) => drop(ended),
        // The connection is unauthenticated, and newer connections need its place.
        () = end.cancelled() => {}
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(tokio::time::timeout(Duration::from_secs(1), connection).await);
        }
    }
}

async fn answer(
    shared: &Arc<A2aListener>,
    request: Http<Incoming>,
    counted: &Mutex<CountedAgainst>,
) -> HttpReply {
    let path = request.uri().path().to_owned();
    let config = shared.service.config();
    if let Err((status, why)) = check_client(&config.a2a, &request) {
        return plain(status, why);
    }
    let (agent, is_card) = match path.strip_suffix(card::PATH) {
        Some(agent) => (agent, true),
        None => (path.as_str(), false),
    };
    let profile = match agent.trim_matches('/') {
        "" => None,
        name => match config.a2a.profiles.iter().find(|profile| profile.as_str() == name) {
            Some(profile) => Some(profile.clone()),
            None => return plain(StatusCode::NOT_FOUND, "no agent has this address"),
        },
    };
    match (request.method(), is_card) {
        (&Method::GET, true) => {
            let card = card::for_profile(&config.a2a, &shared.service.roster(), profile.as_ref());
            json_reply(StatusCode::OK, &card)
        }
        (&Method::POST, false) => rpc(shared, request, profile, counted).await,
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "use GET for a card and POST for a message"),
    }
}

/// Refuses a request of a browser's page, and a request under a host name that is not this service's (DNS rebinding).
fn check_client<B>(config: &A2aConfig, request: &Http<B>) -> Result<(), (StatusCode, &'static str)> {
    let headers = request.headers();
    // A browser sends `none` for an address that its user has typed.
    let mut sites = headers.get_all("sec-fetch-site").iter();
    if headers.contains_key(header::ORIGIN) || sites.any(|site| site != "none") {
        return Err((StatusCode::FORBIDDEN, "pages of a browser are not served"));
    }
    let mut hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err((StatusCode::BAD_REQUEST, "the request names no host, or several"));
    };
    // A request to a proxy names its host in the request line as well.
    let named = request.uri().authority().map(Authority::as_str);
    if named.is_none_or(|named| named.eq_ignore_ascii_case(host)) && config.is_served_as(host) {
        return Ok(());
    }
    let why = "no agent is served under this name; set `url` in [a2a] to the address that others use";
    Err((StatusCode::MISDIRECTED_REQUEST, why))
}

async fn rpc(
    shared: &Arc<A2aListener>,
    request: Http<Incoming>,
    profile: Option<Profile>,
    counted: &Mutex<CountedAgainst>,
) -> HttpReply {
    let (sender, room) = match shared.senders.admit(&shared.service, request.headers()) {
        Ok(known) => known,
        Err(SenderRefusal::Unknown) => {
            let reply = plain(StatusCode::UNAUTHORIZED, "a bearer token of a sender is needed");
            return with(reply, header::WWW_AUTHENTICATE, "Bearer");
        }
        Err(SenderRefusal::TooMuch(pause)) => {
            let reply = plain(StatusCode::TOO_MANY_REQUESTS, "this sender has too many requests");
            return with(reply, header::RETRY_AFTER, &pause.as_secs().max(1).to_string());
        }
    };
    // From now on, the connection counts among its sender's requests, and not among the unauthenticated connections.
    *counted.lock().unwrap_or_else(PoisonError::into_inner) = CountedAgainst::Sender(room);
    let version = request
        .headers()
        .get("a2a-version")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .trim()
        .to_owned();
    // The body is read only now, so that the body of an unauthenticated client is never buffered.
    let body = Limited::new(request.into_body(), BODY_BYTES).collect();
    let body = match tokio::time::timeout(BODY, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "a request has at most 2 MiB"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the request did not arrive in time"),
    };
    let request: RpcRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(e) if e.is_data() => {
            return refused(
                &RpcError::no_request(format!("it is not a JSON-RPC request: {e}")),
                &Value::Null,
            );
        }
        Err(e) => return refused(&RpcError::unreadable(format!("it is not JSON: {e}")), &Value::Null),
    };
    let id = match &request.id {
        Some(id @ (Value::String(_) | Value::Number(_))) if request.jsonrpc == "2.0" => id.clone(),
        _ => {
            return refused(
                &RpcError::no_request("`jsonrpc` is \"2.0\", and `id` a text or a number"),
                &Value::Null,
            );
        }
    };
    // A client without the header may use an earlier version, whose method names are accepted.
    if !(version.is_empty() || version == VERSION || version.starts_with("1.0.")) {
        return refused(&RpcError::version(&version), &id);
    }
    let methods = Methods { service: Arc::clone(&shared.service), sender, profile };
    match methods.handle(&request.method, request.params).await {
        Ok(MethodResult::Result(result)) => {
            json_reply(StatusCode::OK, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
        }
        Ok(MethodResult::Stream(task)) => {
            let events = stream::begin(methods, task, id, shared.stop.clone());
            let reply = Response::new(events.boxed_unsync());
            with(with(reply, header::CONTENT_TYPE, "text/event-stream"), header::CACHE_CONTROL, "no-store")
        }
        Err(error) => refused(&error, &id),
    }
}

fn refused(error: &RpcError, id: &Value) -> HttpReply {
    json_reply(StatusCode::OK, &error.response(id))
}

fn json_reply(status: StatusCode, value: &Value) -> HttpReply {
    let reply = whole(status, value.to_string().into());
    let reply = with(reply, header::CONTENT_TYPE, "application/json");
    with(reply, HeaderName::from_static("a2a-version"), VERSION)
}

fn plain(status: StatusCode, text: &str) -> HttpReply {
    with(whole(status, format!("{text}\n").into()), header::CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn whole(status: StatusCode, body: Bytes) -> HttpReply {
    let mut reply = Response::new(Full::new(body).boxed_unsync());
    *reply.status_mut() = status;
    reply
}

fn with(mut reply: HttpReply, name: HeaderName, value: &str) -> HttpReply {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
    reply
}
