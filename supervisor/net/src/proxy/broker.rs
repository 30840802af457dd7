//! Plain requests of a run: each is passed on to its host, by a broker over TLS with a header that the worker never
//! has, or else in the clear.
//!
//! A full HTTP server parses the worker's request and writes it anew, so this proxy alone decides where a message
//! ends. A connection serves one request: another one has its own connection, is checked and counts. The header of a
//! broker is added last. Redirects are not followed; they are passed to the worker.
//!
//! See decision 0104.

use std::convert::Infallible;
use std::io::{self, Cursor};
use std::sync::Arc;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use kernel::Clock as _;
use policies::{Broker, Target};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::io::{InspectReader, InspectWriter};

use super::credentials::{is_withheld_header, without_credentials};
use super::head::{HEADERS, LONGEST, TIME, brokered};
use super::host_check;
use super::meter::{MeteredRequest, NotAdmitted};
use super::own_response::DENIED;
use super::reach::{Unreached, reach, within};
use super::relay::LastTraffic;
use super::retry_after;
use super::terms::{ProxyTerms, RETRY_AFTER, UNKNOWN, over_budget, refused};
use crate::http_client;

/// Limit on the head of a response, and on read-ahead, in bytes.
const RESPONSE_HEAD: usize = 64 << 10;
/// Hop-by-hop headers (RFC 9110, section 7.6.1), and headers that are made anew.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Methods that no request may have, in any case: some servers read methods without regard to it. The response to
/// TRACE, and to TRACK of IIS, repeats the request with the headers that a broker added; CONNECT makes a tunnel behind
/// the server.
const REFUSED_METHODS: [&str; 3] = ["TRACE", "TRACK", "CONNECT"];

type ResponseBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// Host of a plain request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aim<'a> {
    /// The host at the beginning of the path, which has a broker.
    Path,
    /// The host of the tunnel, which has a broker.
    Tunnel(&'a Target),
    /// The host in the target of the request, which gets it in the clear.
    Clear(&'a Target),
}

/// Traffic of a connection.
struct Exchanges {
    activity: LastTraffic,
    /// Notified when a budget of bytes is spent in the middle of a request.
    spent: Notify,
}

/// Serves one request. `ahead` is the part of it that was read already.
pub(super) async fn serve(
    worker: impl AsyncRead + AsyncWrite + Unpin,
    ahead: Vec<u8>,
    aim: Aim<'_>,
    terms: &ProxyTerms,
) {
    let traffic = Arc::new(Exchanges { activity: LastTraffic::now(), spent: Notify::new() });
    let (reads, writes) = tokio::io::split(worker);
    let stream = tokio::io::join(Cursor::new(ahead).chain(reads), writes);
    let respond = |request| {
        let traffic = Arc::clone(&traffic);
        async move { Ok::<_, Infallible>(exchange(request, aim, terms, &traffic).await) }
    };
    let served = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST)
        .max_headers(HEADERS)
        .timer(TokioTimer::new())
        .header_read_timeout(TIME)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    tokio::select! {
        // Each arm ends the connection, so the cancelled future has no client left.
        _ = served => {}
        () = traffic.activity.idle() => {}
        () = traffic.spent.notified() => {}
    }
}

async fn exchange(
    request: Request<Incoming>,
    aim: Aim<'_>,
    terms: &ProxyTerms,
    traffic: &Arc<Exchanges>,
) -> Response<ResponseBody> {
    let answered = ask(request, aim, terms, traffic).await;
    if answered.is_err() {
        terms.traffic.responded_itself();
    }
    match answered {
        Ok(response) => response,
        Err(NoResponse::Unreached(target, Unreached::Refused(refusal))) => {
            let text = format!("{target}: {}", refused(terms, &refusal));
            let mut response = own_response(StatusCode::FORBIDDEN, &text);
            response.headers_mut().insert(DENIED, HeaderValue::from_static("host"));
            response
        }
        Err(NoResponse::Unreached(target, unreached)) => {
            let (status, why) = unreached.status_and_reason();
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            own_response(status, &format!("{target} {why}"))
        }
        Err(NoResponse::Refused(status, text)) => own_response(status, &text),
        Err(NoResponse::NotAdmitted(NotAdmitted::Spent(spent))) => {
            budget_response(&over_budget(terms, &spent))
        }
        Err(NoResponse::NotAdmitted(NotAdmitted::Unknown)) => {
            let mut response = own_response(StatusCode::SERVICE_UNAVAILABLE, UNKNOWN);
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER.into());
            response
        }
    }
}

