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
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use kernel::Clock as _;
use policies::{Broker, Host, Target};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_util::io::{InspectReader, InspectWriter};
use tokio_util::task::AbortOnDropHandle;

use super::answer::DENIED;
use super::credentials::{header_stays, without_credentials};
use super::head::{HEADERS, LONGEST, TIME, brokered};
use super::meter::{NotTaken, Passage};
use super::reach::{Unreached, reach, within};
use super::relay::Activity;
use super::retry_after;
use super::terms::{RETRY_AFTER, Terms, UNKNOWN, over_budget, refused};
use super::verdict;

/// Limit on the head of a response, and on read-ahead, in bytes.
const ANSWER_HEAD: usize = 64 << 10;
/// Hop-by-hop headers (RFC 9110, section 7.6.1), and headers that are made anew.
const OF_THE_WAY: [&str; 12] = [
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

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

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
struct Traffic {
    activity: Activity,
    /// Notified when a budget of bytes is spent in the middle of a request.
    spent: Notify,
}

/// Serves one request. `ahead` is the part of it that was read already.
pub(super) async fn serve(
    worker: impl AsyncRead + AsyncWrite + Unpin,
    ahead: Vec<u8>,
    aim: Aim<'_>,
    terms: &Terms,
) {
    let traffic = Arc::new(Traffic { activity: Activity::now(), spent: Notify::new() });
    let (reads, writes) = tokio::io::split(worker);
    let stream = tokio::io::join(Cursor::new(ahead).chain(reads), writes);
    let answer = |request| {
        let traffic = Arc::clone(&traffic);
        async move { Ok::<_, Infallible>(exchange(request, aim, terms, &traffic).await) }
    };
    let served = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST)
        .max_headers(HEADERS)
        .timer(TokioTimer::new())
        .header_read_timeout(TIME)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
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
    terms: &Terms,
    traffic: &Arc<Traffic>,
) -> Response<Body> {
    let answered = ask(request, aim, terms, traffic).await;
    if answered.is_err() {
        terms.tally.answer_itself();
    }
    match answered {
        Ok(answer) => answer,
        Err(Unanswered::Unreached(target, Unreached::Refused(refusal))) => {
            let text = format!("{target}: {}", refused(terms, &refusal));
            let mut answer = own_answer(StatusCode::FORBIDDEN, &text);
            answer.headers_mut().insert(DENIED, HeaderValue::from_static("host"));
            answer
        }
        Err(Unanswered::Unreached(target, unreached)) => {
            let (status, why) = unreached.answer();
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            own_answer(status, &format!("{target} {why}"))
        }
        Err(Unanswered::Said(status, text)) => own_answer(status, &text),
        Err(Unanswered::NotTaken(NotTaken::Spent(spent))) => spent_answer(&over_budget(terms, &spent)),
        Err(Unanswered::NotTaken(NotTaken::Unknown)) => {
            let mut answer = own_answer(StatusCode::SERVICE_UNAVAILABLE, UNKNOWN);
            answer.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER.into());
            answer
        }
    }
}

/// Reason why a request got no response from its host.
enum Unanswered {
    Unreached(Target, Unreached),
    Said(StatusCode, String),
    NotTaken(NotTaken),
}

impl Unanswered {
    fn failed(host: &Target, what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Said(StatusCode::BAD_GATEWAY, format!("{host} {what}: {}", base::failure::with_causes(error)))
    }
}

async fn ask(
    request: Request<Incoming>,
    aim: Aim<'_>,
    terms: &Terms,
    traffic: &Arc<Traffic>,
) -> Result<Response<Body>, Unanswered> {
    let method = request.method().as_str();
    if REFUSED_METHODS.iter().any(|refused| method.eq_ignore_ascii_case(refused)) {
        return Err(said(StatusCode::METHOD_NOT_ALLOWED, "this proxy passes on no such request"));
    }
    match aim {
        Aim::Path => by_broker(request, None, terms, traffic).await,
        Aim::Tunnel(target) => by_broker(request, Some(target), terms, traffic).await,
        Aim::Clear(target) => in_the_clear(request, target, terms, traffic).await,
    }
}

fn said(status: StatusCode, text: &str) -> Unanswered {
    Unanswered::Said(status, text.to_owned())
}

