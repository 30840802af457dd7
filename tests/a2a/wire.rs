//! A client of the bridge as any program would be one: a connection, a request, an answer; and a root that offers profiles.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Fleet;
use crate::http::free_port;

/// The tokens of the two senders of a root that offers profiles.
pub(super) const PARTNER: &str = "token-of-the-partner";
pub(super) const OTHER: &str = "token-of-another-one";

/// Script of its agent. As its task says, it waits for a file, asks, and completes.
const AGENT: &str = r#"
case "$(cat prompt.txt)" in
  *'ask first'*) case "$(cat prompt.txt)" in
    *'Answer: PostgreSQL'*) supervisor complete --summary 'with PostgreSQL' ;;
    *) supervisor block --question 'which database?' --choice SQLite --choice PostgreSQL ;;
  esac ;;
  *'wait there'*) exec sleep 600 ;;
  *'give up'*) echo "failed in $PWD" >&2; exit 3 ;;
  *'need a key'*) supervisor block --kind capability 'there is no key' ;;
  *) supervisor complete --summary 'the work is done' --metadata '{"pages": 3}' ;;
esac
"#;

/// A root that offers the profile `writer` to two senders.
pub(super) struct Offering {
    pub(super) fleet: Fleet,
    pub(super) port: u16,
}

/// An answer.
#[derive(Debug)]
pub(super) struct A2aResponse {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl A2aResponse {
    /// The JSON of the body.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

impl Offering {
    /// Starts one. `more` are further lines of `[a2a]`.
    pub(super) fn start(more: &str) -> Self {
        let fleet = Fleet::offline();
        let port = free_port();
        for (name, token) in [("partner", PARTNER), ("other", OTHER)] {
            fleet.write_config(&format!("secrets/a2a-{name}"), &format!("{token}\n"));
            let file = fleet.root().join(format!("secrets/a2a-{name}"));
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        fleet.lane(
            "writer",
            &format!("argv = [\"/bin/sh\", \"-c\", '''cat > prompt.txt; {AGENT}''']\nprompt = \"context\"\n"),
        );
        fleet.lane("editor", "argv = [\"/bin/sh\", \"-c\", \"supervisor complete --summary edited\"]\n");
        // A test looks often.
        let more = if more.is_empty() { "per_minute = 1000000" } else { more };
        fleet.configure(&format!(
            "[worker]\nfailure_limit = 1\n[a2a]\nlisten = \"127.0.0.1:{port}\"\nprofiles = [\"writer\", \"editor\"]\n{more}\n\
             [a2a.senders.partner]\nsecret = \"a2a-partner\"\ntenant = \"acme\"\nprofiles = [\"writer\"]\n\
             [a2a.senders.other]\nsecret = \"a2a-other\"\ntenant = \"acme\"\n"
        ));
        fleet.start();
        let offering = Offering { fleet, port };
        offering
            .fleet
            .eventually("the bridge listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        offering
    }

    /// Sends a request, and reads its answer to the end.
    pub(super) fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> A2aResponse {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            write!(head, "host: 127.0.0.1:{}\r\n", self.port).unwrap();
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        // Who refuses a body may answer before it has been read.
        drop(stream.write_all(format!("{head}\r\n{body}").as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        A2aResponse { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// A connection that has begun a request and says no more.
    pub(super) fn silent(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n").unwrap();
        stream
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
        stream
    }

    /// Calls a method as a sender, and returns the whole answer.
    #[track_caller]
    pub(super) fn call(&self, token: &str, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let bearer = format!("Bearer {token}");
        let said =
            self.exchange("POST", "/", &[("authorization", &bearer), ("a2a-version", "1.0")], &request);
        assert_eq!(said.status, 200, "{method}: {said:?}");
        let answer = said.json();
        assert_eq!(answer["id"], json!(7), "{answer}");
        answer
    }

    /// Sends words as the partner without waiting for the end, and returns the task.
    #[track_caller]
    pub(super) fn send(&self, id: &str, text: &str) -> Value {
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        let answer = self.call(PARTNER, "SendMessage", &params);
        assert!(answer["result"]["task"].is_object(), "{answer}");
        answer["result"]["task"].clone()
    }

    /// A task as its sender sees it.
    #[track_caller]
    pub(super) fn task(&self, id: &str) -> Value {
        self.call(PARTNER, "GetTask", &json!({"id": id}))["result"].clone()
    }

    /// Waits until a task is in a state.
    #[track_caller]
    pub(super) fn wait_for(&self, id: &str, state: &str) -> Value {
        self.fleet.eventually(state, || Some(self.task(id)).filter(|task| task["status"]["state"] == state))
    }

    /// Opens a stream as the partner, and returns its events until it ends.
    pub(super) fn stream(&self, method: &str, params: &Value, mut each: impl FnMut(&Value)) -> Vec<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params}).to_string();
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {PARTNER}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut events = Vec::new();
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            if let Some(data) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(data).unwrap();
                assert_eq!(event["id"], json!(9), "{event}");
                each(&event["result"]);
                events.push(event["result"].clone());
            }
        }
        events
    }
}

/// The state that a task or an update names.
pub(super) fn state(value: &Value) -> &str {
    value["status"]["state"].as_str().unwrap_or_default()
}
