//! Requests without a session, or from another page, host or address, get nothing.

use std::io::{Read as _, Write as _};

use serde_json::json;

use super::wire::{Browser, Served};
use crate::listeners::all_routes;

/// Paths of the API that the table of routes does not have, or does not have under this name.
const MORE: [(&str, &str); 4] =
    [("GET", "/api/plugins/kanban/board"), ("GET", "/api/v1/nothing"), ("GET", "/api/"), ("GET", "/api")];

#[test]
fn no_route_answers_without_a_session() {
    let served = Served::start("");
    let browser = served.browser(&[]);
    let origin = served.origin();
    let routes = all_routes();
    assert!(routes.len() > 100);
    let table = routes.iter().map(|(method, path)| (method.as_str(), path.as_str()));
    for (method, path) in MORE.into_iter().chain(table) {
        let headers = [("origin", origin.as_str()), ("content-type", "application/json")];
        let said = served.exchange(method, path, &headers, "{}");
        assert_eq!(said.status, 401, "{method} {path}: {said:?}");
        assert_eq!(said.json()["code"], json!("not_permitted"));
    }
    for path in ["/assets/index.html", "/assets/js/app.js", "/assets/open.html"] {
        assert_eq!(served.exchange("GET", path, &[], "").status, 401, "{path}");
    }
    for (path, to) in [
        ("/", "/open"),
        ("/board?q=a", "/open?to=%2fboard%3fq%3da"),
        ("//evil.example.org", "/open?to=%2f%2fevil%2eexample%2eorg"),
    ] {
        let said = served.exchange("GET", path, &[], "");
        assert_eq!((said.status, said.header("location")), (303, Some(to)), "{path}: {said:?}");
    }
    let icon = served.exchange("GET", "/favicon.ico", &[], "");
    assert_eq!(icon.status, 404, "{icon:?}");
    assert!(icon.body.contains("/assets/icon.svg") && !icon.body.contains("task"), "{icon:?}");
    // What a link needs, which has no data.
    for path in ["/open", "/assets/open.js", "/assets/open.css", "/assets/icon.svg"] {
        let said = served.exchange("GET", path, &[], "");
        assert_eq!(said.status, 200, "{path}");
        let policy = said.header("content-security-policy").unwrap();
        assert!(
            policy.contains("script-src 'self'; ") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(said.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(said.header("cross-origin-resource-policy"), Some("same-origin"));
    }
    let page = served.exchange("GET", "/runs/t1/1", &[("cookie", &browser.cookie)], "");
    assert!(page.status == 200 && page.head.contains("text/html"), "{page:?}");
}

#[test]
fn another_host_or_origin_is_refused_with_all_that_a_session_has() {
    let served = Served::start("");
    let browser = served.browser(&[]);
    let own = served.origin();
    let rebound = format!("rebound.example.org:{}", served.port);
    let (origin, evil) = (("origin", own.as_str()), ("origin", "http://evil.example.org"));
    let neighbour = ("origin", "http://127.0.0.1:9");
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("GET", &[("host", &rebound)]),
        ("GET", &[("host", "")]),
        ("GET", &[evil]),
        ("GET", &[neighbour]),
        ("GET", &[("sec-fetch-site", "same-site")]),
        ("GET", &[("sec-fetch-site", "cross-site")]),
        ("POST", &[]),
        ("POST", &[evil]),
        ("POST", &[("origin", "null")]),
        ("POST", &[origin, evil]),
        ("POST", &[origin, ("host", &rebound)]),
        ("OPTIONS", &[evil]),
    ];
    for (method, headers) in cases {
        let mut all = vec![("cookie", browser.cookie.as_str()), ("x-supervisor-dashboard", &browser.key)];
        all.extend_from_slice(headers);
        let path = if *method == "GET" { "/api/v1/board" } else { "/api/v1/verbs/status" };
        let said = served.exchange(method, path, &all, "");
        assert_eq!(said.status, 403, "{method} {headers:?}: {said:?}");
        assert!(said.header("access-control-allow-origin").is_none());
    }
    let local = format!("localhost:{}", served.port);
    let page =
        [("host", local.as_str()), ("cookie", &browser.cookie), ("x-supervisor-dashboard", &browser.key)];
    assert_eq!(served.exchange("GET", "/api/v1/board", &page, "").status, 200);
    // A page of another origin cannot sign anybody in either.
    let code = served.code(&[]);
    for headers in [vec![], vec![evil], vec![origin, ("sec-fetch-site", "cross-site")]] {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(&headers);
        let said = served.exchange("POST", "/session", &all, &json!({ "code": code }).to_string());
        assert_eq!(said.status, 403, "{headers:?}: {said:?}");
    }
    let form = [origin, ("content-type", "text/plain")];
    assert_eq!(served.exchange("POST", "/session", &form, &json!({ "code": code }).to_string()).status, 415);
    assert_eq!(served.show(&code, &[]).status, 201, "the code was not used up by any of it");
}

#[test]
fn what_a_request_brings_beside_its_session_makes_it_nobody_else() {
    let served = Served::start("");
    served.fleet.cli(["tenant", "create", "acme"]).ok();
    let key = std::fs::read_to_string(served.fleet.root().join("operator.key")).unwrap();
    let tenant = served.browser(&["--tenant", "acme"]);
    let (origin, bearer) = (served.origin(), "Basic YTpi".to_owned());
    let headers = [
        ("cookie", tenant.cookie.as_str()),
        ("x-supervisor-dashboard", &tenant.key),
        ("origin", &origin),
        ("content-type", "application/json"),
        ("x-supervisor-key", &key),
        ("authorization", &bearer),
    ];
    let refused = served.exchange("POST", "/api/v1/verbs/reload", &headers, "{}");
    assert_eq!(refused.status, 403, "the operator's key is nothing here: {refused:?}");
    let board = served.exchange("GET", "/api/v1/board", &headers, "");
    assert_eq!(board.status, 200, "what a proxy adds for itself does no harm: {board:?}");
    let upgrade = [headers.as_slice(), &[("upgrade", "websocket")]].concat();
    assert_eq!(served.exchange("GET", "/api/v1/events", &upgrade, "").status, 422);
}

#[test]
fn no_path_leads_out_of_the_page() {
    let served = Served::start("");
    let browser = served.browser(&[]);
    for path in [
        "/assets/../mod.rs",
        "/assets/%2e%2e/mod.rs",
        "/assets/..%2fmod.rs",
        "/assets//etc/passwd",
        "/assets/js/../../mod.rs",
        "/assets/.",
        "/assets/",
        "/assets/open.js%00.css",
        "/assets/page",
    ] {
        let said = served.exchange("GET", path, &[("cookie", &browser.cookie)], "");
        assert_eq!(said.status, 404, "{path}: {said:?}");
    }
}

#[test]
fn a_worker_gets_no_link() {
    let served = Served::start("");
    let id = served.fleet.create("link", "supervisor dashboard; echo \"code $?\"; supervisor complete", &[]);
    served.fleet.wait_for(&id, "done");
    let log = served.fleet.cli(["logs", &id]).ok().stdout;
    assert!(log.contains("code 77") && !log.contains("http://"), "{log}");
    assert!(!served.listens(), "nobody has asked who may");
}

#[test]
fn a_browser_that_does_not_read_is_given_up_and_holds_up_nobody() {
    let served = Served::start("");
    let browser: Browser = served.browser(&[]);
    let head = format!(
        "GET /api/v1/verbs HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncookie: {}\r\nx-supervisor-dashboard: {}\r\n\r\n",
        served.port, browser.cookie, browser.key
    );
    let mut deaf: Vec<_> = (0..40).map(|_| served.connect()).collect();
    for stream in &mut deaf {
        for _ in 0..8 {
            stream.write_all(head.as_bytes()).unwrap();
        }
    }
    assert_eq!(served.ask(&browser, "GET", "/api/v1/board", "").status, 200);
    assert!(served.fleet.json(["status"]).is_object(), "the operator's socket answers");
    // The end comes from the daemon: what is left to read ends although more was asked for.
    let mut last = deaf.pop().unwrap();
    let mut rest = Vec::new();
    drop(last.read_to_end(&mut rest));
}

#[test]
fn behind_a_proxy_its_name_is_served_and_the_cookie_is_for_tls_alone() {
    let served = Served::start("public_url = \"https://fleet.example.org\"\n");
    let url = served.fleet.cli(["dashboard"]).ok().stdout;
    let code =
        url.trim_end().strip_prefix("https://fleet.example.org/open#").unwrap_or_else(|| panic!("{url}"));
    let own = [("host", "fleet.example.org"), ("origin", "https://fleet.example.org")];
    let json = ("content-type", "application/json");
    let body = json!({ "code": code }).to_string();
    let plain = [own[0], ("origin", "http://fleet.example.org"), json];
    assert_eq!(served.exchange("POST", "/session", &plain, &body).status, 403);
    let said = served.exchange("POST", "/session", &[own[0], own[1], json], &body);
    assert_eq!(said.status, 201, "{said:?}");
    assert!(said.header("set-cookie").unwrap().ends_with("; secure"), "{said:?}");
    let browser = Browser::from_response(&said);
    let page = [own[0], own[1], ("cookie", &browser.cookie), ("x-supervisor-dashboard", &browser.key)];
    assert_eq!(served.exchange("GET", "/api/v1/board", &page, "").status, 200);
}
