//! A small HTTP client over a Unix socket or a port of this host, so that the API is tried as any program would.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A port of this host that nobody listens on. It lies below those that the kernel gives to connections and to other tests, which would else
/// have it before the daemon does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let at = std::process::id().wrapping_mul(16).wrapping_add(next) % 22_000;
        let port = 10_000 + u16::try_from(at).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Address of a server.
#[derive(Clone, Debug)]
enum Address {
    Socket(PathBuf),
    Port(u16),
}

impl Address {
    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Address::Socket(path) => Box::new(UnixStream::connect(path)?),
            Address::Port(port) => Box::new(TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?),
        })
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A client of one server, with the headers that each of its requests carries.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    door: Address,
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct HttpAnswer {
    /// The status code.
    pub(crate) status: u16,
    /// The head as it came, in lower case.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: String,
}

impl Http {
    /// A client without headers of its own.
    pub(crate) fn at(socket: impl AsRef<Path>) -> Self {
        Http { door: Address::Socket(socket.as_ref().to_owned()), headers: Vec::new() }
    }

    /// The same for a port of this host.
    pub(crate) fn on(port: u16) -> Self {
        Http { door: Address::Port(port), headers: Vec::new() }
    }

    /// The same client with one header more.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Sends a request without a body.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        self.send("GET", path, b"")
    }

    /// Sends a request with a JSON body.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        self.send("POST", path, body.to_string().as_bytes())
    }

    /// Sends a request and reads the answer to its end. A body is JSON.
    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, body: &[u8]) -> HttpAnswer {
        self.send_as(method, path, Some("application/json").filter(|_| !body.is_empty()), body)
    }

    /// Sends a request whose body is said to be of a type.
    #[track_caller]
    pub(crate) fn send_as(&self, method: &str, path: &str, kind: Option<&str>, body: &[u8]) -> HttpAnswer {
        let mut stream = self.door.connect().unwrap();
        let mut head = vec![
            format!("{method} {path} HTTP/1.1"),
            "host: localhost".to_owned(),
            "connection: close".to_owned(),
        ];
        head.extend(kind.map(|kind| format!("content-type: {kind}")));
        if !body.is_empty() {
            head.push(format!("content-length: {}", body.len()));
        }
        head.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        let head = head.join("\r\n") + "\r\n\r\n";
        // A server that refuses a body early closes before it has read everything; the answer is there all the same.
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        let read = read_answer(&mut *stream, &mut bytes);
        assert!(!bytes.is_empty(), "{method} {path}: no answer: {sent:?} {read:?}");
        HttpAnswer::parse(&String::from_utf8_lossy(&bytes))
    }
}

/// Reads to the end of the answer, which not every server closes the connection after.
fn read_answer(stream: &mut dyn Stream, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        if length(bytes).is_some_and(|length| bytes.len() >= length) {
            return Ok(());
        }
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Returns the length of a response with its head, once the head is complete and states it.
fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let (_, rest) = head.split_once("content-length:")?;
    Some(end + rest.lines().next()?.trim().parse::<usize>().ok()?)
}

impl HttpAnswer {
    fn parse(text: &str) -> Self {
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_lowercase();
        let body = if head.contains("transfer-encoding: chunked") { unchunk(rest) } else { rest.to_owned() };
        HttpAnswer { status, head, body }
    }

    /// The body as JSON, where the status is the expected one.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.push_str(&more[..size]);
        rest = &more[size + 2..];
    }
    body
}
