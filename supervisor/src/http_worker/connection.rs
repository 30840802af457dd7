//! Connection to a service: direct, or through the proxy named in the run's environment.

use std::io;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::request::ServiceRequest;
use base::environment;
use base::exit::Code;
use base::failure::{Failure, with_causes};
use net::http_client::{self, ResponseBody, Stream};
use net::proxy::{DENIED, trusted};

/// Time limit of connecting. The response has the time of the run.
const CONNECTED: Duration = Duration::from_secs(30);

/// Size limit of the proxy's reason, in bytes.
const WORDS_BYTES: usize = 4 << 10;

/// Sends a request, and returns the response once its head has arrived.
pub(super) async fn send(order: &ServiceRequest) -> Result<Response<ResponseBody>, Failure> {
    let unreachable = |why: String| {
        let hint = "the event `egress_denied` of the run names a host that its policy does not let it reach";
        Failure::new(Code::Unreachable, format!("the service at {} cannot be reached: {why}", order.url))
            .hint(hint)
    };
    let proxy = proxy_of(&order.uri, environment::text);
    let connected = tokio::time::timeout(CONNECTED, connect(&order.uri, proxy.as_ref())).await;
    let stream = connected
        .map_err(|_| unreachable(format!("no connection within {} s", CONNECTED.as_secs())))?
        .map_err(|e| match e.get_ref().and_then(|e| e.downcast_ref::<DeniedByProxy>()) {
            Some(DeniedByProxy(why)) => denied(order, why),
            None => unreachable(with_causes(&e)),
        })?;
    let broken = |e: hyper::Error| unreachable(with_causes(&e));
    let mut request =
        http_client::request(order.method.clone(), &order.uri, order.headers.clone(), order.body.clone());
    if proxy.is_some() && order.uri.scheme_str() == Some("http") {
        *request.uri_mut() = order.uri.clone();
    }
    let answer = http_client::send(stream, request).await.map_err(broken)?;
    // Inside a tunnel, only the service can respond.
    if is_denied(&answer) && order.uri.scheme_str() == Some("http") {
        return Err(denied(order, &words(answer).await));
    }
    Ok(answer)
}

/// Refusal of the run's proxy to connect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct DeniedByProxy(String);

/// Returns true if the run's proxy refused a request. A service that forges the header only turns a login error into a
/// failure.
fn is_denied<B>(answer: &Response<B>) -> bool {
    answer.status() == StatusCode::FORBIDDEN && answer.headers().contains_key(DENIED)
}

/// Makes the error for a service that the run may not reach. The error is neither about the login nor an outage of the
/// service.
fn denied(order: &ServiceRequest, why: &str) -> Failure {
    let url = &order.url;
    Failure::failed(format!("the sandbox of this run lets no request through to the service at {url}"))
        .hint(why)
}

/// Returns the beginning of a response as one line.
async fn words(answer: Response<ResponseBody>) -> String {
    let bytes = answer.into_body().up_to(WORDS_BYTES).await;
    String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn connect(to: &Uri, proxy: Option<&Uri>) -> io::Result<Box<dyn Stream>> {
    let (host, port) = host_and_port(to)?;
    let is_encrypted = to.scheme_str() == Some("https");
    let stream: Box<dyn Stream> = match proxy {
        None => Box::new(TcpStream::connect((host, port)).await?),
        Some(proxy) => {
            let near = TcpStream::connect(host_and_port(proxy)?).await?;
            if is_encrypted {
                Box::new(tunnel(near, &format!("{host}:{port}")).await?)
            } else {
                Box::new(near)
            }
        }
    };
    if !is_encrypted {
        return Ok(stream);
    }
    let config = trusted().map_err(io::Error::other)?;
    Ok(Box::new(http_client::encrypted(host, config, stream).await?))
}

/// Opens a tunnel through a proxy (RFC 9110, section 9.3.6).
async fn tunnel(near: TcpStream, target: &str) -> io::Result<impl Stream + use<>> {
    let request = Request::connect(target).header(header::HOST, target);
    let request = request.body(Empty::<Bytes>::new()).map_err(io::Error::other)?;
    let mut answer = http_client::send(near, request).await.map_err(io::Error::other)?;
    if is_denied(&answer) {
        return Err(io::Error::other(DeniedByProxy(words(answer).await)));
    }
    if answer.status() != StatusCode::OK {
        return Err(io::Error::other(format!("the proxy does not connect to {target}: {}", answer.status())));
    }
    Ok(TokioIo::new(hyper::upgrade::on(&mut answer).await.map_err(io::Error::other)?))
}

fn host_and_port(uri: &Uri) -> io::Result<(&str, u16)> {
    let host = uri.host().ok_or_else(|| io::Error::other(format!("`{uri}` names no host")))?;
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    Ok((host, uri.port_u16().unwrap_or(usual)))
}

/// Returns the proxy for a host, from the variables described in curl(1).
fn proxy_of(uri: &Uri, env: impl Fn(&str) -> Option<String>) -> Option<Uri> {
    let either = |name: &str| env(name).or_else(|| env(&name.to_ascii_lowercase()));
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    let without = either("NO_PROXY").unwrap_or_default();
    let is_named = |name: &str| {
        let name = name.trim().trim_start_matches('.');
        name == "*" || name == host || (!name.is_empty() && host.ends_with(&format!(".{name}")))
    };
    if without.split(',').any(is_named) {
        return None;
    }
    let variable = if uri.scheme_str() == Some("https") { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    either(variable).or_else(|| either("ALL_PROXY"))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn only_a_refusal_with_the_header_of_the_proxy_is_a_denial() {
        for (status, header, expected) in [
            (403, Some(DENIED), true),
            (403, None, false),
            (401, Some(DENIED), false),
            (200, Some(DENIED), false),
        ] {
            let mut answer = Response::new(());
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            if let Some(name) = header {
                answer.headers_mut().insert(name, HeaderValue::from_static("host"));
            }
            assert_eq!(is_denied(&answer), expected, "{status} {header:?}");
        }
    }

    #[test]
    fn a_proxy_is_used_for_all_hosts_but_those_that_are_named() {
        let proxy = |uri: &str, without: &str| {
            let env = |name: &str| match name {
                "HTTPS_PROXY" | "http_proxy" => Some("http://127.0.0.1:3128".to_owned()),
                "NO_PROXY" => Some(without.to_owned()),
                _ => None,
            };
            proxy_of(&uri.parse().unwrap(), env).is_some()
        };
        assert!(proxy("https://a.example/", "") && proxy("http://a.example/", "localhost,127.0.0.1,::1"));
        assert!(!proxy("http://127.0.0.1:9/", "localhost,127.0.0.1,::1") && !proxy("https://[::1]/", "::1"));
        assert!(!proxy("https://b.a.example/", " .a.example") && proxy("https://ba.example/", "a.example"));
        assert!(!proxy("https://a/", "*"));
        assert!(proxy_of(&"https://a/".parse().unwrap(), |_| None).is_none());
    }
}
