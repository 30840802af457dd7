//! Attacks: floods, slow and broken requests, stolen secrets in the hands of another user, workers that reach the port.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::wire::{Browser, Served};
use crate::harness::{Output, User, skip};
use crate::http::free_port;
use crate::listeners::operator;

/// Asks for the board over `/dev/tcp` with what a session has, as another user of this host. Returns the status that is answered.
fn asked_as(uid: u32, served: &Served, browser: &Browser) -> String {
    let request = format!(
        "GET /api/v1/board HTTP/1.1\\r\\nhost: 127.0.0.1:{}\\r\\nconnection: close\\r\\ncookie: {}\\r\\nx-supervisor-dashboard: {}\\r\\n\\r\\n",
        served.port, browser.cookie, browser.key
    );
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf '{request}' >&3; read -r line <&3; echo \"$line\"",
        served.port
    );
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &uid.to_string(), "--clear-groups", "bash", "-c", &script]);
    Output::of(&mut command).ok().stdout
}

#[test]
fn cookie_and_key_are_nothing_in_the_hands_of_another_user() {
    if User::current() != User::Root {
        skip("another user of the host: needs root");
        return;
    }
    let served = Served::start("");
    let browser = served.browser(&[]);
    assert!(asked_as(0, &served, &browser).contains(" 200 "), "its own user");
    let stolen = asked_as(65_534, &served, &browser);
    assert!(stolen.contains(" 401 "), "{stolen}");
    assert_eq!(served.ask(&browser, "GET", "/api/v1/board", "").status, 200, "the session goes on");

    // A link that another user has read in the list of processes: it is for a browser of the one who asked.
    let api = operator(&served.fleet);
    let own = api.post("/api/v1/verbs/open-dashboard", &json!({ "own_browser": true })).json(200);
    let code = own["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let request = format!(
        "POST /session HTTP/1.1\\r\\nhost: 127.0.0.1:{0}\\r\\norigin: http://127.0.0.1:{0}\\r\\ncontent-type: application/json\\r\\ncontent-length: {1}\\r\\n\\r\\n{{\"code\": \"{code}\"}}",
        served.port,
        code.len() + 12
    );
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf '{request}' >&3; read -r line <&3; echo \"$line\"",
        served.port
    );
    let mut thief = Command::new("setpriv");
    thief.args(["--reuid", "65534", "--clear-groups", "bash", "-c", &script]);
    let answer = Output::of(&mut thief).ok().stdout;
    assert!(answer.contains(" 401 "), "{answer}");
    assert_eq!(served.show(&code, &[]).status, 201, "it was not used up");
}

/// A stream to the dashboard whose own address is not one of loopback; none if the host has no other address.
fn from_elsewhere(port: u16) -> Option<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    // No packet is sent: the kernel chooses the address of this host on the way there.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    probe.connect("192.0.2.1:9").ok()?;
    let own = probe.local_addr().ok()?.ip();
    if own.is_loopback() {
        return None;
    }
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &SocketAddr::new(own, 0)).ok()?;
    connect(&stream, &SocketAddr::from(([127, 0, 0, 1], port))).ok()?;
    let stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    Some(stream)
}

#[test]
fn a_connection_from_another_address_of_the_host_follows_no_link() {
    let served = Served::start("");
    let printed = served.code(&[]);
    let api = operator(&served.fleet);
    let own = api.post("/api/v1/verbs/open-dashboard", &json!({ "own_browser": true })).json(200);
    let own = own["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    for code in [&own, &printed] {
        let Some(mut stream) = from_elsewhere(served.port) else {
            skip("a connection from another address: the host has loopback alone");
            return;
        };
        let body = json!({ "code": code }).to_string();
        let head = format!(
            "POST /session HTTP/1.1\r\nhost: 127.0.0.1:{}\r\norigin: {}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            served.port,
            served.origin(),
            body.len()
        );
        drop(stream.write_all(format!("{head}{body}").as_bytes()));
        let mut answer = Vec::new();
        // The connection may be reset before the refusal is read.
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert_eq!(served.show(code, &[]).status, 201, "it was not used up");
    }
}