/// Reason why a request got no response from its host.
enum NoResponse {
    Unreached(Target, Unreached),
    Refused(StatusCode, String),
    NotAdmitted(NotAdmitted),
}

impl NoResponse {
    fn failed(host: &Target, what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Refused(
            StatusCode::BAD_GATEWAY,
            format!("{host} {what}: {}", base::failure::with_causes(error)),
        )
    }
}

async fn ask(
    request: Request<Incoming>,
    aim: Aim<'_>,
    terms: &ProxyTerms,
    traffic: &Arc<Exchanges>,
) -> Result<Response<ResponseBody>, NoResponse> {
    let method = request.method().as_str();
    if REFUSED_METHODS.iter().any(|refused| method.eq_ignore_ascii_case(refused)) {
        return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "this proxy passes on no such request"));
    }
    match aim {
        Aim::Path => by_broker(request, None, terms, traffic).await,
        Aim::Tunnel(target) => by_broker(request, Some(target), terms, traffic).await,
        Aim::Clear(target) => in_the_clear(request, target, terms, traffic).await,
    }
}

fn refusal(status: StatusCode, text: &str) -> NoResponse {
    NoResponse::Refused(status, text.to_owned())
}

/// Passes a request on in the clear.
async fn in_the_clear(
    request: Request<Incoming>,
    target: &Target,
    terms: &ProxyTerms,
    traffic: &Arc<Exchanges>,
) -> Result<Response<ResponseBody>, NoResponse> {
    let unreached = |unreached| NoResponse::Unreached(target.clone(), unreached);
    // The name is checked before it is resolved: a DNS query for a refused name could carry data out.
    host_check::check_target(&terms.policy, target)
        .map_err(|refusal| unreached(Unreached::Refused(refusal)))?;
    let path = request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let Ok(uri) = path.parse::<PathAndQuery>().map(Uri::from) else {
        return Err(refusal(StatusCode::BAD_REQUEST, "the path cannot be passed on"));
    };
    let mut metered = terms.meter.admit(&target.to_string()).await.map_err(NoResponse::NotAdmitted)?;
    let mut headers = without(request.headers(), |_| false);
    let host = if target.port == 80 { target.host.to_string() } else { target.to_string() };
    headers.insert(HOST, value(host.as_bytes(), target)?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let server = reach(&terms.policy, &terms.lookups, target).await;
    terms.note_attempt(target, &server);
    let server = server.map_err(unreached)?;
    // A failure before this point returns the charge; from here on the request counts.
    metered.reached();
    let forwarded = Forwarded { target, uri, headers, traffic, is_brokered: false };
    send(request, forwarded, server, metered).await
}

/// Passes a request on by the broker of its host.
async fn by_broker(
    request: Request<Incoming>,
    inside: Option<&Target>,
    terms: &ProxyTerms,
    traffic: &Arc<Exchanges>,
) -> Result<Response<ResponseBody>, NoResponse> {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let asked = inside.map_or_else(|| brokered(path), |target| Some((target.clone(), path.to_owned())));
    let Some((target, rest)) = asked else {
        return Err(refusal(StatusCode::NOT_FOUND, "the path begins with no host that has a broker"));
    };
    let brokers: Vec<&Broker> = terms.policy.brokers_of(&target).collect();
    if brokers.is_empty() {
        let name = terms.policy.name();
        let text = format!("neither the policy {name} nor the lane has a [[broker]] for {target}");
        return Err(refusal(StatusCode::NOT_FOUND, &text));
    }
    let Ok(uri) = without_credentials(&rest).parse::<PathAndQuery>().map(Uri::from) else {
        return Err(refusal(StatusCode::BAD_REQUEST, "the path cannot be passed on"));
    };
    // Charged before the host is contacted; the charge is returned if the host cannot be reached.
    let mut metered = terms.meter.admit(&target.to_string()).await.map_err(NoResponse::NotAdmitted)?;
    let mut headers = forwarded_headers(request.headers(), &brokers);
    for broker in &brokers {
        headers.insert(HOST, value(broker.host.to_string().as_bytes(), &target)?);
        let (name, secret) = key(terms, broker, &target).await?;
        headers.insert(name, secret);
    }
    // The name is resolved here, and the connection goes to an address that the verdict has checked.
    let stream = reach(&terms.policy, &terms.lookups, &target).await;
    terms.note_attempt(&target, &stream);
    let stream = stream.map_err(|unreached| NoResponse::Unreached(target.clone(), unreached))?;
    let encrypted = async {
        let trust = terms.keys.clone();
        let config = tokio::task::spawn_blocking(move || trust.client()).await;
        let config = config.map_err(io::Error::other).and_then(|read| read.map_err(io::Error::other));
        let config = config.map_err(Unreached::Failed)?;
        http_client::encrypted(&target.host.to_string(), config, stream).await.map_err(Unreached::Failed)
    };
    let server = within(encrypted).await;
    let server = server.map_err(|unreached| NoResponse::Unreached(target.clone(), unreached))?;
    // A failure before this point returns the charge; from here on the request counts.
    metered.reached();
    let forwarded = Forwarded { target: &target, uri, headers, traffic, is_brokered: true };
    send(request, forwarded, server, metered).await
}

/// A request as its host gets it, without its method and body.
struct Forwarded<'a> {
    target: &'a Target,
    uri: Uri,
    headers: HeaderMap,
    traffic: &'a Arc<Exchanges>,
    /// True for the request of a broker: its answer tells of the account, and is not cut off.
    is_brokered: bool,
}

