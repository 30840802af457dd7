//! `[a2a]`: profiles to which other agents may send work over the A2A protocol, and the agents that may do so.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hyper::Uri;
use kernel::{BoardName, Profile, Tenant};
use policies::Secret;
use serde::Deserialize;

/// Limit on the number of senders.
const MOST_SENDERS: usize = 100;

/// Offered profiles and their senders. `listen` is read when a daemon starts; the rest is reloaded on SIGHUP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct A2aConfig {
    /// Address at which the daemon listens; none disables A2A.
    pub listen: Option<SocketAddr>,
    /// URL in the agent cards; `http://` and `listen` if absent.
    pub url: Option<String>,
    /// Profiles that the cards offer.
    pub profiles: Vec<Profile>,
    /// Limit on the requests of one sender per minute.
    pub per_minute: u32,
    /// Senders of work, by name.
    pub senders: BTreeMap<String, A2aSender>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct A2aSender {
    /// Bearer token.
    pub secret: Secret,
    /// Tenant of the sender's tasks.
    pub tenant: Tenant,
    /// Board of the sender's tasks.
    #[serde(default)]
    pub board: BoardName,
    /// Offered profiles that the sender may use; all if absent.
    pub profiles: Option<Vec<Profile>>,
}

impl Default for A2aConfig {
    fn default() -> Self {
        A2aConfig { listen: None, url: None, profiles: Vec::new(), per_minute: 120, senders: BTreeMap::new() }
    }
}

