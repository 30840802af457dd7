//! Hosts that a policy names for its proxy, in one normal form for the policy and for the requests of a worker.
//!
//! Names are compared as the WHATWG URL standard normalizes them: lower case, IDNA as punycode, no trailing dot. A text
//! that the standard reads as an IPv4 address (`0x7f.1`, `2130706433`) is that address and never a name. Without the
//! feature `idna`, which has the tables of Unicode, only names in their normal form are read. Policies that this library
//! wrote have no others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::egress::PROXY_PORT;

/// Default ports of a host.
const USUAL_PORTS: [u16; 2] = [80, 443];
/// Longest name in the domain name system, in bytes (RFC 1035).
const LONGEST: usize = 253;

/// Host that a policy names: `api.example.org:443`, `*.example.org`, `10.0.0.0/8:8080`, `[::1]:8080`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostRule {
    what: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum HostPattern {
    /// The host of this name, without its subdomains.
    Name(String),
    /// All names that end with a dot and this name.
    Beneath(String),
    /// All addresses that share this number of leading bits with the address.
    Block(IpAddr, u8),
}

/// Host and port for which a worker asks its proxy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// Name or address of the host.
    pub host: Host,
    pub port: u16,
}

/// Name or address of a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Name in lower case, without a final dot.
    Name(String),
    /// Address. An IPv4 address in the form of an IPv6 address becomes the IPv4 address.
    Address(IpAddr),
}

/// Reason why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The text is empty.
    #[error("it names no host")]
    Empty,
    /// The text is no name of the domain name system.
    #[error("it is not the name or the address of a host")]
    Name,
    /// The text is a URL, or a part of one.
    #[error(
        "it is written as HOST or HOST:PORT, without a scheme and without a path, as in `api.example.org:443`"
    )]
    Url,
    /// The port is invalid.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// A wildcard stands in another place than at the beginning.
    #[error("`*` stands only in front of a name, as in `*.example.org`; mode = \"host\" opens every host")]
    Wildcard,
    /// The number of bits is invalid.
    #[error("the number behind `/` is not a number of bits of the address")]
    Bits,
}

impl FromStr for Host {
    type Err = HostError;

    /// Reads a name, or an address with or without brackets.
    fn from_str(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        if text.contains('*') {
            return Err(HostError::Wildcard);
        }
        let host = from_any_form(text)?;
        match &host {
            Self::Name(name) if !has_lengths_of_a_name(name) => Err(HostError::Name),
            Self::Name(_) | Self::Address(_) => Ok(host),
        }
    }
}

/// Reads a name in any form that a URL may have it in.
#[cfg(feature = "idna")]
fn from_any_form(text: &str) -> Result<Host, HostError> {
    match url::Host::parse(text) {
        Ok(url::Host::Ipv4(address)) => Ok(Host::Address(address.into())),
        Ok(url::Host::Ipv6(address)) => Ok(Host::Address(IpAddr::from(address).to_canonical())),
        Ok(url::Host::Domain(name)) => Ok(Host::Name(name.strip_suffix('.').unwrap_or(&name).to_owned())),
        Err(_) => Err(HostError::Name),
    }
}

#[cfg(not(feature = "idna"))]
fn from_any_form(text: &str) -> Result<Host, HostError> {
    if is_normal(text) { Ok(Host::Name(text.to_owned())) } else { Err(HostError::Name) }
}

/// Returns true for a name in its normal form: a URL would have it as it is. Labels of punycode are not decoded.
#[cfg(any(test, not(feature = "idna")))]
pub(crate) fn is_normal(name: &str) -> bool {
    let in_names = |byte: u8| {
        byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && !b"#%/:<>?@[\\]^|".contains(&byte)
    };
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.bytes().all(in_names) && !is_number
}

fn has_lengths_of_a_name(name: &str) -> bool {
    name.len() <= LONGEST && name.split('.').all(|part| (1..=63).contains(&part.len()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Writes the target as a policy names it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Target {
    /// Returns true for an address of the run's own proxy, which leads to no other host. The proxy is at the same place in
    /// each run.
    pub fn is_own_proxy(&self) -> bool {
        let is_loopback = match &self.host {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => {
                [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].contains(address)
            }
        };
        is_loopback && self.port == PROXY_PORT
    }

    /// Reads `host:port`. Without a port, the port is `usual`; the text is refused if `usual` is none.
    ///
    /// # Errors
    /// Names the invalid part of the text.
    pub fn parse(text: &str, usual: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split(text)?;
        let port = port.or(usual).ok_or(HostError::Port)?;
        Ok(Self { host: host.parse()?, port })
    }
}

/// Splits a port from a host. Colons in brackets, and in an IPv6 address without brackets, belong to the host.
fn split(text: &str) -> Result<(&str, Option<u16>), HostError> {
    if text.contains("://") {
        return Err(HostError::Url);
    }
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (_, after) = rest.split_once(']').ok_or(HostError::Name)?;
        let host = text.strip_suffix(after).unwrap_or(text);
        match after.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if after.is_empty() => (host, None),
            None => return Err(HostError::Name),
        }
    } else if text.matches(':').count() > 1 {
        (text, None)
    } else {
        text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
    };
    // Digits only, because Rust also parses a sign.
    let number = |port: &str| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let wrong = if port.contains('/') { HostError::Url } else { HostError::Port };
        port.parse::<u16>().ok().filter(|port| digits && *port > 0).ok_or(wrong)
    };
    Ok((host, port.map(number).transpose()?))
}

