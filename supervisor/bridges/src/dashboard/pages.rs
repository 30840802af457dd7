//! Responses with the files of the dashboard: compressed if the browser accepts it, and empty if the browser's copy is
//! current.
//!
//! Only these public files are compressed. A reply of the API may contain texts of other people beside secrets, and the
//! length of its compressed form would show if a text repeats a secret (BREACH).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};

use super::assets::{self, Asset};
use super::shell;

/// Page that accepts a sign-in link.
pub(super) const OPEN: &str = "open.html";
/// Files that this page loads without a session.
pub(super) const FREE: [&str; 3] = ["open.js", "open.css", "icon.svg"];
/// Value of `cache-control` for a file whose path contains its version.
const FIXED: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

/// Returns the response with a file, or the response that the browser's copy is current. Returns none for an unknown
/// file, or for a path with another version.
pub(super) fn file(path: &str, asked: &HeaderMap) -> Option<Response> {
    let (name, is_fixed) = shell::unversioned(path)?;
    if !is_name(name) {
        return None;
    }
    let mut response = reply(&assets::get(name)?, content_type(name), asked);
    if is_fixed {
        response.headers_mut().insert(header::CACHE_CONTROL, FIXED);
    }
    Some(response)
}

/// Returns the response with the page for an address, if the address has a page.
pub(super) fn page(uri: &Uri, asked: &HeaderMap) -> Option<Response> {
    Some(reply(&shell::shell(uri)?, "text/html; charset=utf-8", asked))
}

/// Makes a response of public bytes. Secrets must not be compressed, because the length would reveal them.
fn reply(asset: &Asset, content_type: &'static str, asked: &HeaderMap) -> Response {
    let gzip = asset.gzip.as_ref().filter(|_| takes_gzip(asked));
    let tag = asset.tag(gzip.is_some());
    let shown = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = shown
        .flat_map(|value| value.split(','))
        .any(|shown| shown.trim().strip_prefix("W/").unwrap_or(shown.trim()) == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
        (kind, Body::from(gzip.unwrap_or(&asset.bytes).clone())).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if gzip.is_some() && !is_known {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Returns true if a client accepts gzip (RFC 9110, section 12.5.3). Without the header, it accepts no compression.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let values = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut of_all = false;
    for coding in values.flat_map(|value| value.split(',')) {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let is_taken =
            weight.trim().strip_prefix("q=").and_then(thousandths).is_some_and(|weight| weight > 0);
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return is_taken,
            "*" => of_all = is_taken,
            _ => {}
        }
    }
    of_all
}

/// Parses a weight (RFC 9110, section 12.4.2) from 0 to 1 with up to three decimals, in thousandths. Returns none for
/// other forms of numbers, such as a sign, an exponent, `inf` or `NaN`.
fn thousandths(weight: &str) -> Option<u16> {
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match (whole, format!("{fraction:0<3}").parse().ok()?) {
        ("0", part) => Some(part),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// Returns true if a relative path is valid for a file, and does not lead out of the directory.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && part.chars().all(is_plain))
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_page() {
        for name in ["open.js", "js/pages/board.js", "css/theme.css", "a_b-c.2.js"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            "/",
            "..",
            "../mod.rs",
            "js/../../mod.rs",
            "js//app.js",
            "/etc/passwd",
            ".hidden",
            "js/.git/x",
            "a%2e%2e",
            "a\\b",
            "a b",
            "a\0b",
            "é.js",
            "js/",
        ] {
            assert!(!is_name(name) && file(name, &HeaderMap::new()).is_none(), "{name:?}");
        }
        assert!(file("../mod.rs", &HeaderMap::new()).is_none());
    }

    #[test]
    fn a_file_that_the_browser_has_is_not_sent_again() {
        let first = file(OPEN, &HeaderMap::new()).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        let mut asked = HeaderMap::new();
        asked.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(file(OPEN, &asked).unwrap().status(), StatusCode::NOT_MODIFIED);
        asked.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"x\""));
        assert_eq!(file(OPEN, &asked).unwrap().status(), StatusCode::OK);
        for name in FREE {
            assert!(file(name, &HeaderMap::new()).is_some(), "{name}");
        }
    }

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_file_is_compressed_for_those_who_take_it() {
        let plain = file("js/app.js", &HeaderMap::new()).unwrap();
        assert_eq!(plain.headers()[header::VARY], "accept-encoding");
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let asked = headers(&[(header::ACCEPT_ENCODING, "gzip, deflate, br, zstd")]);
        let sent = file("js/app.js", &asked).unwrap();
        assert_eq!(sent.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(sent.headers()[header::CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(sent.headers()[header::VARY], "accept-encoding");
        let tag = &sent.headers()[header::ETAG];
        assert_ne!(tag, plain.headers()[header::ETAG], "the bytes are others");
        let again =
            headers(&[(header::ACCEPT_ENCODING, "gzip"), (header::IF_NONE_MATCH, tag.to_str().unwrap())]);
        let again = file("js/app.js", &again).unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[header::ETAG], tag);
        assert!(!again.headers().contains_key(header::CONTENT_ENCODING));
        let page = page(&Uri::from_static("/board"), &asked).unwrap();
        assert_eq!(page.headers()[header::CONTENT_ENCODING], "gzip");
    }

    #[test]
    fn gzip_is_sent_to_whom_it_is_acceptable() {
        for (codings, is_taken) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("x-gzip", true),
            ("*", true),
            ("*;q=0, gzip", true),
            ("identity", false),
            ("gzip;q=0", false),
            ("gzip;q=0, *", false),
            ("gzip;q=0.000", false),
            ("gzip;q=x", false),
            ("gzip; q=1.000", true),
            ("gzip;q=0.001", true),
            ("gzip;q=0.", false),
            ("gzip;q=inf", false),
            ("gzip;q=NaN", false),
            ("gzip;q=1e9", false),
            ("gzip;q=+1", false),
            ("gzip;q=1.5", false),
            ("gzip;q=0.0001", false),
            ("gzip;q=2", false),
            ("gzip;q=-0.5", false),
            ("gzip;q=", false),
            ("deflate", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(&headers(&[(header::ACCEPT_ENCODING, codings)])), is_taken, "{codings}");
        }
    }

    #[test]
    fn a_file_of_a_version_is_kept_without_asking_again() {
        let shell = shell::shell(&Uri::from_static("/board")).unwrap();
        let shell = String::from_utf8(shell.bytes.to_vec()).unwrap();
        let link = shell.split("src=\"/assets/").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(link.starts_with('@'), "{link}");
        let fixed = file(link, &HeaderMap::new()).unwrap();
        assert_eq!(fixed.headers()[header::CACHE_CONTROL], FIXED);
        let name = link.split_once('/').unwrap().1;
        assert!(!file(name, &HeaderMap::new()).unwrap().headers().contains_key(header::CACHE_CONTROL));
        assert!(file(&format!("@0123456789abcdef/{name}"), &HeaderMap::new()).is_none());
    }
}