/// Sends a request to its host over a connection, and returns the response.
async fn send(
    request: Request<Incoming>,
    forwarded: Forwarded<'_>,
    server: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    metered: MeteredRequest,
) -> Result<Response<ResponseBody>, NoResponse> {
    let Forwarded { target, uri, headers, traffic, is_brokered } = forwarded;
    let (reads, writes) = tokio::io::split(server);
    let metered = Arc::new(metered);
    let note = |count: fn(&MeteredRequest, usize)| {
        let (metered, traffic) = (Arc::clone(&metered), Arc::clone(traffic));
        move |bytes: &[u8]| {
            count(&metered, bytes.len());
            traffic.activity.note();
            if !is_brokered && metered.is_over() {
                traffic.spent.notify_one();
            }
        }
    };
    let reads = InspectReader::new(reads, note(MeteredRequest::received));
    let writes = InspectWriter::new(writes, note(MeteredRequest::sent));
    let mut limits = http1::Builder::new();
    limits.max_buf_size(RESPONSE_HEAD).max_headers(HEADERS);
    let (parts, body) = request.into_parts();
    let mut asked = Request::new(body);
    (*asked.method_mut(), *asked.uri_mut(), *asked.headers_mut()) = (parts.method, uri, headers);
    let response = http_client::send_with(&limits, tokio::io::join(reads, writes), asked).await;
    let response = response.map_err(|e| NoResponse::failed(target, "did not answer", &e))?;
    let (mut parts, response) = response.into_parts();
    if is_brokered {
        let opens = retry_after::read(parts.status, &parts.headers, kernel::SystemClock.now());
        metered.answered(parts.status.as_u16(), opens);
    }
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(
            StatusCode::BAD_GATEWAY,
            "the host wants another protocol, which was not asked for",
        ));
    }
    let length = parts.headers.remove(CONTENT_LENGTH);
    // Only this proxy may claim to have denied a request.
    parts.headers = without(&parts.headers, |name| name == DENIED);
    if let Some(length) = length {
        parts.headers.insert(CONTENT_LENGTH, length);
    }
    Ok(Response::from_parts(parts, response.boxed_unsync()))
}

/// Returns the worker's headers for the host: no hop-by-hop headers, and none that identify the caller.
fn forwarded_headers(headers: &HeaderMap, brokers: &[&Broker]) -> HeaderMap {
    let says_who = |name: &str| {
        // Some servers treat `_` and `-` as equal.
        let name = name.replace('_', "-");
        let sets_header = |broker: &&Broker| broker.header.to_string().replace('_', "-") == name;
        is_withheld_header(&name) || brokers.iter().any(sets_header)
    };
    without(headers, says_who)
}