impl FromStr for HostRule {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let (host, port) = split(text)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let what = if let Some((address, bits)) = bare.split_once('/') {
            let address = address.parse::<IpAddr>().map_err(|_| HostError::Url)?.to_canonical();
            let bits = bits.parse::<u8>().map_err(|_| HostError::Bits)?;
            if bits > width(address) {
                return Err(HostError::Bits);
            }
            HostPattern::Block(address, bits)
        } else if let Some(parent) = host.strip_prefix("*.") {
            match parent.parse()? {
                Host::Name(name) => HostPattern::Beneath(name),
                Host::Address(_) => return Err(HostError::Wildcard),
            }
        } else {
            match host.parse()? {
                Host::Name(name) => HostPattern::Name(name),
                Host::Address(address) => HostPattern::Block(address, width(address)),
            }
        };
        Ok(Self { what, port })
    }
}

impl TryFrom<String> for HostRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error: HostError| format!("`{text}` is not a host of a policy: {error}"))
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Beneath(name) => write!(f, "*.{name}")?,
            HostPattern::Block(address, bits) if *bits == width(*address) => {
                Host::Address(*address).fmt(f)?;
            }
            HostPattern::Block(IpAddr::V4(address), bits) => write!(f, "{address}/{bits}")?,
            HostPattern::Block(IpAddr::V6(address), bits) => write!(f, "[{address}/{bits}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl HostRule {
    /// Returns true if a worker may ask for the target.
    fn permits(&self, target: &Target) -> bool {
        self.names(&target.host)
            && self.port.map_or(USUAL_PORTS.contains(&target.port), |port| port == target.port)
    }

    fn names(&self, host: &Host) -> bool {
        match (&self.what, host) {
            (HostPattern::Name(own), Host::Name(name)) => own == name,
            (HostPattern::Beneath(parent), Host::Name(name)) => {
                name.strip_suffix(parent.as_str()).is_some_and(|front| front.ends_with('.'))
            }
            (HostPattern::Block(first, bits), Host::Address(address)) => begins_like(*address, *first, *bits),
            (HostPattern::Name(_) | HostPattern::Beneath(_), Host::Address(_))
            | (HostPattern::Block(..), Host::Name(_)) => false,
        }
    }
}

/// Returns true if a policy with these rules lets a worker connect to the target: a name by itself or by a wildcard, an
/// address by itself or by its block. The caller checks the addresses to which a name resolves.
pub(crate) fn permit<'a>(rules: impl IntoIterator<Item = &'a HostRule>, target: &Target) -> bool {
    rules.into_iter().any(|rule| rule.permits(target))
}

