//! Brokers: hosts that a run addresses without TLS at its own proxy, which adds a header with a secret and connects to
//! the host over TLS. The run never has the secret.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::egress::PROXY_PORT;
use crate::hosts::{Host, HostError, Target};
use crate::network::Mode;
use crate::secrets::Secret;

/// Default port of a host.
const USUAL_PORT: u16 = 443;
/// Value of a key's variable, for programs that do not start without one.
pub(crate) const NO_KEY: &str = "key-of-the-broker";

/// A header that the proxy of a run adds to the requests for one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Broker {
    /// The host, with its port if that is not 443.
    pub host: BrokerHost,
    /// The header with the secret. If a run sends headers of that name, the proxy removes them.
    pub header: HeaderName,
    /// Text before the secret in the header, such as `Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Token>,
    /// Secret that the proxy puts into the request.
    pub secret: Secret,
    /// True if a run starts without the broker when the secret is missing.
    #[serde(default)]
    pub optional: bool,
    /// The variable that makes the program connect to the proxy instead of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url_env: Option<String>,
    /// Path that the proxy adds to the host, such as `/v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_url_path: String,
    /// The variable of a key without which the program does not start. Its value is a placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
}

/// Host and port of a service that a broker serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct BrokerHost(Target);

impl BrokerHost {
    /// Returns the address that the proxy connects to.
    pub fn target(&self) -> &Target {
        &self.0
    }
}

impl FromStr for BrokerHost {
    type Err = HostError;

    /// Reads a host as a policy and the first part of a request's path have it.
    fn from_str(text: &str) -> Result<Self, HostError> {
        let target = Target::parse(text, Some(USUAL_PORT))?;
        match target.host {
            // A path has no brackets.
            Host::Address(address) if address.is_ipv6() => Err(HostError::Name),
            Host::Address(_) | Host::Name(_) => Ok(Self(target)),
        }
    }
}

impl TryFrom<String> for BrokerHost {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<BrokerHost> for String {
    fn from(host: BrokerHost) -> Self {
        host.to_string()
    }
}

/// Writes the host as the path and the header `Host` have it.
impl fmt::Display for BrokerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Target { host, port: USUAL_PORT } => write!(f, "{host}"),
            target => write!(f, "{target}"),
        }
    }
}

/// A token of HTTP (RFC 9110, section 5.6.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Token(String);

impl TryFrom<String> for Token {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_of_it = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if !text.is_empty() && text.len() <= 64 && text.bytes().all(is_of_it) {
            Ok(Self(text))
        } else {
            Err("it is not a word of HTTP: letters, digits and `-`".to_owned())
        }
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a header, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HeaderName(Token);

/// Headers that frame or route a message. A secret in one of them would change its meaning.
const OF_THE_MESSAGE: [&str; 8] =
    ["connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

impl TryFrom<String> for HeaderName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let token = Token::try_from(text.to_ascii_lowercase())?;
        if OF_THE_MESSAGE.contains(&token.0.as_str()) {
            return Err(format!("the header `{token}` is of the message itself and has no secret"));
        }
        Ok(Self(token))
    }
}

