//! A browser as any program would be one: links, cookies, keys, and requests with headers of its choice.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::http::free_port;

/// A root whose dashboard has a port of its own.
pub(super) struct Served {
    pub(super) fleet: Fleet,
    pub(super) port: u16,
}

/// Session of a browser that has followed a link.
#[derive(Clone, Debug)]
pub(super) struct Browser {
    /// Name and value.
    pub(super) cookie: String,
    pub(super) key: String,
    /// The name of the session.
    pub(super) id: String,
}

/// An answer.
#[derive(Debug)]
pub(super) struct PageResponse {
    pub(super) status: u16,
    /// In small letters.
    pub(super) head: String,
    pub(super) body: String,
}

impl PageResponse {
    /// The JSON of the body.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The value of a header, in small letters.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Served {
    /// Starts one. `more` are further lines of `[dashboard]` and tables behind it.
    pub(super) fn start(more: &str) -> Self {
        let served = Served { fleet: Fleet::offline(), port: free_port() };
        served.configure(more);
        served.fleet.start();
        served
    }

    /// Writes the configuration.
    pub(super) fn configure(&self, more: &str) {
        self.fleet.configure(&format!("[dashboard]\nlisten = \"127.0.0.1:{}\"\n{more}", self.port));
    }

    /// The origin of its pages.
    pub(super) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Asks for a link, and returns its code.
    #[track_caller]
    pub(super) fn code(&self, more: &[&str]) -> String {
        let line = ["dashboard"].iter().chain(more).copied();
        let url = self.fleet.cli(line).ok().stdout;
        let begin = format!("{}/open#", self.origin());
        url.trim_end().strip_prefix(&begin).unwrap_or_else(|| panic!("{url}")).to_owned()
    }

    /// Posts a code as the page does.
    pub(super) fn show(&self, code: &str, more: &[(&str, &str)]) -> PageResponse {
        self.post_session(&json!({ "code": code }), more)
    }

    /// Posts for a session.
    pub(super) fn post_session(&self, body: &Value, more: &[(&str, &str)]) -> PageResponse {
        let origin = self.origin();
        let own = [("origin", origin.as_str()), ("content-type", "application/json")];
        let headers: Vec<(&str, &str)> = own.iter().chain(more).copied().collect();
        self.exchange("POST", "/session", &headers, &body.to_string())
    }

    /// Follows a link.
    #[track_caller]
    pub(super) fn browser(&self, more: &[&str]) -> Browser {
        let said = self.show(&self.code(more), &[]);
        assert_eq!(said.status, 201, "{said:?}");
        Browser::from_response(&said)
    }

    /// Sends a request, and reads its answer to the end.
    pub(super) fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> PageResponse {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            write!(head, "host: 127.0.0.1:{}\r\n", self.port).unwrap();
        }
        write!(head, "connection: close\r\ncontent-length: {}\r\n", body.len()).unwrap();
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        self.raw(&format!("{head}\r\n{body}"))
    }

    /// Sends bytes, and reads what is answered to the end.
    pub(super) fn raw(&self, text: &str) -> PageResponse {
        let mut stream = self.connect();
        // Who refuses a body may answer before it has been read.
        drop(stream.write_all(text.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        PageResponse { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// A connection.
    #[track_caller]
    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        stream
    }

    /// Returns true if the port accepts connections.
    pub(super) fn listens(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }

    /// Asks as the page of a session does.
    pub(super) fn ask(&self, browser: &Browser, method: &str, path: &str, body: &str) -> PageResponse {
        let origin = self.origin();
        let headers = [
            ("cookie", browser.cookie.as_str()),
            ("x-supervisor-dashboard", &browser.key),
            ("origin", &origin),
            ("content-type", "application/json"),
        ];
        self.exchange(method, path, &headers, body)
    }

    /// Calls a verb as the page of a session does.
    pub(super) fn verb(&self, browser: &Browser, name: &str, body: &Value) -> PageResponse {
        self.ask(browser, "POST", &format!("/api/v1/verbs/{name}"), &body.to_string())
    }
}

impl Browser {
    /// Reads the session from the response to a code.
    pub(super) fn from_response(said: &PageResponse) -> Self {
        let cookie = said.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let text = |key: &str| said.json()[key].as_str().unwrap().to_owned();
        Browser { cookie, key: text("key"), id: text("session") }
    }
}