/// Passes a request on in the clear.
async fn in_the_clear(
    request: Request<Incoming>,
    target: &Target,
    terms: &Terms,
    traffic: &Arc<Traffic>,
) -> Result<Response<Body>, Unanswered> {
    let unreached = |unreached| Unanswered::Unreached(target.clone(), unreached);
    // The name is checked before it is resolved: a DNS query for a refused name could carry data out.
    verdict::of_target(&terms.policy, target).map_err(|refusal| unreached(Unreached::Refused(refusal)))?;
    let path = request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let Ok(uri) = path.parse::<PathAndQuery>().map(Uri::from) else {
        return Err(said(StatusCode::BAD_REQUEST, "the path cannot be passed on"));
    };
    let mut passage = terms.meter.take(&target.to_string()).await.map_err(Unanswered::NotTaken)?;
    let mut headers = without(request.headers(), |_| false);
    let host = if target.port == 80 { target.host.to_string() } else { target.to_string() };
    headers.insert(HOST, value(host.as_bytes(), target)?);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let server = reach(&terms.policy, &terms.lookups, target).await;
    terms.note_attempt(target, &server);
    let server = server.map_err(unreached)?;
    // A failure before this point returns the charge; from here on the request counts.
    passage.reached();
    let passed = Passed { target, uri, headers, traffic, is_brokered: false };
    send(request, passed, server, passage).await
}

/// Passes a request on by the broker of its host.
async fn by_broker(
    request: Request<Incoming>,
    inside: Option<&Target>,
    terms: &Terms,
    traffic: &Arc<Traffic>,
) -> Result<Response<Body>, Unanswered> {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let asked = inside.map_or_else(|| brokered(path), |target| Some((target.clone(), path.to_owned())));
    let Some((target, rest)) = asked else {
        return Err(said(StatusCode::NOT_FOUND, "the path begins with no host that has a broker"));
    };
    let brokers: Vec<&Broker> = terms.policy.brokers_of(&target).collect();
    if brokers.is_empty() {
        let name = terms.policy.name();
        let text = format!("neither the policy {name} nor the lane has a [[broker]] for {target}");
        return Err(said(StatusCode::NOT_FOUND, &text));
    }
    let Ok(uri) = without_credentials(&rest).parse::<PathAndQuery>().map(Uri::from) else {
        return Err(said(StatusCode::BAD_REQUEST, "the path cannot be passed on"));
    };
    // Charged before the host is contacted; the charge is returned if the host cannot be reached.
    let mut passage = terms.meter.take(&target.to_string()).await.map_err(Unanswered::NotTaken)?;
    let mut headers = passed_on(request.headers(), &brokers);
    for broker in &brokers {
        headers.insert(HOST, value(broker.host.to_string().as_bytes(), &target)?);
        let (name, secret) = key(terms, broker, &target).await?;
        headers.insert(name, secret);
    }
    // The name is resolved here, and the connection goes to an address that the verdict has checked.
    let stream = reach(&terms.policy, &terms.lookups, &target).await;
    terms.note_attempt(&target, &stream);
    let stream = stream.map_err(|unreached| Unanswered::Unreached(target.clone(), unreached))?;
    let encrypted = async {
        let name = match &target.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other),
            Host::Address(address) => Ok(ServerName::from(*address)),
        };
        let name = name.map_err(Unreached::Failed)?;
        let trust = terms.keys.clone();
        let config = tokio::task::spawn_blocking(move || trust.client()).await;
        let config = config.map_err(io::Error::other).and_then(|read| read.map_err(io::Error::other));
        let connector = TlsConnector::from(config.map_err(Unreached::Failed)?);
        connector.connect(name, stream).await.map_err(Unreached::Failed)
    };
    let server = within(encrypted).await;
    let server = server.map_err(|unreached| Unanswered::Unreached(target.clone(), unreached))?;
    // A failure before this point returns the charge; from here on the request counts.
    passage.reached();
    let passed = Passed { target: &target, uri, headers, traffic, is_brokered: true };
    send(request, passed, server, passage).await
}

/// A request as its host gets it, without its method and body.
struct Passed<'a> {
    target: &'a Target,
    uri: Uri,
    headers: HeaderMap,
    traffic: &'a Arc<Traffic>,
    /// True for the request of a broker: its answer tells of the account, and is not cut off.
    is_brokered: bool,
}

