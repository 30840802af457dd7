//! Sessions: a link works once, a session lasts over a restart and until it ends, and a tenant's sees its tenant.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::{Value, json};

use super::wire::{Browser, Served};
use crate::harness::Output;

#[test]
fn nobody_listens_before_a_link_is_asked_for_and_after_the_last_session() {
    let served = Served::start("");
    assert!(!served.listens(), "nobody has asked");
    let browser = served.browser(&[]);
    assert!(served.listens());
    let ended = served.fleet.json(["dashboard", "revoke", &browser.id]);
    assert_eq!(ended["sessions"], json!([browser.id]));
    served.fleet.eventually("the port closes", || (!served.listens()).then_some(()));
}

#[test]
fn a_link_works_once_and_its_session_needs_the_cookie_and_the_key() {
    let served = Served::start("");
    let code = served.code(&[]);
    let first = served.show(&code, &[]);
    assert_eq!(first.status, 201, "{first:?}");
    let cookie = first.header("set-cookie").unwrap();
    for rule in ["; path=/", "; httponly", "; samesite=strict"] {
        assert!(cookie.contains(rule) && !cookie.contains("secure"), "{cookie}");
    }
    let second = served.show(&code, &[]);
    assert_eq!(second.status, 401, "{second:?}");
    assert!(second.json()["detail"].as_str().unwrap().contains("was used"), "{second:?}");

    let (browser, other) = (Browser::from_response(&first), served.browser(&[]));
    let board = served.ask(&browser, "GET", "/api/v1/board", "");
    assert_eq!(board.status, 200, "{board:?}");
    assert_eq!(board.header("cache-control"), Some("no-store"));
    for (cookie, key) in [
        (browser.cookie.as_str(), ""),
        (browser.cookie.as_str(), &other.key),
        ("", &browser.key),
        (&other.cookie, &browser.key),
        ("supervisor-x=1", &browser.key),
    ] {
        let half = Browser { cookie: cookie.to_owned(), key: key.to_owned(), id: String::new() };
        let said = served.ask(&half, "GET", "/api/v1/board", "");
        assert_eq!(said.status, 401, "{half:?}: {said:?}");
    }
    let created = served.verb(&browser, "create", &json!({ "title": "from the page" }));
    assert_eq!(created.status, 200, "{created:?}");
    let who = served.ask(&browser, "GET", "/session", "").json();
    assert_eq!(who["session"], json!(browser.id));
    assert_eq!(created.json()["created_by"], who["actor"]);
    assert_eq!(served.ask(&browser, "DELETE", "/session", "").status, 204);
    assert_eq!(served.ask(&browser, "GET", "/api/v1/board", "").status, 401, "it has signed out");
    assert_eq!(served.ask(&other, "GET", "/api/v1/board", "").status, 200);
}

