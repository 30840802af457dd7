//! The files of the page, in the binary. A debug build reads them from the source tree, so that a change is seen by loading the page again.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rust_embed::RustEmbed;

/// The files of `page/`.
#[derive(Debug, RustEmbed)]
#[folder = "src/dashboard/page"]
struct Files;

/// The page of every path.
pub(super) const SHELL: &str = "index.html";
/// The page that takes a link.
pub(super) const OPEN: &str = "open.html";
/// What that page loads, before there is a session.
pub(super) const FREE: [&str; 3] = ["open.js", "open.css", "icon.svg"];

/// Returns a file, or that the browser has it already; none where there is no such file.
pub(super) fn file(name: &str, asked: &HeaderMap) -> Option<Response> {
    if !is_name(name) {
        return None;
    }
    let found = Files::get(name)?;
    let tag = format!("\"{}\"", hex::encode(&found.metadata.sha256_hash()[..16]));
    let shown = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = shown
        .flat_map(|value| value.split(','))
        .any(|shown| shown.trim().strip_prefix("W/").unwrap_or(shown.trim()) == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let bytes: Bytes = found.data.into_owned().into();
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)))];
        (kind, Body::from(bytes)).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Some(response)
}

/// Whether a name can be that of a file: no way leads out of the directory.
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
}
