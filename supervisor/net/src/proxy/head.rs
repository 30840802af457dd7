//! Reads the head of a request to the proxy within limits, and finds the server that it is for.

use std::io;
use std::time::Duration;

use policies::{BrokerHost, HostError, Target};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Limit on a head, in bytes.
pub(super) const LONGEST: usize = 16 << 10;
/// Limit on the number of headers.
pub(super) const HEADERS: usize = 100;
/// Time limit for a head.
pub(super) const TIME: Duration = Duration::from_secs(10);
/// Default port of a host in a request over TLS.
const TLS: u16 = 443;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    /// Host and port.
    pub(super) target: Target,
    pub(super) kind: RequestKind,
    /// Input after the head of a tunnel; for other requests all of it, including the head.
    pub(super) rest: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Tunnel,
    /// A single plain request.
    Clear,
    /// A request for the target's broker.
    Brokered,
}

/// Reason why no request was read.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeadError {
    #[error("the client has gone")]
    Gone(#[from] io::Error),
    /// The head took too long.
    #[error("the head of the request did not come within {} seconds", TIME.as_secs())]
    Slow,
    /// The head is too long.
    #[error("the head of the request is longer than {LONGEST} bytes, or has more than {HEADERS} headers")]
    Long,
    /// The input is no HTTP request.
    #[error("the request is malformed")]
    Malformed,
    /// The request addresses a server, not a proxy.
    #[error("this is a proxy: it takes CONNECT host:port and requests for http://host/path")]
    NoProxyRequest,
    /// The request has no valid host.
    #[error("the request names no host: {0}")]
    Host(#[from] HostError),
    /// The end of the body is ambiguous.
    #[error("the request has a length and a transfer encoding")]
    Framing,
    /// The request names another host than its tunnel.
    #[error("the request is not for the host of its tunnel")]
    OtherHost,
}

impl HeadError {
    /// Returns the status line of the response.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::Slow => "408 Request Timeout",
            Self::Long => "431 Request Header Fields Too Large",
            Self::OtherHost => "421 Misdirected Request",
            Self::Gone(_) | Self::Malformed | Self::NoProxyRequest | Self::Host(_) | Self::Framing => {
                "400 Bad Request"
            }
        }
    }
}

pub(super) async fn read(client: &mut (impl AsyncRead + Unpin)) -> Result<RequestHead, HeadError> {
    whole(client, parse).await
}

/// Reads the head of a request inside a terminated tunnel, with the input after it.
pub(super) async fn read_inside(
    client: &mut (impl AsyncRead + Unpin),
    target: &Target,
) -> Result<Vec<u8>, HeadError> {
    whole(client, |bytes| parse_inside(bytes, target)).await
}

/// Reads until the head is complete.
async fn whole<T>(
    client: &mut (impl AsyncRead + Unpin),
    parse: impl Fn(&[u8]) -> Result<Option<T>, HeadError>,
) -> Result<T, HeadError> {
    let read = async {
        let mut bytes = Vec::with_capacity(1024);
        loop {
            if client.read_buf(&mut bytes).await? == 0 {
                return Err(HeadError::Gone(io::ErrorKind::UnexpectedEof.into()));
            }
            if let Some(head) = parse(&bytes)? {
                return Ok(head);
            }
            if bytes.len() >= LONGEST {
                return Err(HeadError::Long);
            }
        }
    };
    tokio::time::timeout(TIME, read).await.unwrap_or(Err(HeadError::Slow))
}

/// Parses a head and returns its length; none if it is incomplete.
fn parse_within_limits<'b>(
    head: &mut httparse::Request<'_, 'b>,
    bytes: &'b [u8],
) -> Result<Option<usize>, HeadError> {
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError::Long),
        Err(_) => return Err(HeadError::Malformed),
    };
    if length > LONGEST {
        return Err(HeadError::Long);
    }
    check_framing(head.headers)?;
    Ok(Some(length))
}

/// Parses a head; none if it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<RequestHead>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let Some(length) = parse_within_limits(&mut head, bytes)? else { return Ok(None) };
    let (Some(method), Some(path)) = (head.method, head.path) else { return Err(HeadError::Malformed) };
    if method == "CONNECT" {
        let rest = bytes.get(length..).unwrap_or_default().to_vec();
        return Ok(Some(RequestHead { target: Target::parse(path, None)?, kind: RequestKind::Tunnel, rest }));
    }
    if let Some((target, _)) = brokered(path) {
        return Ok(Some(RequestHead { target, kind: RequestKind::Brokered, rest: bytes.to_vec() }));
    }
    let (target, path) = absolute(path)?;
    // A program that contacts this server through itself means the server, and no port of the host.
    if target.is_own_proxy() {
        let (target, _) = brokered(&path).ok_or(HeadError::NoProxyRequest)?;
        return Ok(Some(RequestHead { target, kind: RequestKind::Brokered, rest: bytes.to_vec() }));
    }
    Ok(Some(RequestHead { target, kind: RequestKind::Clear, rest: bytes.to_vec() }))
}

/// Checks the head of a request inside a tunnel; none if it is incomplete.
pub(super) fn parse_inside(bytes: &[u8], target: &Target) -> Result<Option<Vec<u8>>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    if parse_within_limits(&mut head, bytes)?.is_none() {
        return Ok(None);
    }
    // A request for a proxy names a host in its target.
    if !head.path.is_some_and(|path| path.starts_with('/')) {
        return Err(HeadError::Malformed);
    }
    let mut named = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let (Some(host), None) = (named.next(), named.next()) else { return Err(HeadError::OtherHost) };
    let host = std::str::from_utf8(host.value).map_err(|_| HeadError::OtherHost)?;
    match Target::parse(host.trim(), Some(TLS)) {
        Ok(named) if named == *target => Ok(Some(bytes.to_vec())),
        Ok(_) | Err(_) => Err(HeadError::OtherHost),
    }
}

