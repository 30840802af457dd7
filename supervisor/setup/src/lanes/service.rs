//! Service of a lane whose worker is an HTTP request: the table `[service]` of the lane's file, and its additions to
//! the policy of the runs.

use std::collections::BTreeMap;

use hyper::Uri;
use hyper::header::HeaderValue;
use policies::{Additions, Broker, BrokerHost, HeaderName, HostRule, Secret, Target, Token};
use serde::{Deserialize, Serialize};

/// Variable that directs the request to the proxy, which adds the key of the service.
pub const BY_BROKER: &str = "SERVICE_URL";

/// Table `[service]` of a lane's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceFile {
    url: String,
    secret: Option<Secret>,
    header: Option<HeaderName>,
    scheme: Option<Token>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Parameters of the request, passed to the worker as `{service}`. Free of secrets: header values refer to variables
/// of the run as `${NAME}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Address.
    pub url: String,
    /// Headers in addition to the usual ones.
    pub headers: BTreeMap<String, String>,
}

impl ServiceFile {
    /// Reads the table, and adds the host and the key of the service to the additions of the policy.
    ///
    /// # Errors
    /// Key of the table and the defect.
    pub(super) fn read(self, brings: &mut Additions) -> Result<Service, (&'static str, String)> {
        let uri = address(&self.url).map_err(|why| ("url", format!("`{}` {why}", self.url)))?;
        let place = host_and_port(&uri);
        let rule: HostRule = place.parse().map_err(|e| ("url", format!("`{place}`: {e}")))?;
        brings.hosts.insert(rule);
        if let Some(secret) = self.secret {
            if !is_encrypted(&uri) {
                let message = "the proxy adds it over TLS alone, so the url has to begin with https://; for a service on this host name \
                               the secret in [secrets], and its variable in `headers`";
                return Err(("secret", message.to_owned()));
            }
            let host: BrokerHost = place.parse().map_err(|e| ("url", format!("`{place}`: {e}")))?;
            let bearer = || Token::try_from("Bearer".to_owned()).ok();
            let usual = || HeaderName::try_from("authorization".to_owned());
            // A custom header holds the key alone, unless the file sets a scheme.
            let scheme = if self.header.is_some() { self.scheme } else { self.scheme.or_else(bearer) };
            let header = self.header.map_or_else(usual, Ok).map_err(|why| ("header", why))?;
            brings.brokers.push(Broker {
                host,
                header,
                scheme,
                secret,
                optional: false,
                base_url_env: Some(BY_BROKER.to_owned()),
                base_url_path: String::new(),
                key_env: None,
            });
        } else if self.header.is_some() || self.scheme.is_some() {
            let message = "it changes nothing without `secret`; other headers stand in [service.headers]";
            return Err((if self.header.is_some() { "header" } else { "scheme" }, message.to_owned()));
        }
        let mut headers = BTreeMap::new();
        for (name, value) in self.headers {
            let name =
                HeaderName::try_from(name.clone()).map_err(|why| ("headers", format!("`{name}`: {why}")))?;
            if HeaderValue::from_str(&value).is_err() {
                return Err(("headers", format!("the value of `{name}` has characters that no header has")));
            }
            headers.insert(name.to_string(), value);
        }
        Ok(Service { url: self.url, headers })
    }
}

impl Service {
    /// Returns the host of the service.
    pub(super) fn target(&self) -> Option<Target> {
        let uri: Uri = self.url.parse().ok()?;
        Target::parse(&host_and_port(&uri), None).ok()
    }

    pub(super) fn text(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

/// Returns the host of an address, with its port.
fn host_and_port(uri: &Uri) -> String {
    let port = uri.port_u16().unwrap_or(if is_encrypted(uri) { 443 } else { 80 });
    format!("{}:{port}", uri.host().unwrap_or_default())
}

/// Returns true if the transport is encrypted.
fn is_encrypted(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

fn address(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|e| format!("is not the address of a service: {e}"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
            Err("has a user or a password, which everybody could read: name it as `secret`".to_owned())
        }
        (Some("http" | "https"), Some(_)) => Ok(uri),
        _ => Err("does not begin with https://HOST or http://HOST".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Service, Additions), String> {
        let file: ServiceFile = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        let mut brings = Additions::default();
        let service = file.read(&mut brings).map_err(|(key, why)| format!("{key}: {why}"))?;
        Ok((service, brings))
    }

    #[test]
    fn the_host_of_a_service_is_reached_and_its_key_is_added_by_the_proxy() {
        let (service, brings) = read(
            "url = 'https://agents.example/run?x=1'\nsecret = 'agents-key'\n[headers]\nx-team = '${TEAM}'",
        )
        .unwrap();
        let hosts: Vec<String> = brings.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["agents.example:443"]);
        let broker = &brings.brokers[0];
        let header_text = format!("{} {}: {}", broker.host, broker.header, broker.prefix());
        assert_eq!(header_text, "agents.example authorization: Bearer ");
        assert_eq!(broker.base_url_env.as_deref(), Some(BY_BROKER));
        assert!(!service.text().contains("agents-key"), "{}", service.text());
        assert_eq!(service.headers["x-team"], "${TEAM}");
        let (_, brings) = read("url = 'https://a.example'\nsecret = 'k'\nheader = 'X-Key'").unwrap();
        assert_eq!((brings.brokers[0].prefix().as_str(), brings.brokers[0].scheme.is_none()), ("", true));
        let (_, brings) = read("url = 'http://127.0.0.1:8080/run'").unwrap();
        assert_eq!(brings.hosts.iter().next().unwrap().to_string(), "127.0.0.1:8080");
        assert!(brings.brokers.is_empty());
    }

    #[test]
    fn what_is_no_service_is_refused_with_the_key_and_the_reason() {
        for (text, why) in [
            ("url = 'ftp://a'", "url: `ftp://a` does not begin with https://HOST"),
            ("url = '/run'", "url: `/run` does not begin with"),
            ("url = 'https://me:pw@a/'", "has a user or a password"),
            ("url = 'http://a'\nsecret = 'k'", "secret: the proxy adds it over TLS alone"),
            ("url = 'https://a'\nheader = 'x-key'", "header: it changes nothing without `secret`"),
            ("url = 'https://a'\nscheme = 'Bearer'", "scheme: it changes nothing without `secret`"),
            ("url = 'https://a'\n[headers]\nx = \"a\\nb\"", "headers: the value of `x`"),
            ("url = 'https://a'\n[headers]\nHost = 'b'", "of the message itself"),
            ("url = 'https://a'\nkey = 'k'", "unknown field `key`"),
            ("header = 'x'", "missing field `url`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