impl From<HeaderName> for String {
    fn from(name: HeaderName) -> Self {
        name.0.into()
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Broker {
    /// Returns the defects of a policy's brokers.
    pub(crate) fn defect_of(brokers: &[Self], has_proxy: bool) -> Option<String> {
        if let Some(defect) = brokers.iter().find_map(Broker::defect) {
            return Some(defect);
        }
        if brokers.iter().any(|broker| !broker.base_url_path.is_empty() && broker.base_url_env.is_none()) {
            return Some("`base_url_path` means nothing without `base_url_env`".to_owned());
        }
        (!brokers.is_empty() && !has_proxy)
            .then(|| "a broker is a part of the proxy: it needs [network] mode = \"proxy\"".to_owned())
    }

    /// Returns the address at which a run reaches the host, without [`Broker::base_url_path`].
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{PROXY_PORT}/{}", self.host)
    }

    /// Returns the address with the path that programs expect behind the host.
    pub fn base_url(&self) -> String {
        format!("{}{}", self.url(), self.base_url_path)
    }

    /// Returns the text in front of the secret in the header.
    pub fn prefix(&self) -> String {
        self.scheme.as_ref().map(|scheme| format!("{scheme} ")).unwrap_or_default()
    }

    /// Returns the variables by which a run finds the broker.
    fn variables(&self) -> impl Iterator<Item = &String> {
        self.base_url_env.iter().chain(&self.key_env)
    }

    /// Returns the defect of the broker itself; none if there is none.
    pub fn defect(&self) -> Option<String> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if let Some(name) = self.variables().find(|name| !is_name(name)) {
            return Some(format!("`{name}` is not the name of a variable"));
        }
        let is_reserved =
            |name: &&String| crate::environment::is_reserved(name, Mode::Proxy) || *name == "PATH";
        if let Some(name) = self.variables().find(is_reserved) {
            return Some(format!("`{name}` is set by the supervisor for each run"));
        }
        let path = &self.base_url_path;
        let is_of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if !(path.is_empty() || (path.starts_with('/') && path.bytes().all(is_of_path))) {
            return Some(format!("`{path}` is not a path such as `/v1`"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::policy::Policy;

    const PROXY: &str = "version = 1\n[network]\nmode = 'proxy'\n";

    fn read(lines: &str) -> Result<Policy, String> {
        let text = format!("{PROXY}[[broker]]\nheader = 'X-Api-Key'\nsecret = 'key'\n{lines}");
        Policy::from_toml(&text, Path::new("p.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_broker_is_found_by_its_host_in_whatever_form_and_has_variables() {
        let policy = read(
            "host = 'Api.Example'\nbase_url_env = 'API_URL'\nbase_url_path = '/v1'\nkey_env = 'API_KEY'\nscheme = 'Bearer'",
        )
        .unwrap();
        let found = |text: &str| {
            let target = Target::parse(text, None).unwrap();
            policy.brokers_of(&target).map(|broker| format!("{} {}", broker.header, broker.prefix())).next()
        };
        assert_eq!(found("API.example.:443").as_deref(), Some("x-api-key Bearer "));
        assert_eq!((found("api.example:80"), found("b.example:443")), (None, None));
        let own = policy.broker_environment();
        assert_eq!(own["API_URL"], "http://127.0.0.1:3128/api.example/v1");
        assert_eq!(own["API_KEY"], "key-of-the-broker");
        assert_eq!(
            read("host = '10.0.0.1:8443'").unwrap().broker[0].url(),
            "http://127.0.0.1:3128/10.0.0.1:8443"
        );
    }

    #[test]
    fn a_broker_is_written_as_it_is_read() {
        let policy = read("host = '10.0.0.1:8443'\nscheme = 'Bearer'").unwrap();
        let written = serde_json::to_value(&policy.broker[0]).unwrap();
        let part = |name: &str| written[name].as_str().unwrap().to_owned();
        assert_eq!(
            (part("host"), part("header"), part("scheme")),
            ("10.0.0.1:8443".to_owned(), "x-api-key".to_owned(), "Bearer".to_owned())
        );
    }

    #[test]
    fn what_could_not_be_so_is_refused_with_the_reason() {
        for (lines, why) in [
            ("host = 'a b'", "not the name or the address"),
            ("host = '[::1]:443'", "not the name or the address"),
            ("host = '*.example'", "`*` stands only"),
            ("host = 'a'\nbase_url_env = 'HTTP_PROXY'", "`HTTP_PROXY` is set by the supervisor"),
            ("host = 'a'\nkey_env = 'A-B'", "not the name of a variable"),
            ("host = 'a'\nbase_url_env = 'A'\nbase_url_path = 'v1'", "not a path"),
            ("host = 'a'\nbase_url_path = '/v1'", "without `base_url_env`"),
            ("host = 'a'\nscheme = 'a b'", "not a word of HTTP"),
            ("host = 'a'\nvalue = 'sk-1'", "unknown field"),
        ] {
            let error = read(lines).unwrap_err();
            assert!(error.contains(why), "{lines}: {error}");
        }
        for header in ["Host", "transfer-encoding", "a:b", ""] {
            let text = format!("{PROXY}[[broker]]\nhost = 'a'\nheader = '{header}'\nsecret = 'k'");
            assert!(Policy::from_toml(&text, Path::new("p.toml")).is_err(), "{header}");
        }
        let text = "version = 1\n[[broker]]\nhost = 'a'\nheader = 'b'\nsecret = 'c'";
        let error = Policy::from_toml(text, Path::new("p.toml")).unwrap_err().to_string();
        assert!(error.contains("p.toml:2 (broker)") && error.contains("mode = \"proxy\""), "{error}");
    }
}
