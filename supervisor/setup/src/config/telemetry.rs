//! `[telemetry]`: destination of traces.

use std::fmt;

use hyper::Uri;
use serde::Deserialize;

/// Destination of traces. Reloaded on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Collector; none disables traces.
    pub otlp_endpoint: Option<Endpoint>,
}

/// Address of a collector that speaks OTLP over HTTP: `http://host:4318`, optionally with a path prefix for
/// `/v1/traces`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Endpoint(Uri);

/// Error: the text is not the address of a collector.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not the address of a collector: write http://HOST:PORT; a local collector can forward spans elsewhere, over TLS too"
)]
pub struct NoEndpoint(String);

impl TryFrom<String> for Endpoint {
    type Error = NoEndpoint;

    fn try_from(text: String) -> Result<Self, NoEndpoint> {
        let uri: Option<Uri> = text.parse().ok();
        let is_plain = |uri: &Uri| {
            uri.scheme_str() == Some("http")
                && uri.host().is_some_and(|host| !host.is_empty())
                && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
                && uri.query().is_none()
        };
        uri.filter(is_plain).map(Endpoint).ok_or(NoEndpoint(text))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Endpoint {
    /// Returns the host name or address, without brackets.
    pub fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns the port; 4318, the port of OTLP over HTTP, by default.
    pub fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(4318)
    }

    /// Returns the value of the `Host` header.
    pub fn authority(&self) -> &str {
        self.0.authority().map_or("", |authority| authority.as_str())
    }

    /// Returns the path to which traces are posted.
    pub fn path(&self) -> String {
        format!("{}/v1/traces", self.0.path().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Result<Endpoint, NoEndpoint> {
        text.to_owned().try_into()
    }

    #[test]
    fn a_collector_is_named_by_its_address() {
        let plain = endpoint("http://127.0.0.1:4318").unwrap();
        assert_eq!((plain.host(), plain.port(), plain.path().as_str()), ("127.0.0.1", 4318, "/v1/traces"));
        let other = endpoint("http://[::1]/otlp/").unwrap();
        assert_eq!((other.host(), other.port(), other.path().as_str()), ("::1", 4318, "/otlp/v1/traces"));
        for text in
            ["", "127.0.0.1:4318", "https://a", "http://", "http://a?x=y", "http://me:pw@a:1", "http:///x"]
        {
            assert!(endpoint(text).is_err(), "{text}");
        }
    }
}