#[test]
fn a_worker_that_reaches_the_port_gets_the_page_that_takes_a_link_and_no_more() {
    let served = Served::start("[worker]\npolicy = \"unconfined\"\n");
    let browser = served.browser(&[]);
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{0} || {{ echo unreachable; exit 0; }}; \
         printf 'GET /api/v1/board HTTP/1.1\\r\\nhost: 127.0.0.1:{0}\\r\\nauthorization: Bearer '\"$SUPERVISOR_TOKEN\"'\\r\\nconnection: close\\r\\n\\r\\n' >&3; \
         cat <&3",
        served.port
    );
    let body = format!("cat > ask.sh <<'END'\n{script}\nEND\nbash ask.sh; supervisor complete");
    let id = served.fleet.create("reach", &body, &[]);
    served.fleet.wait_for(&id, "done");
    let log = served.fleet.cli(["logs", &id]).ok().stdout;
    assert!(log.contains("401 Unauthorized"), "the token of a run is nothing here: {log}");
    assert!(!log.contains("\"columns\""), "{log}");
    assert_eq!(served.ask(&browser, "GET", "/api/v1/board", "").status, 200);
}

#[test]
fn a_flood_of_connections_and_slow_heads_holds_up_neither_the_page_nor_the_operator() {
    let served = Served::start("[api]\nconnections = 64\n");
    let browser = served.browser(&[]);
    let mut flood: Vec<TcpStream> = Vec::new();
    for at in 0..600 {
        let mut stream = served.connect();
        if at % 2 == 0 {
            drop(stream.write_all(b"GET /api/v1/board HTTP/1.1\r\nhost: 127.0.0.1"));
        }
        flood.push(stream);
        if at % 100 == 99 {
            // It is of the same user as the flood, so it may have to try again, as the page does.
            let board = || served.ask(&browser, "GET", "/api/v1/board", "");
            served.fleet.eventually("the board", || (board().status == 200).then_some(()));
        }
    }
    assert!(served.fleet.json(["status"]).is_object());
    let closed = flood.iter().filter(|stream| {
        let mut stream: &TcpStream = stream;
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        // Who had to leave reads an end, or why.
        !matches!(stream.read(&mut [0; 1]), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
    });
    assert!(closed.count() >= 500, "most had to leave");
}

#[test]
fn requests_that_are_broken_or_too_large_are_refused() {
    let served = Served::start("");
    let browser = served.browser(&[]);
    let (host, own) = (format!("127.0.0.1:{}", served.port), served.origin());
    let long = "x".repeat(200 << 10);
    let head = format!("GET /open HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    let many = (0..200).map(|at| format!("x-{at}: 1\r\n")).collect::<Vec<_>>().concat();
    for (text, status) in [
        (format!("{head}x-long: {long}\r\n\r\n"), 431),
        (format!("{head}{many}\r\n"), 431),
        (format!("GET /{long} HTTP/1.1\r\nhost: {host}\r\n\r\n"), 431),
        ("GET /open HTTP/1.0\r\n\r\n".to_owned(), 403),
        (
            format!("GET http://evil.example.org/open HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
            403,
        ),
        (format!("GET /open HTTP/1.1\r\nhost: {host}\r\nhost: {host}\r\nconnection: close\r\n\r\n"), 403),
        (format!("{head}content-length: 1\r\ncontent-length: 2\r\n\r\nab"), 400),
        (format!("{head}transfer-encoding: gzip\r\n\r\n"), 400),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}".to_owned(), 400),
    ] {
        let said = served.raw(&text);
        // Who sends more than is read may see the connection reset before it reads why.
        assert!(said.status == status || (said.status == 0 && text.len() > 1000), "{status}: {said:?}");
    }
    // What is behind a body that has two lengths is a request of its own, without a session.
    let smuggled = format!(
        "POST /session HTTP/1.1\r\nhost: {host}\r\norigin: {own}\r\ncontent-type: application/json\r\ncontent-length: 60\r\n\
         transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/board HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    );
    let said = served.raw(&smuggled);
    assert!(!said.body.contains("\"columns\"") && said.status != 200, "{said:?}");
    let large = format!("{{\"code\": \"{}\"}}", "a".repeat(4000));
    assert_eq!(served.show(&large, &[]).status, 413);
    assert_eq!(served.show("", &[]).status, 401);
    assert_eq!(served.ask(&browser, "GET", "/api/v1/board", "").status, 200);
}

#[test]
fn links_and_sessions_are_bounded_and_a_cookie_of_a_neighbour_is_passed_over() {
    let served = Served::start("");
    let api = operator(&served.fleet);
    let link = || {
        let link = api.post("/api/v1/verbs/open-dashboard", &json!({})).json(200);
        link["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
    };
    let links: Vec<String> = (0..6).map(|_| link()).collect();
    assert_eq!(served.show(&links[0], &[]).status, 401, "four wait at most, and the oldest went");
    assert_eq!(served.show(&links[5], &[]).status, 201);
    let browsers: Vec<Browser> =
        (0..17).map(|_| Browser::from_response(&served.show(&link(), &[]))).collect();
    assert_eq!(served.ask(&browsers[16], "GET", "/api/v1/board", "").status, 200);
    assert_eq!(served.fleet.json(["dashboard", "sessions"]).as_array().unwrap().len(), 16);
    let last = &browsers[16];
    let name = last.cookie.split_once('=').unwrap().0;
    // A server on another port has set one of the same name for a longer path, which browsers send first.
    let both =
        format!("{name}=planted; {name}={}; {}", browsers[15].cookie.split_once('=').unwrap().1, last.cookie);
    let headers = [("cookie", both.as_str()), ("x-supervisor-dashboard", &last.key)];
    assert_eq!(served.exchange("GET", "/api/v1/board", &headers, "").status, 200);
}

#[test]
fn a_port_that_is_taken_is_named_with_its_key_and_another_one_is_not_taken_instead() {
    let served = Served::start("");
    let neighbour = TcpListener::bind(("127.0.0.1", served.port)).unwrap();
    let refused = served.fleet.cli(["dashboard"]).refused(4, "another program listens on 127.0.0.1:");
    assert!(refused.stderr.contains("`listen` in [dashboard]"), "{}", refused.stderr);
    let doctor = served.fleet.cli(["doctor"]).stdout;
    assert!(doctor.contains("dashboard: another program listens on"), "{doctor}");
    drop(neighbour);
    let browser = served.browser(&[]);
    let doctor = served.fleet.cli(["doctor"]).stdout;
    assert!(doctor.contains(&format!("dashboard: served at {}", served.origin())), "{doctor}");

    // Another port is taken into use with the next reload, and the sessions go along.
    let moved = Served { port: free_port(), ..served };
    moved.configure("");
    moved.fleet.signal(Signal::SIGHUP);
    moved.fleet.eventually("the dashboard has moved", || moved.listens().then_some(()));
    assert_eq!(moved.ask(&browser, "GET", "/api/v1/board", "").status, 200);

    moved.configure("enabled = false\n");
    moved.fleet.signal(Signal::SIGHUP);
    moved.fleet.eventually("the dashboard is switched off", || (!moved.listens()).then_some(()));
    moved.fleet.cli(["dashboard"]).refused(77, "the dashboard is switched off");
    let doctor = moved.fleet.cli(["doctor"]).stdout;
    assert!(doctor.contains("dashboard: switched off"), "{doctor}");
    moved.fleet.stop(&[]);
    moved.fleet.cli(["dashboard"]).refused(69, "");
}