/// Returns true if one of these rules names the host, on any port.
pub(crate) fn name<'a>(rules: impl IntoIterator<Item = &'a HostRule>, host: &Host) -> bool {
    rules.into_iter().any(|rule| rule.names(host))
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn begins_like(address: IpAddr, first: IpAddr, bits: u8) -> bool {
    let bits_of = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => Ipv6Addr::to_bits(v6),
    };
    let differ = bits_of(address) ^ bits_of(first);
    address.is_ipv4() == first.is_ipv4() && (bits == 0 || differ >> (128 - u32::from(bits)) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_host_is_permitted_by_its_name_its_wildcard_or_its_address_and_by_its_port() {
        let policy = [
            "api.anthropic.com:443",
            "*.Example.ORG.",
            "bücher.example",
            "10.0.0.0/8:8080",
            "[fd00::/8]:8080",
            "127.0.0.1:9000",
            "[::1]:9000",
            "plain",
        ]
        .map(rule);
        for (target, is_permitted) in [
            ("api.anthropic.com:443", true),
            ("API.Anthropic.COM.:443", true),
            ("api.anthropic.com:80", false),
            ("api.anthropic.com.evil.test:443", false),
            ("xapi.anthropic.com:443", false),
            ("a.example.org:443", true),
            ("a.b.example.org:80", true),
            ("a.example.org:8443", false),
            ("example.org:443", false),
            (".example.org:443", false),
            ("badexample.org:443", false),
            ("xn--bcher-kva.example:443", true),
            ("BÜCHER.example:443", true),
            ("b\u{fc}cher\u{3002}example:443", true),
            ("10.1.2.3:8080", true),
            ("0x0a.1.2.3:8080", true),
            ("[::ffff:10.1.2.3]:8080", true),
            ("10.1.2.3:443", false),
            ("11.1.2.3:8080", false),
            ("[fd12::1]:8080", true),
            ("[fe80::1]:8080", false),
            ("127.0.0.1:9000", true),
            ("2130706433:9000", true),
            ("127.0.0.2:9000", false),
            ("localhost:9000", false),
            ("[::1]:9000", true),
            ("plain:80", true),
        ] {
            let permitted = Target::parse(target, None).is_ok_and(|target| permit(&policy, &target));
            assert_eq!(permitted, is_permitted, "{target}");
        }
    }

    #[test]
    #[cfg(feature = "idna")]
    fn a_name_is_normal_if_a_url_has_it_as_it_is() {
        for text in [
            "api.example.org",
            "API.example.org",
            "api.example.org.",
            "plain",
            "a_b.example",
            "-a-.example",
            "a,b;c=d!$&'()+~`{}\"",
            "xn--bcher-kva.example",
            "b\u{fc}cher.example",
            "b\u{fc}cher\u{3002}example",
            "a.b1",
            "a.1b",
            "a.1",
            "a.0x",
            "a.0x1f",
            "a.0xg",
            "1.2.3.256",
            "2130706433",
            "0x7f.1",
            "",
            "a b",
            "a%20b",
            "a\u{7f}b",
            "user@example.org",
            "a#b",
            "a?b",
            "a/b",
            "a\\b",
            "a^b",
            "a|b",
            "a<b",
            "a>b",
            "a:b",
            "a[b",
            "a]b",
        ] {
            let is_same = from_any_form(text) == Ok(Host::Name(text.to_owned()));
            assert_eq!(is_normal(text), is_same, "{text}");
        }
        for name in (0..=u8::MAX).map(|byte| format!("a{}b", char::from(byte))) {
            assert_eq!(is_normal(&name), from_any_form(&name) == Ok(Host::Name(name.clone())), "{name:?}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_with_the_reason() {
        for (text, error) in [
            ("", HostError::Empty),
            (":443", HostError::Empty),
            ("*", HostError::Wildcard),
            ("*.", HostError::Empty),
            ("a.*.org", HostError::Wildcard),
            ("*example.org", HostError::Wildcard),
            ("*.127.0.0.1", HostError::Wildcard),
            ("host:0", HostError::Port),
            ("host:+80", HostError::Port),
            ("host:65536", HostError::Port),
            ("host:", HostError::Port),
            ("10.0.0.0/33", HostError::Bits),
            ("10.0.0.0/x", HostError::Bits),
            ("example.org/8", HostError::Url),
            ("example.org:443/v1", HostError::Url),
            ("http://example.org", HostError::Url),
            ("https://a.b/c", HostError::Url),
            ("a b", HostError::Name),
            ("user@example.org", HostError::Name),
            ("a..b", HostError::Name),
            ("1.2.3.256", HostError::Name),
            ("[::1", HostError::Name),
            ("[::1]x", HostError::Name),
        ] {
            assert_eq!(text.parse::<HostRule>(), Err(error), "{text}");
        }
        assert_eq!(format!("{}.org", "a".repeat(300)).parse::<HostRule>(), Err(HostError::Name));
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in
            ["api.example.org:443", "*.example.org", "10.0.0.0/8:1", "[fd00::/8]", "[::1]:8080", "1.2.3.4"]
        {
            assert_eq!(rule(text).to_string(), text);
            assert_eq!(rule(&rule(text).to_string()), rule(text));
            assert_eq!(serde_json::to_value(rule(text)).unwrap(), text);
        }
        assert_eq!(rule("1.2.3.4/32").to_string(), "1.2.3.4", "a block of one address");
    }

    #[test]
    fn the_proxy_of_a_run_has_its_address_in_whatever_form() {
        for (target, is_own) in [
            ("127.0.0.1:3128", true),
            ("2130706433:3128", true),
            ("[::ffff:127.0.0.1]:3128", true),
            ("[::1]:3128", true),
            ("LOCALHOST.:3128", true),
            ("127.0.0.1:3129", false),
            ("127.0.0.2:3128", false),
            ("proxy.example:3128", false),
        ] {
            assert_eq!(Target::parse(target, None).unwrap().is_own_proxy(), is_own, "{target}");
        }
    }

    #[test]
    fn a_target_has_a_port_or_gets_the_usual_one() {
        assert_eq!(Target::parse("example.org", None), Err(HostError::Port));
        assert_eq!(Target::parse("example.org", Some(80)).unwrap().to_string(), "example.org:80");
        assert_eq!(Target::parse("[::1]:9", Some(80)).unwrap().to_string(), "[::1]:9");
        assert_eq!(Target::parse("fd00::1", Some(80)).unwrap().to_string(), "[fd00::1]:80");
    }
}
