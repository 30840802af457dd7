//! A client that keeps its connection and does as little as it can: it shares the processors with what it measures.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// A connection to the operator's socket.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    key: String,
}

impl Client {
    /// Connects to the daemon of a root.
    pub(crate) fn connect(root: &Path) -> Result<Self> {
        let stream = UnixStream::connect(root.join("run/supervisor.sock"))?;
        let key = std::fs::read_to_string(root.join("operator.key")).context("operator.key")?;
        Ok(Client { stream: BufReader::new(stream), key })
    }

    /// Calls a verb and returns its reply.
    pub(crate) fn call(&mut self, verb: &str, request: &Value) -> Result<Value> {
        let body = request.to_string();
        let id = uuid::Uuid::new_v4();
        let message = format!(
            "POST /api/v1/verbs/{verb} HTTP/1.1\r\nhost: supervisor\r\ncontent-type: application/json\r\n\
             x-supervisor-key: {}\r\nx-request-id: {id}\r\ncontent-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        self.stream.get_mut().write_all(message.as_bytes())?;
        let (status, body) = self.answer()?;
        if status != 200 {
            bail!("{verb}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    fn answer(&mut self) -> Result<(u16, Vec<u8>)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status")?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(("content-length", value)) = line.split_once(": ") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }
}