/// Splits `/host/path`, as the brokers' variables have it; none if the path begins with no host.
pub(super) fn brokered(path: &str) -> Option<(Target, String)> {
    let path = path.strip_prefix('/')?;
    let end = path.find(['/', '?', '#']).unwrap_or(path.len());
    let (host, rest) = path.split_at(end);
    let target = host.parse::<BrokerHost>().ok()?.target().clone();
    Some((target, if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") }))
}

/// Splits `http://host:port/path`.
fn absolute(uri: &str) -> Result<(Target, String), HeadError> {
    let scheme = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = scheme.and_then(|scheme| uri.get(scheme.len()..)).ok_or(HeadError::NoProxyRequest)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = Target::parse(authority, Some(80))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((target, path))
}

/// Refuses a request whose end is ambiguous.
fn check_framing(headers: &[httparse::Header<'_>]) -> Result<(), HeadError> {
    let count = |name| headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
    let (counted, encoded) = (count("content-length"), count("transfer-encoding"));
    if counted > 1 || (counted > 0 && encoded > 0) { Err(HeadError::Framing) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<(String, Option<String>, String)>, String> {
        let request = parse(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(request.map(|request| {
            let clear = match request.kind {
                RequestKind::Tunnel => None,
                RequestKind::Brokered => Some("brokered".to_owned()),
                RequestKind::Clear => Some("clear".to_owned()),
            };
            (request.target.to_string(), clear, String::from_utf8(request.rest).unwrap())
        }))
    }

    #[test]
    fn a_tunnel_has_a_target_and_what_was_sent_ahead() {
        let text = "CONNECT Api.Example:443 HTTP/1.1\r\nHost: other\r\n\r\n\x16hello";
        assert_eq!(parsed(text), Ok(Some(("api.example:443".into(), None, "\x16hello".into()))));
        assert_eq!(parsed("CONNECT api.example:443 HTTP/1.1\r\nHo"), Ok(None));
    }

    #[test]
    fn a_request_in_the_clear_names_its_host_in_its_target_and_is_kept_whole() {
        for (uri, target) in [
            ("HTTP://Api.Example:8080/a?b=c", "api.example:8080"),
            ("http://[::1]?q", "[::1]:80"),
            ("http://api.example", "api.example:80"),
        ] {
            let text = format!("POST {uri} HTTP/1.1\r\nHost: internal\r\nContent-Length: 2\r\n\r\nhi");
            assert_eq!(parsed(&text), Ok(Some((target.into(), Some("clear".into()), text.clone()))), "{uri}");
        }
    }

    #[test]
    fn a_request_for_a_broker_names_its_host_first_in_the_path_and_is_kept_whole() {
        for (uri, target) in [
            ("/api.example/v1?a=b", "api.example:443"),
            ("/API.example.:8443", "api.example:8443"),
            ("http://127.0.0.1:3128/api.example/v1", "api.example:443"),
            ("http://localhost:3128/api.example/v1", "api.example:443"),
            ("/api.example/../b.example/x", "api.example:443"),
        ] {
            let text = format!("POST {uri} HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi");
            assert_eq!(
                parsed(&text),
                Ok(Some((target.into(), Some("brokered".into()), text.clone()))),
                "{uri}"
            );
        }
        for (path, passed_on) in [
            ("/a.example", "/"),
            ("/a.example?x=/y", "/?x=/y"),
            ("/a.example//b.example/x", "//b.example/x"),
            ("/a.example/../x", "/../x"),
        ] {
            assert_eq!(brokered(path).unwrap().1, passed_on, "{path}");
        }
        for path in
            ["/", "//a.example/", "/a@b.example/", "/[::1]/", "/../a.example/", "a.example", "/a b/", "/*/"]
        {
            assert_eq!(brokered(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_no_request_to_a_proxy_is_refused() {
        for (text, error) in [
            ("GET / HTTP/1.1\r\n\r\n", "this is a proxy"),
            ("GET https://api.example/ HTTP/1.1\r\n\r\n", "this is a proxy"),
            ("GET http://127.0.0.1:3128/ HTTP/1.1\r\n\r\n", "this is a proxy"),
            ("CONNECT api.example HTTP/1.1\r\n\r\n", "its port"),
            ("CONNECT :443 HTTP/1.1\r\n\r\n", "no host"),
            ("GET http://user@api.example/ HTTP/1.1\r\n\r\n", "no host"),
            (
                "GET http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "a length and",
            ),
            ("POST /a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "a length and"),
            ("GET http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "a length and"),
            ("\x16\x03\x01\x02\r\n\r\n", "malformed"),
        ] {
            let refused = parsed(text).expect_err(text);
            assert!(refused.contains(error), "{text}: {refused}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_bounded_in_bytes_and_in_time() {
        let long = format!("GET http://a/ HTTP/1.1\r\nX: {}", "x".repeat(LONGEST));
        assert!(matches!(read(&mut long.as_bytes()).await, Err(HeadError::Long)));
        let many = format!("GET http://a/ HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(HEADERS + 1));
        assert!(matches!(read(&mut many.as_bytes()).await, Err(HeadError::Long)));
        let (mut client, _server) = tokio::io::duplex(64);
        assert!(matches!(read(&mut client).await, Err(HeadError::Slow)));
        assert!(matches!(read(&mut &b"GET"[..]).await, Err(HeadError::Gone(_))));
    }
}
