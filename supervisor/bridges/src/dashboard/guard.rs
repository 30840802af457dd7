//! Access checks of the dashboard: host, origin and session of a request, and the security headers of a response.
//!
//! See decision 0171.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::response::Response;

use base::exit::Code;
use base::failure::Failure;
use setup::browsers::{Browsers, Session};
use setup::config::dashboard::DashboardConfig;

/// Header with the key of a session.
pub(super) const KEY: &str = "x-supervisor-dashboard";
/// Size limit of a secret that is checked, in bytes.
const LONGEST: usize = 128;
/// Limit on the cookies of one name that are checked.
const COOKIES: usize = 8;

/// Content security policy of the page.
const PAGE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types markdown";
/// Content security policy of an API response that is opened as a page: nothing is permitted.
const DATA: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseKind {
    Page,
    Asset,
    Data,
}

/// Refuses a request under another name than the dashboard's, or from a page of another origin. Returns the origin.
pub(super) fn check_origin(
    config: &DashboardConfig,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<String, Failure> {
    let refused = |why: String| Err(Failure::new(Code::NotPermitted, why));
    let Some(host) = only(headers, &header::HOST) else {
        return refused("the request names no host, or several".to_owned());
    };
    let Some(expected) = config.origin(host) else {
        let named: String = host.chars().take(80).collect();
        return Err(Failure::new(
            Code::NotPermitted,
            format!("the dashboard is not served under the name {named}"),
        )
        .hint(format!(
            "open it as {}; a tunnel forwards the same port: ssh -L {}:{} HOST",
            config.base(),
            config.listen.port(),
            config.listen
        )));
    };
    // A request to a proxy names its host in the request line as well.
    if uri.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host)) {
        return refused("the request names two hosts".to_owned());
    }
    let writes = !matches!(*method, Method::GET | Method::HEAD);
    match (headers.contains_key(header::ORIGIN), only(headers, &header::ORIGIN)) {
        (true, Some(origin)) if origin == expected => {}
        (false, _) if !writes => {}
        (true, _) => return refused("the request comes from a page of another origin".to_owned()),
        (false, _) => return refused("the request changes something and names no origin".to_owned()),
    }
    Ok(expected)
}

/// Refuses a request from a page of another site or port, if the browser names the site.
pub(super) fn check_site(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get("sec-fetch-site").map(|value| value.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Failure::new(Code::NotPermitted, "the request comes from a page of another site")),
    }
}

/// Returns the sessions of a request's cookies. There may be several if a server on another port has set cookies of the
/// same name.
pub(super) fn by_cookie(browsers: &Browsers, headers: &HeaderMap, browser: u32) -> Vec<Arc<Session>> {
    let name = browsers.cookie_name();
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let shown = pairs.filter(|(own, value)| *own == name && value.len() <= LONGEST).take(COOKIES);
    shown.filter_map(|(_, value)| browsers.by_cookie(value, browser)).collect()
}

/// Returns the session key of a request.
pub(super) fn key(headers: &HeaderMap) -> Option<&str> {
    only(headers, &HeaderName::from_static(KEY)).filter(|key| key.len() <= LONGEST)
}

/// Makes the refusal of a request without a session.
pub(super) fn no_session() -> Failure {
    Failure::new(Code::NoSession, "this browser has no session, or it has ended")
        .hint("get a link with: supervisor dashboard")
}

/// Returns the only value of a header; none if it has several.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

/// Adds the security headers of a response.
pub(super) fn with_rules(mut response: Response, kind: ResponseKind) -> Response {
    let headers = response.headers_mut();
    let csp = if kind == ResponseKind::Data { DATA } else { PAGE };
    let rules = [
        (header::CONTENT_SECURITY_POLICY, csp),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in rules {
        headers.insert(name, HeaderValue::from_static(value));
    }
    match kind {
        // Browsers revalidate it by its ETag each time, unless its path contains its version.
        ResponseKind::Asset => {
            let caching = HeaderValue::from_static("private, no-cache");
            headers.entry(header::CACHE_CONTROL).or_insert(caching);
        }
        ResponseKind::Page | ResponseKind::Data => {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_page_of_the_dashboard_itself_is_answered() {
        let config = DashboardConfig::default();
        let own = "http://127.0.0.1:8470";
        let check = |method: &Method, pairs: &[(&'static str, &str)]| {
            check_origin(&config, method, &Uri::from_static("/x"), &headers(pairs))
                .map_err(|failure| failure.message)
        };
        let host = ("host", "127.0.0.1:8470");
        let elsewhere = Uri::from_static("http://evil.example.org/x");
        assert!(check_origin(&config, &Method::GET, &elsewhere, &headers(&[host])).is_err());
        assert_eq!(check(&Method::GET, &[host]).as_deref(), Ok(own));
        assert_eq!(check(&Method::POST, &[host, ("origin", own)]).as_deref(), Ok(own));
        for (method, pairs) in [
            (Method::GET, vec![]),
            (Method::GET, vec![host, host]),
            (Method::GET, vec![("host", "rebound.example.org:8470")]),
            (Method::GET, vec![host, ("origin", "http://evil.example.org")]),
            (Method::POST, vec![host]),
            (Method::DELETE, vec![host, ("origin", "null")]),
            (Method::POST, vec![host, ("origin", "http://127.0.0.1:9999")]),
            (Method::POST, vec![host, ("origin", "http://localhost:8470")]),
            (Method::POST, vec![host, ("origin", "https://127.0.0.1:8470")]),
            (Method::POST, vec![host, ("origin", own), ("origin", own)]),
            (Method::POST, vec![host, ("origin", "http://127.0.0.1:8470.evil.example.org")]),
        ] {
            assert!(check(&method, &pairs).is_err(), "{method} {pairs:?}");
        }
    }

    #[test]
    fn a_browser_that_says_that_another_site_asks_is_believed() {
        for (site, is_let_in) in
            [("same-origin", true), ("none", true), ("same-site", false), ("cross-site", false), ("x", false)]
        {
            assert_eq!(check_site(&headers(&[("sec-fetch-site", site)])).is_ok(), is_let_in, "{site}");
        }
        assert!(check_site(&HeaderMap::new()).is_ok(), "an old one does not say it");
    }
}
