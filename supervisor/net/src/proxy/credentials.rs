//! Removes headers and parameters that identify the caller or disguise the request. None of them reaches a host with a
//! broker, because only the broker may identify the caller. With a key of another account, a worker could send data to
//! that account. A worker that changes the method or path behind the proxy could bypass the accounting.
//!
//! Only the letters and digits of names are compared, because servers do not distinguish `x_api_key`, `X-Api-Key` and
//! `xApiKey`.
//!
//! See decision 0104.

/// Names of headers and parameters that contain a credential.
const NAMES: [&str; 12] = [
    "auth",
    "bearer",
    "cookie",
    "cookie2",
    "credential",
    "credentials",
    "jwt",
    "key",
    "passwd",
    "pwd",
    "sig",
    "ticket",
];
/// Suffixes of such names.
const ENDS: [&str; 11] = [
    "accesskey",
    "accesskeyid",
    "apikey",
    "authkey",
    "authorization",
    "credential",
    "password",
    "secret",
    "signature",
    "subscriptionkey",
    "token",
];
/// Names with such a suffix that contain a position in a paged list and no credential.
const OF_PAGES: [&str; 4] = ["continuationtoken", "nextpagetoken", "nexttoken", "pagetoken"];
/// Names that override the method or the address of a request.
const OVERRIDES: [&str; 10] = [
    "httpmethod",
    "httpmethodoverride",
    "xforwardedhost",
    "xforwardedprefix",
    "xhttpmethod",
    "xhttpmethodoverride",
    "xmethodoverride",
    "xoriginalmethod",
    "xoriginalurl",
    "xrewriteurl",
];
/// Names of headers in which a proxy reports the original client, host, path or certificate to a server. The server would
/// believe a worker's claims in them, as if they came from a proxy. Parameters with such names have other purposes and are kept.
const OF_PROXIES: [&str; 16] = [
    "cfconnectingip",
    "clientip",
    "forwarded",
    "forwardedfor",
    "remoteaddr",
    "remoteuser",
    "trueclientip",
    "via",
    "xclientip",
    "xclusterclientip",
    "xhost",
    "xrealip",
    "xremoteaddr",
    "xremoteip",
    "xremoteuser",
    "xwebauthuser",
];
/// Prefixes of further such names, as in `X-Forwarded-For`, `X-Original-URL`, `X-Envoy-External-Address`,
/// `X-SSL-Client-Cert` and `X-Auth-Request-User`.
const OF_PROXIES_BEGIN: [&str; 8] = [
    "sslclient",
    "xauthrequest",
    "xclientcert",
    "xenvoy",
    "xforwarded",
    "xoriginal",
    "xoriginating",
    "xsslclient",
];

/// Returns true if parameters and headers of this name are removed.
fn is_credential(name: &str) -> bool {
    let plain = plain(name);
    let has_credential = NAMES.contains(&plain.as_str()) || ENDS.iter().any(|end| plain.ends_with(end));
    // Frameworks read the parameter `_method` as the method.
    let is_override = OVERRIDES.contains(&plain.as_str()) || name.eq_ignore_ascii_case("_method");
    (has_credential && !OF_PAGES.contains(&plain.as_str())) || is_override
}

/// Returns true if headers of this name are removed.
pub(super) fn is_withheld_header(name: &str) -> bool {
    let plain = plain(name);
    let is_of_proxies =
        OF_PROXIES.contains(&plain.as_str()) || OF_PROXIES_BEGIN.iter().any(|begin| plain.starts_with(begin));
    is_credential(name) || is_of_proxies
}

/// Returns the path without the parameters that are removed.
pub(super) fn without_credentials(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    // Some servers also separate parameters at `;`.
    let is_kept =
        |pair: &&str| !is_credential(&decoded(pair.split_once('=').map_or(*pair, |(name, _)| name)));
    let kept: Vec<&str> = query.split(['&', ';']).filter(is_kept).collect();
    if kept.len() == query.split(['&', ';']).count() {
        return format!("{path}?{query}");
    }
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

/// Returns the letters and digits of a name in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns a name without percent encoding, which a server may decode up to three times.
fn decoded(name: &str) -> String {
    let mut name = name.to_owned();
    for _ in 0..3 {
        let once = percent_encoding::percent_decode_str(&name).decode_utf8_lossy().into_owned();
        if once == name {
            break;
        }
        name = once;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_says_who_asks_stays_however_it_is_written() {
        for name in [
            "Authorization",
            "authorization",
            "X-Api-Key",
            "x_api_key",
            "xApiKey",
            "api-key",
            "apikey",
            "key",
            "access_token",
            "accessToken",
            "Private-Token",
            "X-Goog-Api-Key",
            "Cookie",
            "X-Amz-Security-Token",
            "x-amz-signature",
            "AWSAccessKeyId",
            "client_secret",
            "Ocp-Apim-Subscription-Key",
            "token",
            "X-HTTP-Method-Override",
            "x_http_method_override",
            "_method",
            "X-Original-URL",
            "auth",
            "password",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in [
            "anthropic-version",
            "anthropic-beta",
            "openai-beta",
            "idempotency-key",
            "user-agent",
            "accept",
            "alt",
            "pageToken",
            "page_token",
            "max_tokens",
            "session_id",
            "x-stainless-os",
            "method",
            "q",
            "x-goog-api-client",
            "content-encoding",
            "monkey",
        ] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn what_a_proxy_says_of_a_request_is_no_word_of_the_worker() {
        for name in [
            "Forwarded",
            "forwarded",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Forwarded-Port",
            "X-Forwarded-Prefix",
            "X_Forwarded_Client_Cert",
            "X-Original-URL",
            "X-Original-Method",
            "X-Original-Forwarded-For",
            "X-Originating-IP",
            "Via",
            "X-Real-IP",
            "X-Client-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "X-Host",
            "X-SSL-Client-Cert",
            "X-Remote-User",
            "X-Auth-Request-Email",
            "Authorization",
            "X-HTTP-Method-Override",
        ] {
            assert!(is_withheld_header(name), "{name}");
        }
        for name in
            ["viaduct", "x-request-id", "x-stainless-os", "origin", "referer", "user-agent", "x-client-name"]
        {
            assert!(!is_withheld_header(name), "{name}");
        }
        assert_eq!(without_credentials("/v1?via=air&forwarded=1"), "/v1?via=air&forwarded=1");
    }

    #[test]
    fn parameters_that_say_who_asks_are_taken_out_of_a_path_and_all_else_is_as_it_was() {
        for (path, expected) in [
            ("/v1?alt=sse&key=mine", "/v1?alt=sse"),
            ("/v1?key=mine", "/v1"),
            ("/v1?k%65y=mine&a=b%26key=c", "/v1?a=b%26key=c"),
            ("/v1?k%2565y=mine&a=1", "/v1?a=1"),
            ("/v1?a=1;access_token=mine;b=2", "/v1?a=1&b=2"),
            ("/v1?a=1?key=x&KEY", "/v1?a=1?key=x"),
            ("/v1?a=1;b=2", "/v1?a=1;b=2"),
            ("/v1?", "/v1?"),
            ("/key", "/key"),
            ("/v1?pageToken=3&&x", "/v1?pageToken=3&&x"),
        ] {
            assert_eq!(without_credentials(path), expected, "{path}");
        }
    }
}
