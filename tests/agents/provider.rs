//! A model provider on loopback that plays a script. It keeps no conversation: the results of tools in a request say how far the agent has come,
//! so that a request that is tried again gets the same answer.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::dialects::Dialect;
use crate::brokers::provider::certified;

/// Reaction of the provider at one point of a script.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// The model says something and stops.
    Say(&'static str),
    /// The model has the agent run a command in a shell.
    Run(String),
    /// The model has the agent run a command if the conversation has these words, and stops otherwise.
    RunIfHeard(&'static str, String),
    /// The model calls a tool.
    Call(&'static str, Value),
    /// The service refuses the request, with a word about when to come again.
    Refuse { status: u16, retry_after: Option<u32> },
    /// The service takes the request and never answers.
    Hang,
    /// The service breaks the connection in the middle of its answer.
    Cut,
}

/// A request for an answer of the model.
#[derive(Clone, Debug)]
pub(crate) struct ProviderRequest {
    /// Its head: the request line and its headers.
    pub(crate) head: String,
    /// Number of tool results in it.
    pub(crate) results: usize,
    /// The text of its body.
    pub(crate) body: String,
    /// The tools that it offered to the model.
    pub(crate) tools: Vec<String>,
}

/// Time limit for the rest of a request, and for an agent to read its reply.
const STEP: Duration = Duration::from_mins(10);

/// A provider, for as long as the test runs.
#[derive(Debug)]
pub(crate) struct Provider {
    port: u16,
    seen: Arc<SeenRequests>,
}

#[derive(Debug, Default)]
struct SeenRequests {
    asked: Mutex<Vec<ProviderRequest>>,
    /// Requests for anything else, for the reader of a failure.
    others: Mutex<Vec<String>>,
}

impl Provider {
    /// Plays a script: the act of as many results of tools as a request has, or the last.
    pub(crate) fn play(script: &[Act]) -> Self {
        Self::play_in(script, None)
    }

    /// The same for requests in TLS. Returns the certificate of its authority, too.
    pub(crate) fn play_in_tls(script: &[Act]) -> (Self, String) {
        let (config, ca) = certified();
        (Self::play_in(script, Some(config)), ca)
    }

    fn play_in(script: &[Act], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, script) = (Arc::<SeenRequests>::default(), Arc::<[Act]>::from(script));
        let shared = Arc::clone(&seen);
        // It ends with the process of the test, as do its threads.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                // An agent that breaks its connection is no fault of the provider.
                thread::spawn(move || drop(serve(stream, tls, &script, &seen)));
            }
        });
        Provider { port, seen }
    }

    /// Its port on the loopback interface.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The requests for an answer of the model so far.
    pub(crate) fn asked(&self) -> Vec<ProviderRequest> {
        self.seen.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the requests that did not ask the model.
    pub(crate) fn others(&self) -> Vec<String> {
        self.seen.others.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection, in TLS or not.
trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

struct Request {
    head: String,
    method: String,
    path: String,
    body: Vec<u8>,
}

/// Answers one request and closes the connection.
fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    script: &[Act],
    seen: &SeenRequests,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(STEP))?;
    stream.set_write_timeout(Some(STEP))?;
    match tls {
        Some(config) => {
            let server = ServerConnection::new(config).map_err(std::io::Error::other)?;
            play(&mut StreamOwned::new(server, stream), script, seen)
        }
        None => play(&mut { stream }, script, seen),
    }
}

