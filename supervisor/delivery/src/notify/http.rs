//! HTTP client for one request to a service, with a time limit for each step. An excess of the response is not read,
//! and a redirect is not followed. Errors show only the host of an address, because the rest may be secret.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode, Uri, header};
use rustls::ClientConfig;
use serde_json::Value;
use tokio::net::{TcpStream, lookup_host};

use super::step_log::{StepLog, Undelivered};
use base::failure::with_causes;
use net::http_client::{self, Stream};

/// Time limit for each of name resolution, connection and handshake.
const STEP: Duration = Duration::from_secs(10);
/// Limit on the response that is read, in bytes.
const RESPONSE_BYTES: usize = 64 << 10;
/// Longest pause that a service may ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(6);

/// A request, without `Debug` because its address and headers may have secrets.
pub(super) struct HttpRequest {
    method: Method,
    /// Address; the part after the host may be secret.
    pub(super) url: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Vec<u8>,
    /// Limit on the response that is read, in bytes.
    pub(super) response_bytes: usize,
}

/// A response, with the beginning of its body.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    /// Pause that its header asks for.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

impl HttpRequest {
    pub(super) fn json(url: String, body: &Value) -> Self {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = body.to_string().into_bytes();
        HttpRequest { method: Method::POST, url, headers: vec![kind], body, response_bytes: RESPONSE_BYTES }
    }

    /// Makes a request that only reads.
    pub(super) fn get(url: String) -> Self {
        let (headers, body) = (Vec::new(), Vec::new());
        HttpRequest { method: Method::GET, url, headers, body, response_bytes: RESPONSE_BYTES }
    }

    /// Adds a header whose value is secret.
    pub(super) fn with(mut self, name: HeaderName, value: &str) -> Result<Self, Undelivered> {
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            Undelivered::later("the secret has characters that no header may have, such as a line break")
        })?;
        value.set_sensitive(true);
        self.headers.push((name, value));
        Ok(self)
    }

    /// Sends the request. `limit` covers the request and its response.
    pub(super) async fn send(
        self,
        trust: Option<Arc<ClientConfig>>,
        limit: Duration,
        step_log: &mut StepLog,
    ) -> Result<HttpResponse, Undelivered> {
        let uri: Uri = self.url.parse().map_err(|_| {
            step_log.failed(
                "address",
                Undelivered::later("the address of the service is invalid: check `url`, `to` and the secret"),
            )
        })?;
        let stream = connect(&uri, trust, step_log).await?;
        let late = || Undelivered::later(format!("no answer within {} s", limit.as_secs()));
        let response =
            tokio::time::timeout(limit, self.exchange(&uri, stream)).await.unwrap_or_else(|_| Err(late()));
        let shown = response.as_ref().map_or_else(|_| String::new(), |response| response.status.to_string());
        step_log.record("request", response, shown)
    }

    async fn exchange(self, uri: &Uri, stream: Box<dyn Stream>) -> Result<HttpResponse, Undelivered> {
        let broken =
            |e: hyper::Error| Undelivered::later(format!("the connection broke: {}", with_causes(&e)));
        let mut headers: HeaderMap = self.headers.into_iter().collect();
        let agent = HeaderValue::from_static(concat!("supervisor/", env!("CARGO_PKG_VERSION")));
        headers.insert(header::USER_AGENT, agent);
        let request = http_client::request(self.method, uri, headers, self.body.into());
        let response = http_client::send(stream, request).await.map_err(broken)?;
        let (status, retry_after) = (response.status(), retry_after(response.headers()));
        // A response that is too long still counts: its status decides.
        let body = response.into_body().up_to(self.response_bytes).await;
        Ok(HttpResponse { status, retry_after, body })
    }
}

