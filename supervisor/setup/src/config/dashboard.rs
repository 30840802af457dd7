//! `[dashboard]`: address of the dashboard, and initial settings of its page.

use std::net::SocketAddr;

use hyper::Uri;
use kernel::Tenant;
use serde::Deserialize;

/// Address of the dashboard, and initial settings of its page. Reloaded on SIGHUP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the configuration")]
pub struct DashboardConfig {
    /// Allows links and sessions.
    pub enabled: bool,
    /// Loopback address and port that browsers connect to.
    pub listen: SocketAddr,
    /// Address of a reverse proxy with TLS in front of `listen`; empty for none.
    pub(crate) public_url: String,
    /// Tenant in the initial filter of the board; empty for none.
    pub default_tenant: String,
    /// Initially shows running tasks in lanes by profile.
    pub lane_by_profile: bool,
    /// Initially shows archived tasks.
    pub include_archived_by_default: bool,
    /// Renders texts as Markdown; otherwise they are shown unchanged.
    pub render_markdown: bool,
}

impl Default for DashboardConfig {
    fn default() -> Self {
        DashboardConfig {
            enabled: true,
            listen: SocketAddr::from(([127, 0, 0, 1], 8470)),
            public_url: String::new(),
            default_tenant: String::new(),
            lane_by_profile: true,
            include_archived_by_default: false,
            render_markdown: true,
        }
    }
}

impl DashboardConfig {
    /// Returns the base address of links, without a slash at its end.
    pub fn base(&self) -> String {
        match self.public_url.trim_end_matches('/') {
            "" => format!("http://{}", self.listen),
            url => url.to_owned(),
        }
    }

    /// Returns the origin of a page that was requested with this `Host` header; none if the host is not the
    /// dashboard's. This stops DNS rebinding: a browser that a foreign page led here under its own name sends that
    /// name.
    pub fn origin(&self, host: &str) -> Option<String> {
        let public = self.public_url.trim_end_matches('/');
        let authority = public.strip_prefix("https://").unwrap_or_default();
        if !authority.is_empty() && host.eq_ignore_ascii_case(authority.trim_end_matches(":443")) {
            return Some(format!("https://{}", authority.trim_end_matches(":443").to_ascii_lowercase()));
        }
        let port = self.listen.port();
        let addresses = [self.listen.to_string(), format!("localhost:{port}")];
        let is_own = addresses.iter().any(|own| {
            // Browsers omit the default port.
            let bare = own.strip_suffix(":80").filter(|_| port == 80);
            host.eq_ignore_ascii_case(own) || bare.is_some_and(|bare| host.eq_ignore_ascii_case(bare))
        });
        is_own.then(|| format!("http://{}", host.to_ascii_lowercase()))
    }

    /// Returns the reason why the section is unusable, with a remedy.
    pub(super) fn unusable(&self) -> Option<String> {
        let listen = self.listen;
        if !listen.ip().is_loopback() {
            return Some(format!(
                "dashboard.listen = \"{listen}\" is not on loopback, and the dashboard has no TLS of its own; \
                 write listen = \"127.0.0.1:{}\" and put a reverse proxy with TLS before it, named by `public_url` \
                 (`supervisor help docs/dashboard.md`)",
                listen.port()
            ));
        }
        if listen.port() == 0 {
            return Some(
                "dashboard.listen has the port 0, and links need a port that stays; write 127.0.0.1:8470"
                    .to_owned(),
            );
        }
        if !self.default_tenant.is_empty()
            && let Err(error) = self.default_tenant.parse::<Tenant>()
        {
            return Some(format!(
                "dashboard.default_tenant: {error}; write the name of a tenant, or \"\" for all"
            ));
        }
        if self.public_url.is_empty() {
            return None;
        }
        let uri = self.public_url.parse::<Uri>().ok();
        let is_fit = |uri: &Uri| {
            uri.scheme_str() == Some("https")
                && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
                && matches!(uri.path(), "" | "/")
                && uri.query().is_none()
        };
        (!uri.as_ref().is_some_and(is_fit)).then(|| {
            format!(
                "dashboard.public_url = \"{}\" is no address of a reverse proxy; write https://HOST or https://HOST:PORT, \
                 without a path",
                self.public_url
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DashboardConfig, String> {
        let config: DashboardConfig = toml::from_str(text).map_err(|e| e.message().to_owned())?;
        config.unusable().map_or(Ok(config), Err)
    }

    #[test]
    fn what_is_served_beyond_loopback_or_without_tls_is_refused_with_what_to_write() {
        for (text, why) in [
            ("listen = '0.0.0.0:8470'", "is not on loopback"),
            ("listen = '192.168.1.5:8470'", "is not on loopback"),
            ("listen = '[::]:8470'", "is not on loopback"),
            ("listen = '127.0.0.1:0'", "port 0"),
            ("public_url = 'http://fleet.example.org'", "no address of a reverse proxy"),
            ("public_url = 'https://fleet.example.org/board'", "no address of a reverse proxy"),
            ("public_url = 'https://me@fleet.example.org'", "no address of a reverse proxy"),
            ("default_tenant = 'bad name'", "write the name of a tenant"),
            ("public_url = 'fleet'", "no address of a reverse proxy"),
        ] {
            let read = read(text);
            assert!(read.as_ref().is_err_and(|message| message.contains(why)), "{text}: {read:?}");
        }
        assert!(read("listen = '127.0.0.2:80'").is_ok() && read("listen = '[::1]:8470'").is_ok());
    }

    #[test]
    fn a_host_is_one_of_the_listener_or_that_of_the_proxy_and_has_its_own_origin() {
        let config = read("public_url = 'https://Fleet.example.org/'").unwrap();
        assert_eq!(config.base(), "https://Fleet.example.org");
        let origin = |host: &str| config.origin(host);
        assert_eq!(origin("127.0.0.1:8470").as_deref(), Some("http://127.0.0.1:8470"));
        assert_eq!(origin("LOCALHOST:8470").as_deref(), Some("http://localhost:8470"));
        assert_eq!(origin("fleet.example.org").as_deref(), Some("https://fleet.example.org"));
        for host in [
            "",
            "evil.example.org:8470",
            "127.0.0.1",
            "127.0.0.1:8471",
            "localhost",
            "fleet.example.org:8470",
        ] {
            assert_eq!(origin(host), None, "{host}");
        }
        let plain = read("listen = '127.0.0.1:80'").unwrap();
        assert_eq!(plain.origin("localhost").as_deref(), Some("http://localhost"));
        assert_eq!(plain.origin(""), None);
        let six = read("listen = '[::1]:8470'").unwrap();
        assert_eq!(six.origin("[::1]:8470").as_deref(), Some("http://[::1]:8470"));
    }
}