/// Sends a request to its host over a connection, and returns the response.
async fn send(
    request: Request<Incoming>,
    passed: Passed<'_>,
    server: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    passage: Passage,
) -> Result<Response<Body>, Unanswered> {
    let Passed { target, uri, headers, traffic, is_brokered } = passed;
    let (reads, writes) = tokio::io::split(server);
    let passage = Arc::new(passage);
    let note = |count: fn(&Passage, usize)| {
        let (passage, traffic) = (Arc::clone(&passage), Arc::clone(traffic));
        move |bytes: &[u8]| {
            count(&passage, bytes.len());
            traffic.activity.note();
            if !is_brokered && passage.is_over() {
                traffic.spent.notify_one();
            }
        }
    };
    let reads = InspectReader::new(reads, note(Passage::received));
    let writes = InspectWriter::new(writes, note(Passage::sent));
    let handshake = hyper::client::conn::http1::Builder::new()
        .max_buf_size(ANSWER_HEAD)
        .max_headers(HEADERS)
        .handshake::<_, Incoming>(TokioIo::new(tokio::io::join(reads, writes)))
        .await;
    let (mut sender, connection) =
        handshake.map_err(|e| Unanswered::failed(target, "cannot be asked", &e))?;
    // Drives the connection; it is aborted with the response body, or on any error before.
    let driver = AbortOnDropHandle::new(tokio::spawn(connection));
    let (parts, body) = request.into_parts();
    let mut asked = Request::new(body);
    (*asked.method_mut(), *asked.uri_mut(), *asked.headers_mut()) = (parts.method, uri, headers);
    let answer = sender.send_request(asked).await;
    let answer = answer.map_err(|e| Unanswered::failed(target, "did not answer", &e))?;
    let (mut parts, answer) = answer.into_parts();
    if is_brokered {
        let opens = retry_after::read(parts.status, &parts.headers, kernel::SystemClock.now());
        passage.answered(parts.status.as_u16(), opens);
    }
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(said(
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
    Ok(Response::from_parts(parts, Passing { answer, _driver: driver }.boxed_unsync()))
}

/// Body of a response, with the task that reads it from the host. The connection lasts until the body is read or
/// dropped.
struct Passing {
    answer: Incoming,
    _driver: AbortOnDropHandle<hyper::Result<()>>,
}

impl hyper::body::Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.answer).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}

/// Returns the worker's headers for the host: no hop-by-hop headers, and none that identify the caller.
fn passed_on(headers: &HeaderMap, brokers: &[&Broker]) -> HeaderMap {
    let says_who = |name: &str| {
        // Some servers treat `_` and `-` as equal.
        let name = name.replace('_', "-");
        let own = |broker: &&Broker| broker.header.to_string().replace('_', "-") == name;
        header_stays(&name) || brokers.iter().any(own)
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
        !OF_THE_WAY.contains(&name) && !named.iter().any(|own| own == name) && !is_left_out(name)
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Reads the secret of a broker for a single request, so that a change takes effect at once.
async fn key(
    terms: &Terms,
    broker: &Broker,
    target: &Target,
) -> Result<(HeaderName, HeaderValue), Unanswered> {
    let (secret, stores, name) =
        (broker.secret.clone(), terms.keys.stores.clone(), broker.header.to_string());
    let read = tokio::task::spawn_blocking(move || secret.fetch(&name, &stores)).await;
    let unread = |error: &dyn std::error::Error| {
        tracing::warn!(host = %target, %error, "key_not_read");
        // The worker must not learn the path of the secret.
        let text =
            format!("the broker of {target} cannot read its secret; the log of the supervisor says why");
        Unanswered::Said(StatusCode::BAD_GATEWAY, text)
    };
    let secret = read.map_err(|e| unread(&e))?.map_err(|e| unread(&e))?;
    let mut header = value(&[broker.prefix().as_bytes(), secret.bytes()].concat(), target)?;
    header.set_sensitive(true);
    let name = HeaderName::from_bytes(broker.header.to_string().as_bytes());
    let name = name.map_err(|_| Unanswered::Said(StatusCode::BAD_GATEWAY, "no such header".to_owned()))?;
    Ok((name, header))
}

fn value(bytes: &[u8], target: &Target) -> Result<HeaderValue, Unanswered> {
    HeaderValue::from_bytes(bytes).map_err(|_| {
        let text = format!("the secret of the broker of {target} has bytes that no header may have");
        Unanswered::Said(StatusCode::BAD_GATEWAY, text)
    })
}

/// Makes a response of the proxy itself.
fn own_answer(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("{text}\n"))).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}

/// Makes the response for a spent budget. Agents do not retry its status, nor take it for a rate limit or a login
/// failure. The body has the form of services' errors, which agents display.
fn spent_answer(text: &str) -> Response<Body> {
    let error = json!({ "type": "budget_spent", "code": "budget_spent", "message": text });
    let mut answer =
        own_answer(StatusCode::PAYMENT_REQUIRED, &json!({ "type": "error", "error": error }).to_string());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
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
        let passed = passed_on(&headers, &brokers);
        let names: Vec<&str> = passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["anthropic-version", "x-kept", "x-kept"]);
    }
}