fn play(stream: &mut dyn Connection, script: &[Act], seen: &SeenRequests) -> std::io::Result<()> {
    let Some(request) = receive(stream)? else { return Ok(()) };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    // Codex asks for a WebSocket at the same path before.
    let dialect = Dialect::of(&request.path).filter(|_| request.method == "POST");
    let Some(dialect) = dialect else {
        seen.others.lock().unwrap_or_else(PoisonError::into_inner).push(request.path.clone());
        return answer(stream, 404, "application/json", "", r#"{"error":{"message":"no such thing"}}"#);
    };
    let results = dialect.results(&body);
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let act = script.get(results).or(script.last()).cloned().unwrap_or(Act::Hang);
    let act = if let Act::RunIfHeard(words, command) = &act {
        if text.contains(words) { Act::Run(command.clone()) } else { Act::Say("Done.") }
    } else {
        act
    };
    seen.asked.lock().unwrap_or_else(PoisonError::into_inner).push(ProviderRequest {
        head: request.head,
        results,
        body: text,
        tools: dialect.offered(&body),
    });
    let kind = dialect.content_type(&request.path, &body);
    match act {
        Act::Say(text) => answer(stream, 200, kind, "", &dialect.say(&request.path, &body, text)),
        Act::Run(command) => match dialect.run(&request.path, &body, &command, results) {
            Some(text) => answer(stream, 200, kind, "", &text),
            // Beside its work an agent asks for a title and the like, without tools.
            None => answer(stream, 200, kind, "", &dialect.say(&request.path, &body, "A small task")),
        },
        Act::Call(tool, input) => match dialect.call(&request.path, &body, (tool, &input), results) {
            Some(text) => answer(stream, 200, kind, "", &text),
            None => answer(stream, 200, kind, "", &dialect.say(&request.path, &body, "A small task")),
        },
        Act::Refuse { status, retry_after } => {
            let head = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
            answer(stream, status, "application/json", &head, &dialect.error(status))
        }
        Act::RunIfHeard(..) | Act::Hang => {
            // Until the agent gives up.
            let mut rest = [0; 64];
            while stream.read(&mut rest)? > 0 {}
            Ok(())
        }
        Act::Cut => {
            let text = dialect.say(&request.path, &body, "This answer has no end, because");
            let half = &text[..text.len() / 2];
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{half}",
                text.len()
            )
        }
    }
}

fn answer(
    stream: &mut dyn Connection,
    status: u16,
    kind: &str,
    head: &str,
    body: &str,
) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{head}connection: close\r\n\r\n{body}"
    )
}

/// Reads a request to its end; none where the connection is closed before there is one.
fn receive(stream: &mut dyn Connection) -> std::io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let (end, method, path, length, is_chunked) = loop {
        if !more(stream, &mut bytes)? {
            return Ok(None);
        }
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes) {
            Ok(httparse::Status::Complete(head)) => {
                let field = |name: &str| {
                    let header =
                        request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
                    std::str::from_utf8(header.value).ok()
                };
                let length = field("content-length").and_then(|text| text.parse().ok()).unwrap_or(0_usize);
                let is_chunked = field("transfer-encoding").is_some_and(|text| text.contains("chunked"));
                let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
                break (head, text(request.method), text(request.path), length, is_chunked);
            }
            Ok(httparse::Status::Partial) => {}
            Err(_) => return Ok(None),
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    if is_chunked {
        let mut whole = Vec::new();
        loop {
            match httparse::parse_chunk_size(&body) {
                Ok(httparse::Status::Complete((_, 0))) => {
                    return Ok(Some(Request { head, method, path, body: whole }));
                }
                Ok(httparse::Status::Complete((at, size))) => {
                    let end = at + usize::try_from(size).unwrap_or(usize::MAX);
                    while body.len() < end + 2 {
                        if !more(stream, &mut body)? {
                            return Ok(None);
                        }
                    }
                    whole.extend_from_slice(&body[at..end]);
                    body.drain(..end + 2);
                }
                Ok(httparse::Status::Partial) => {
                    if !more(stream, &mut body)? {
                        return Ok(None);
                    }
                }
                Err(_) => return Ok(None),
            }
        }
    }
    while body.len() < length {
        if !more(stream, &mut body)? {
            return Ok(None);
        }
    }
    Ok(Some(Request { head, method, path, body }))
}

fn more(stream: &mut dyn Connection, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut piece = [0; 16 * 1024];
    let read = stream.read(&mut piece)?;
    bytes.extend_from_slice(&piece[..read]);
    Ok(read > 0)
}