impl A2aConfig {
    /// Returns the address of the A2A service, without a slash at its end.
    pub fn base(&self) -> String {
        match (&self.url, self.listen) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(at)) => format!("http://{at}"),
            (None, None) => String::new(),
        }
    }

    /// Returns true if a `Host` header names this service: by the URL in the cards, or by the IP address of `listen` with
    /// any port, because the port of a tunnel may differ. The request of a page that uses DNS rebinding has the name of that
    /// page's host and is refused.
    pub fn is_served_as(&self, host: &str) -> bool {
        let base_url = self.url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        if let Some(named) = base_url.as_ref().and_then(Uri::authority) {
            let bare = match base_url.as_ref().and_then(Uri::scheme_str) {
                Some("https") => named.as_str().strip_suffix(":443"),
                _ => named.as_str().strip_suffix(":80"),
            };
            if [Some(named.as_str()), bare].into_iter().flatten().any(|own| host.eq_ignore_ascii_case(own)) {
                return true;
            }
        }
        let Some(at) = self.listen else { return false };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => name,
            Some(_) | None => host,
        };
        match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => address == at.ip() || at.ip().is_unspecified(),
            Err(_) => {
                (at.ip().is_loopback() || at.ip().is_unspecified()) && name.eq_ignore_ascii_case("localhost")
            }
        }
    }

    /// Returns the profiles to which a sender may send work.
    pub fn offered<'a>(&'a self, sender: &'a A2aSender) -> impl Iterator<Item = &'a Profile> {
        self.profiles.iter().filter(|profile| match &sender.profiles {
            Some(own) => own.contains(profile),
            None => true,
        })
    }

    /// Returns the reason why the section is unusable, with a remedy.
    pub(super) fn unusable(&self) -> Option<String> {
        if let Some(url) = &self.url {
            let uri = url.parse::<Uri>().ok();
            let is_http =
                |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
            if !uri.as_ref().is_some_and(|uri| is_http(uri) && uri.authority().is_some()) {
                return Some(format!(
                    "a2a.url = \"{url}\" is not an address; write https://HOST or https://HOST/PATH"
                ));
            }
        }
        if self.per_minute == 0 {
            return Some(
                "a2a.per_minute is 0, so nobody could ask for anything; set it to 1 or more".to_owned(),
            );
        }
        if self.senders.len() > MOST_SENDERS {
            return Some(format!("[a2a.senders] has more than {MOST_SENDERS} senders"));
        }
        for (name, sender) in &self.senders {
            let is_name = !name.is_empty()
                && name.len() <= 32
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            if !is_name {
                return Some(format!(
                    "a2a.senders.{name}: a name consists of lower-case letters, digits and `-`, 32 at most"
                ));
            }
            let unknown = sender.profiles.iter().flatten().find(|profile| !self.profiles.contains(profile));
            if let Some(profile) = unknown {
                return Some(format!(
                    "a2a.senders.{name}.profiles names {profile}, which a2a.profiles does not offer"
                ));
            }
        }
        if self.listen.is_none() {
            let is_used = self.url.is_some() || !self.profiles.is_empty() || !self.senders.is_empty();
            return is_used.then(|| {
                "[a2a] has no `listen`, so nothing is offered; write listen = \"127.0.0.1:8460\"".to_owned()
            });
        }
        if self.profiles.is_empty() {
            return Some("[a2a] offers no profile; write profiles = [\"NAME\"]".to_owned());
        }
        self.senders.is_empty().then(|| {
            "[a2a] has no sender, so nobody could send work; write [a2a.senders.NAME] with `secret` and `tenant`".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<A2aConfig, String> {
        let config: A2aConfig = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        config.unusable().map_or(Ok(config), Err)
    }

    #[test]
    fn a_service_has_the_names_of_its_cards_and_of_its_listener_and_no_other() {
        let served = |listen: &str, url: Option<&str>, host: &str| {
            let config = A2aConfig {
                listen: Some(listen.parse().unwrap()),
                url: url.map(str::to_owned),
                ..A2aConfig::default()
            };
            config.is_served_as(host)
        };
        let public = Some("https://Agents.example.org/a");
        for (listen, url, host) in [
            ("127.0.0.1:8460", None, "127.0.0.1:8460"),
            ("127.0.0.1:8460", None, "LOCALHOST:8460"),
            ("[::1]:8460", None, "[::1]:8460"),
            ("0.0.0.0:8460", None, "192.0.2.7:8460"),
            ("[::]:8460", None, "[2001:db8::1]:8460"),
            ("127.0.0.1:8460", None, "127.0.0.1"),
            ("127.0.0.1:8460", None, "127.0.0.1:9000"),
            ("127.0.0.1:8460", public, "agents.example.org"),
            ("127.0.0.1:8460", Some("https://a.example:443"), "a.example"),
            ("127.0.0.1:8460", public, "127.0.0.1:8460"),
        ] {
            assert!(served(listen, url, host), "{listen} {url:?} {host}");
        }
        for (listen, url, host) in [
            ("127.0.0.1:8460", None, ""),
            ("127.0.0.1:8460", None, "rebound.example.org:8460"),
            ("0.0.0.0:8460", None, "rebound.example.org:8460"),
            ("127.0.0.1:8460", None, "127.0.0.1.example.org"),
            ("127.0.0.1:8460", None, "192.0.2.7:8460"),
            ("192.0.2.7:8460", None, "localhost:8460"),
            ("127.0.0.1:8460", public, "agents.example.org:8460"),
        ] {
            assert!(!served(listen, url, host), "{listen} {url:?} {host}");
        }
    }

    #[test]
    fn a_bridge_has_an_address_profiles_and_senders_and_what_is_missing_is_named() {
        let sender = "[senders.partner]\nsecret = 'partner-token'\ntenant = 'acme'\n";
        let whole = read(&format!("listen = '127.0.0.1:8460'\nprofiles = ['writer']\n{sender}")).unwrap();
        assert_eq!(whole.base(), "http://127.0.0.1:8460");
        assert_eq!(whole.offered(&whole.senders["partner"]).count(), 1);
        for (text, why) in [
            ("", None),
            ("profiles = ['writer']", Some("has no `listen`")),
            ("listen = '127.0.0.1:1'", Some("offers no profile")),
            ("listen = '127.0.0.1:1'\nprofiles = ['a']", Some("has no sender")),
            ("listen = '127.0.0.1:1'\nurl = 'ftp://a'", Some("is not an address")),
            ("per_minute = 0", Some("is 0")),
            (
                "listen = '127.0.0.1:1'\nprofiles = ['a']\n[senders.A]\nsecret = 's'\ntenant = 't'",
                Some("a name consists of lower-case letters"),
            ),
            (
                "listen = '127.0.0.1:1'\nprofiles = ['a']\n[senders.b]\nsecret = 's'\ntenant = 't'\nprofiles = ['c']",
                Some("names c, which a2a.profiles does not offer"),
            ),
        ] {
            let read = read(text);
            match why {
                None => assert!(read.is_ok(), "{text}"),
                Some(why) => {
                    assert!(read.as_ref().is_err_and(|message| message.contains(why)), "{text}: {read:?}");
                }
            }
        }
    }
}