#[test]
fn sessions_outlive_a_daemon_and_end_with_their_time_and_only_digests_are_on_disk() {
    let served = Served::start("");
    let (kept, idle, old) = (served.browser(&[]), served.browser(&[]), served.browser(&[]));
    let unused = served.code(&[]);
    served.fleet.restart();
    // A session needs no new link: the daemon listens by itself.
    served.fleet.eventually("the dashboard listens", || served.listens().then_some(()));
    assert_eq!(served.ask(&kept, "GET", "/api/v1/board", "").status, 200);
    assert_eq!(served.show(&unused, &[]).status, 401, "links are in memory alone");

    let file = served.fleet.root().join("browser-sessions.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    served.fleet.kill_daemon();
    let mut text: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let now = text["sessions"][0]["began"].as_i64().unwrap();
    for session in text["sessions"].as_array_mut().unwrap() {
        if session["id"] == json!(idle.id) {
            session["used"] = json!(now - 12 * 3600 - 60);
        }
        if session["id"] == json!(old.id) {
            session["began"] = json!(now - 7 * 24 * 3600 - 60);
        }
    }
    std::fs::write(&file, text.to_string()).unwrap();
    served.fleet.start();
    served.fleet.eventually("the dashboard listens", || served.listens().then_some(()));
    assert_eq!(served.ask(&kept, "GET", "/api/v1/board", "").status, 200);
    assert_eq!(served.ask(&idle, "GET", "/api/v1/board", "").status, 401, "twelve hours without a request");
    assert_eq!(served.ask(&old, "GET", "/api/v1/board", "").status, 401, "seven days");
    let sessions = served.fleet.json(["dashboard", "sessions"]);
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(sessions[0]["session"], json!(kept.id));
}

#[test]
fn what_lets_a_browser_in_is_in_no_log_and_in_no_file() {
    let served = Served::start("");
    let code = served.code(&[]);
    let browser = Browser::from_response(&served.show(&code, &[]));
    served.verb(&browser, "create", &json!({ "title": "x" }));
    served.show(&code, &[]);
    served.exchange("GET", &format!("/?{}", browser.key), &[], "");
    let value = browser.cookie.split_once('=').unwrap().1;
    let secrets = [code.as_str(), &browser.key, value];
    let mut places = vec![("the log".to_owned(), served.fleet.log().into_bytes())];
    let mut dirs = vec![served.fleet.root()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => dirs.push(entry.path()),
                kind if kind.is_file() => {
                    places.push((
                        entry.path().display().to_string(),
                        std::fs::read(entry.path()).unwrap_or_default(),
                    ));
                }
                _ => {}
            }
        }
    }
    assert!(places.len() > 5);
    for (place, bytes) in &places {
        let text = String::from_utf8_lossy(bytes);
        for (at, secret) in secrets.iter().enumerate() {
            assert!(!text.contains(secret), "secret {at} is in {place}");
        }
    }
    let events = served.fleet.json(["events"]).to_string();
    assert!(secrets.iter().all(|secret| !events.contains(secret)));
}

#[test]
fn the_session_of_a_tenant_sees_that_tenant_alone() {
    let served = Served::start("");
    served.fleet.cli(["tenant", "create", "acme"]).ok();
    let own = served.fleet.json(["create", "ours", "--tenant", "acme", "--triage"])["id"].clone();
    let other = served.fleet.json(["create", "theirs", "--triage"])["id"].as_str().unwrap().to_owned();
    let browser = served.browser(&["--tenant", "acme"]);
    let who = served.ask(&browser, "GET", "/session", "").json();
    assert_eq!(who["tenant"], json!("acme"));
    let board = served.ask(&browser, "GET", "/api/v1/board", "").body;
    assert!(board.contains(own.as_str().unwrap()) && !board.contains(&other), "{board}");
    assert_eq!(served.ask(&browser, "GET", &format!("/api/v1/tasks/{other}"), "").status, 404);
    let refused = served.verb(&browser, "stop", &json!({}));
    assert_eq!(refused.status, 403, "{refused:?}");
    served.fleet.cli(["dashboard", "--tenant", "nobody"]).refused(3, "there is no tenant `nobody`");
}

#[test]
fn a_session_names_no_file_of_the_host_and_does_not_stop_the_daemon() {
    let served = Served::start("");
    let browser = served.browser(&[]);
    let file = served.fleet.home().join("written");
    let (path, plugin) = (json!({ "file": file }), json!({ "path": served.fleet.home() }));
    let nothing = json!({});
    let calls = [
        ("backup", &path),
        ("export", &path),
        ("import", &path),
        ("check-plugin", &plugin),
        ("stop", &nothing),
    ];
    for (verb, body) in calls {
        let refused = served.verb(&browser, verb, body);
        assert_eq!(refused.status, 403, "{verb}: {refused:?}");
        let verbs = served.ask(&browser, "GET", "/api/v1/verbs", "").json();
        let offered = verbs.as_array().unwrap().iter().any(|one| one["name"] == json!(verb));
        assert!(!offered, "{verb} is not offered");
    }
    assert_eq!(served.ask(&browser, "GET", "/api/v1/export", "").status, 403);
    assert!(!file.exists());
}