/// Removes hop-by-hop headers, headers that `Connection` names, and headers that `is_left_out` selects.
fn without(headers: &HeaderMap, is_left_out: impl Fn(&str) -> bool) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
        .collect();
    let is_kept = |name: &HeaderName| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name) && !named.iter().any(|own| own == name) && !is_left_out(name)
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Reads the secret of a broker for a single request, so that a change takes effect at once.
async fn key(
    terms: &ProxyTerms,
    broker: &Broker,
    target: &Target,
) -> Result<(HeaderName, HeaderValue), NoResponse> {
    let (secret, stores, name) =
        (broker.secret.clone(), terms.keys.stores.clone(), broker.header.to_string());
    let read = tokio::task::spawn_blocking(move || secret.fetch(&name, &stores)).await;
    let unread = |error: &dyn std::error::Error| {
        tracing::warn!(host = %target, %error, "key_not_read");
        // The worker must not learn the path of the secret.
        let text =
            format!("the broker of {target} cannot read its secret; the log of the supervisor says why");
        NoResponse::Refused(StatusCode::BAD_GATEWAY, text)
    };
    let secret = read.map_err(|e| unread(&e))?.map_err(|e| unread(&e))?;
    let mut header = value(&[broker.prefix().as_bytes(), secret.bytes()].concat(), target)?;
    header.set_sensitive(true);
    let name = HeaderName::from_bytes(broker.header.to_string().as_bytes());
    let name = name.map_err(|_| NoResponse::Refused(StatusCode::BAD_GATEWAY, "no such header".to_owned()))?;
    Ok((name, header))
}

fn value(bytes: &[u8], target: &Target) -> Result<HeaderValue, NoResponse> {
    HeaderValue::from_bytes(bytes).map_err(|_| {
        let text = format!("the secret of the broker of {target} has bytes that no header may have");
        NoResponse::Refused(StatusCode::BAD_GATEWAY, text)
    })
}

/// Makes a response of the proxy itself.
fn own_response(status: StatusCode, text: &str) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(format!("{text}\n"))).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// Makes the response for a spent budget. Agents do not retry its status, nor take it for a rate limit or a login
/// failure. The body has the form of services' errors, which agents display.
fn budget_response(text: &str) -> Response<ResponseBody> {
    let error = json!({ "type": "budget_spent", "code": "budget_spent", "message": text });
    let mut response =
        own_response(StatusCode::PAYMENT_REQUIRED, &json!({ "type": "error", "error": error }).to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use policies::Policy;

    use super::*;

    #[test]
    fn headers_of_the_way_and_those_that_say_who_asks_do_not_pass() {
        let text = "version = 1\n[network]\nmode = 'proxy'\n[[broker]]\nhost = 'a.example'\nheader = 'X-Own-Key'\nsecret = 'k'";
        let policy = Policy::from_toml(text, Path::new("p.toml")).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "X-Hop, keep-alive"),
            ("connection", "x-hop-too"),
            ("x-hop", "1"),
            ("x-hop-too", "1"),
            ("keep-alive", "timeout=5"),
            ("host", "evil.example"),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("proxy-authorization", "Basic x"),
            ("authorization", "Bearer mine"),
            ("x_api_key", "mine"),
            ("api-key", "mine"),
            ("cookie", "mine"),
            ("x-own-key", "mine"),
            ("x_own_key", "mine"),
            ("forwarded", "for=127.0.0.1;host=other.example"),
            ("x-forwarded-for", "127.0.0.1"),
            ("via", "1.1 trusted"),
            ("x-real-ip", "127.0.0.1"),
            ("anthropic-version", "2023-06-01"),
            ("x-kept", "1"),
            ("x-kept", "2"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let brokers: Vec<&Broker> = policy.broker.iter().collect();
        let passed = forwarded_headers(&headers, &brokers);
        let names: Vec<&str> = passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["anthropic-version", "x-kept", "x-kept"]);
    }
}