impl HttpResponse {
    /// Judges by the status whether the service has accepted the message. `error` is the error in the body, `after` the
    /// pause that it asks for.
    pub(super) fn accepted(
        self,
        error: Option<&str>,
        after: Option<Duration>,
    ) -> Result<HttpResponse, Undelivered> {
        let status = self.status;
        let error =
            error.map(|error| error.chars().filter(|c| !c.is_control()).take(200).collect::<String>());
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        match status.as_u16() {
            200..=299 => Ok(self),
            300..=399 => Err(Undelivered::later(format!(
                "the service answers {status}, and redirects are not followed: configure the address that it leads to"
            ))),
            400 | 413 | 422 => {
                Err(Undelivered::Refused(format!("the service refuses the message: {status}{error}")))
            }
            429 | 503 => {
                let after = after.or(self.retry_after).map(|after| after.min(LONGEST_PAUSE));
                Err(Undelivered::Later { why: format!("the service answers {status}{error}"), after })
            }
            _ => Err(Undelivered::later(format!("the service answers {status}{error}"))),
        }
    }

    /// Parses the body as JSON; null if it is not JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Parses `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    at.duration_since(jiff::Timestamp::now()).try_into().ok()
}

async fn within<T>(what: &str, doing: impl Future<Output = std::io::Result<T>>) -> Result<T, Undelivered> {
    match tokio::time::timeout(STEP, doing).await {
        Ok(outcome) => outcome.map_err(|e| Undelivered::later(format!("{what}: {}", with_causes(&e)))),
        Err(_) => Err(Undelivered::later(format!("{what}: not done within {} s", STEP.as_secs()))),
    }
}

/// Connects to any address of the host's name. The operator who configures a channel may name a host of a private
/// network.
pub(super) async fn connect(
    uri: &Uri,
    trust: Option<Arc<ClientConfig>>,
    step_log: &mut StepLog,
) -> Result<Box<dyn Stream>, Undelivered> {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_encrypted = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
    let addresses = within(&format!("resolve {host}"), lookup_host((host.as_str(), port))).await;
    let addresses: Vec<_> = step_log.record("resolve", addresses, &host)?.collect();
    let stream = within(&format!("connect to {host}:{port}"), TcpStream::connect(addresses.as_slice())).await;
    let stream = step_log.record("connect", stream, format!("{host}:{port}"))?;
    stream.set_nodelay(true).ok();
    let Some(config) = trust.filter(|_| is_encrypted) else {
        return if is_encrypted {
            Err(step_log.failed("tls", Undelivered::later("this host trusts no certificates")))
        } else {
            Ok(Box::new(stream))
        };
    };
    let secured = http_client::encrypted(&host, config, stream);
    let secured = within(&format!("TLS with {host}"), secured).await;
    Ok(Box::new(step_log.record("tls", secured, "the certificate is trusted")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, retry_after: Option<u64>) -> HttpResponse {
        HttpResponse {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: retry_after.map(Duration::from_secs),
            body: Bytes::new(),
        }
    }

    #[test]
    fn a_status_says_whether_another_try_may_help_and_when() {
        assert!(response(204, None).accepted(None, None).is_ok());
        for status in [301, 401, 403, 404, 500, 502, 599] {
            let error = response(status, Some(9)).accepted(None, None).unwrap_err();
            assert!(matches!(error, Undelivered::Later { after: None, .. }), "{status}: {error}");
        }
        for status in [400, 413, 422] {
            assert!(
                matches!(response(status, None).accepted(Some("no\nchat"), None), Err(Undelivered::Refused(why)) if why.ends_with(": nochat"))
            );
        }
        let pause =
            |of: HttpResponse, after: Option<u64>| match of.accepted(None, after.map(Duration::from_secs)) {
                Err(Undelivered::Later { after, .. }) => after.map(|after| after.as_secs()),
                other => panic!("{other:?}"),
            };
        assert_eq!(pause(response(429, Some(7)), None), Some(7));
        assert_eq!(pause(response(429, Some(7)), Some(3)), Some(3), "what the body says comes first");
        assert_eq!(pause(response(503, Some(u64::MAX)), None), Some(6 * 3600), "bounded");
    }

    #[test]
    fn a_pause_is_seconds_or_a_date() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(of("30"), Some(Duration::from_secs(30)));
        assert_eq!(of("0.5"), Some(Duration::from_millis(500)));
        assert_eq!((of("soon"), of("-1"), of("1e300")), (None, Some(Duration::ZERO), None));
        assert!(of("Tue, 31 Dec 2999 23:59:59 GMT").unwrap() > Duration::from_hours(24));
        assert_eq!(of("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