#[test]
fn a_session_that_is_revoked_ends_with_its_streams_and_makes_no_links_itself() {
    let served = Served::start("");
    let (browser, other) = (served.browser(&[]), served.browser(&[]));
    let link = served.verb(&browser, "open-dashboard", &json!({}));
    assert_eq!(link.status, 403, "it would have no end: {link:?}");
    let mut stream = served.connect();
    let head = format!(
        "GET /api/v1/events?since=1000000&wait=60 HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncookie: {}\r\n\
         x-supervisor-dashboard: {}\r\n\r\n",
        served.port, browser.cookie, browser.key
    );
    stream.write_all(head.as_bytes()).unwrap();
    served.fleet.cli(["dashboard", "revoke", "--all"]).ok();
    for gone in [&browser, &other] {
        assert!(!served.listens() || served.ask(gone, "GET", "/api/v1/board", "").status == 401);
    }
    // The wait ends without an answer, or with what a person without a session gets.
    let lines: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
    assert!(!lines.iter().any(|line| line.contains("200 OK")), "{lines:?}");
    served.fleet.cli(["dashboard", "revoke", "00000000"]).refused(3, "there is no session `00000000`");
}

#[test]
fn a_link_does_not_take_the_place_of_somebody_elses_session_unless_the_person_says_so() {
    let served = Served::start("");
    served.fleet.cli(["tenant", "create", "acme"]).ok();
    let operator = served.browser(&[]);
    let code = served.code(&["--tenant", "acme"]);
    let asked = served.show(&code, &[("cookie", &operator.cookie)]);
    assert_eq!(asked.status, 409, "{asked:?}");
    assert_eq!(served.ask(&operator, "GET", "/api/v1/board", "").status, 200, "nothing was changed");
    let replaced =
        served.post_session(&json!({ "code": code, "replace": true }), &[("cookie", &operator.cookie)]);
    assert_eq!(replaced.status, 201, "{replaced:?}");
    assert_eq!(served.ask(&operator, "GET", "/api/v1/board", "").status, 401);
    assert_ne!(Browser::from_response(&replaced).cookie, operator.cookie, "no session is handed on");
}

#[test]
fn open_starts_the_browser_that_is_named_with_a_link_for_its_user() {
    let served = Served::start("");
    let seen = served.fleet.home().join("seen");
    let script = served.fleet.home().join("browser");
    std::fs::write(
        &script,
        format!("#!/bin/sh\nprintf %s \"$1\" > {0}.new; mv {0}.new {0}\n", seen.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = served.fleet.command(["dashboard", "--open"]);
    command.env("BROWSER", &script).env("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.9 22");
    let output = Output::of(&mut command).ok();
    assert!(output.stderr.contains(&format!("ssh -L {0}:127.0.0.1:{0} ", served.port)), "{}", output.stderr);
    let opened = served.fleet.eventually("the browser is started", || std::fs::read_to_string(&seen).ok());
    let link = output.stdout.trim_end();
    let code = link.split_once('#').unwrap().1;
    assert!(!opened.contains(code), "the command line of the browser has no code: {opened}");
    let page = std::path::Path::new(opened.strip_prefix("file://").unwrap());
    let meta = page.metadata().unwrap();
    assert_eq!((meta.permissions().mode() & 0o777, meta.uid()), (0o600, nix::unistd::geteuid().as_raw()));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&format!("content=\"0; url={link}\"")), "{page}");
    assert_eq!(served.show(code, &[]).status, 201);
    let mut command = served.fleet.command(["dashboard", "--open"]);
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    let output = Output::of(&mut command).ok();
    assert!(output.stdout.contains("/open#") && output.stderr.contains("no browser is opened"), "{output:?}");
}

#[test]
fn the_end_of_the_last_session_reaches_its_open_page_and_its_sign_out_is_answered() {
    let served = Served::start("");
    for way in ["revoke", "sign out"] {
        let browser = served.browser(&[]);
        let mut stream = served.connect();
        let head = format!(
            "GET /api/v1/stream HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncookie: {}\r\nx-supervisor-dashboard: {}\r\n\r\n",
            served.port, browser.cookie, browser.key
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "event: hello"), "{way}");
        if way == "revoke" {
            served.fleet.cli(["dashboard", "revoke", &browser.id]).ok();
        } else {
            let said = served.ask(&browser, "DELETE", "/session", "");
            assert_eq!(said.status, 204, "{said:?}");
        }
        assert!(lines.any(|line| line == "event: signed_out"), "{way}: the page hears why its stream ends");
        assert_eq!(lines.last().as_deref(), Some(""), "{way}: the stream ends as a whole one");
        served.fleet.eventually("the port closes", || (!served.listens()).then_some(()));
    }
}
