//! The event stream of pages that stay open, and the board that they show.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Fleet, User, skip};
use crate::http::Http;

fn operator(fleet: &Fleet) -> Http {
    let client = Http::at(fleet.root().join("run/supervisor.sock"));
    match std::fs::read_to_string(fleet.root().join("operator.key")) {
        Ok(key) => client.with("x-supervisor-key", &key),
        Err(_) => client,
    }
}

/// A stream that is read line by line.
struct Stream {
    lines: BufReader<UnixStream>,
    status: u16,
}

impl Stream {
    fn open(fleet: &Fleet, query: &str, header: &str) -> Self {
        let mut stream = UnixStream::connect(fleet.root().join("run/supervisor.sock")).unwrap();
        // What does not come within this time fails the test.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
        let head = format!(
            "GET /api/v1/stream{query} HTTP/1.1\r\nhost: localhost\r\nx-supervisor-key: {key}\r\n{header}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        while line.trim() != "" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        Stream { lines, status }
    }

    /// The next event of the stream: its name, its id and its data. None where the stream has ended.
    fn next(&mut self) -> Option<(String, Option<i64>, Value)> {
        let (mut name, mut id, mut data) = (String::new(), None, Value::Null);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("event: ") {
                text.clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.parse().unwrap());
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).unwrap();
            } else if line.is_empty() && !name.is_empty() {
                return Some((name, id, data));
            }
        }
    }

    /// The next event of the board.
    fn event(&mut self) -> Value {
        let (name, id, data) = self.next().unwrap();
        assert_eq!((name.as_str(), id), ("event", data["id"].as_i64()));
        data
    }
}

fn comment(api: &Http, task: &str, text: &str) {
    api.post(&format!("/api/v1/tasks/{task}/comments"), &json!({ "body": text })).json(201);
}

fn made(api: &Http, title: &str, tenant: &str) -> String {
    let made = api.post("/api/v1/tasks", &json!({ "title": title, "tenant": tenant })).json(201);
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_stream_says_hello_and_has_each_event_once_also_for_who_comes_back() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = made(&api, "watched", "acme");
    let mut stream = Stream::open(&fleet, "", "");
    let (name, _, hello) = stream.next().unwrap();
    let last = hello["last_event"].as_i64().unwrap();
    assert_eq!((stream.status, name.as_str()), (200, "hello"));
    for at in 0..30 {
        comment(&api, &task, &format!("comment {at}"));
    }
    let seen: Vec<i64> = (0..30).map(|_| stream.event()["id"].as_i64().unwrap()).collect();
    let all = api.get(&format!("/api/v1/events?since={last}")).json(200);
    let all: Vec<i64> = all["events"].as_array().unwrap().iter().map(|e| e["id"].as_i64().unwrap()).collect();
    assert_eq!(seen, all[..30]);

    // Who comes back with the id of an event that it has seen gets those after it.
    for (query, header) in [
        (format!("?since={}", seen[9]), String::new()),
        (String::new(), format!("last-event-id: {}\r\n", seen[9])),
    ] {
        let mut again = Stream::open(&fleet, &query, &header);
        assert_eq!(again.next().unwrap().0, "hello");
        let after: Vec<i64> = (0..20).map(|_| again.event()["id"].as_i64().unwrap()).collect();
        assert_eq!(after, all[10..30]);
    }
}

#[test]
fn a_reader_whose_events_were_folded_is_told_once_and_goes_on_with_the_rest() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = fleet.create("over", "true", &[]);
    fleet.wait_for(&task, "done");
    let last = fleet.json(["events"])["last_event"].clone();
    fleet.json(["gc", "--event-retention-days", "0"]);
    comment(&api, &task, "later");
    let mut stream = Stream::open(&fleet, "?since=0", "");
    assert_eq!(stream.next().unwrap().0, "hello");
    let (name, id, horizon) = stream.next().unwrap();
    assert_eq!((name.as_str(), id, &horizon["through"]), ("folded", None, &last));
    assert_eq!(stream.event()["kind"], "commented");
    comment(&api, &task, "latest");
    assert_eq!(stream.event()["kind"], "commented", "what was folded is said once");
}

#[test]
fn a_stream_of_a_tenant_has_its_events_alone() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let (ours, theirs) = (made(&api, "ours", "acme"), made(&api, "theirs", "globex"));
    let mut stream = Stream::open(&fleet, "?tenant=acme", "");
    stream.next().unwrap();
    comment(&api, &theirs, "not for acme");
    comment(&api, &ours, "for acme");
    let event = stream.event();
    assert_eq!((&event["task_id"], &event["tenant"]), (&json!(ours), &json!("acme")));
}

#[test]
fn a_caller_has_a_bounded_number_of_streams_and_gets_them_back() {
    let fleet = Fleet::boot();
    let mut open: Vec<Stream> = (0..16).map(|_| Stream::open(&fleet, "", "")).collect();
    assert!(open.iter().all(|stream| stream.status == 200));
    assert_eq!(Stream::open(&fleet, "", "").status, 429);
    drop(open.pop());
    fleet.eventually("the place of a stream that was closed is free", || {
        (Stream::open(&fleet, "", "").status == 200).then_some(())
    });
    assert_eq!(Stream::open(&fleet, "?since=yesterday", "").status, 422);
}

#[test]
fn streams_end_when_the_daemon_stops_and_do_not_hold_it_up() {
    let fleet = Fleet::boot();
    let mut stream = Stream::open(&fleet, "", "");
    assert_eq!(stream.next().unwrap().0, "hello");
    fleet.stop(&["--now"]);
    let mut rest = Vec::new();
    stream.lines.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "it ends as a body ends");
}

#[test]
fn a_card_says_what_a_card_shows() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let parent = made(&api, "parent", "acme");
    let child = json!({ "title": "child", "tenant": "acme", "parents": [parent] });
    api.post("/api/v1/tasks", &child).json(201);
    let idea = json!({ "title": "idea", "tenant": "acme", "triage": true });
    let idea = api.post("/api/v1/tasks", &idea).json(201)["id"].clone();
    comment(&api, &parent, "hello");
    let board = api.get("/api/v1/board").json(200);
    let cards: Vec<&Value> =
        board["columns"].as_array().unwrap().iter().flat_map(|c| c["tasks"].as_array().unwrap()).collect();
    let card = |title: &str| *cards.iter().find(|card| card["title"] == title).unwrap();
    let shown = card("parent");
    assert_eq!((&shown["comments"], &shown["links"]), (&json!(1), &json!(1)));
    assert_eq!(shown["children"], json!({ "done": 0, "total": 1 }));
    assert_eq!((&shown["cost_usd_micros"], &shown["waits"]["code"]), (&json!(0), &json!("unassigned")));
    assert_eq!(card("child")["waits"]["code"], "parents");
    assert_eq!((&card("idea")["id"], &card("idea")["needs_person"]), (&idea, &json!(true)));
    assert_eq!(shown["needs_person"], false);
    assert!(shown["age"].is_u64() && shown.get("why").is_none(), "{shown}");
    assert_eq!(board["counts"], json!({ "ready": 1, "todo": 1, "triage": 1 }));
    let narrow = api.get("/api/v1/board?search=idea&limit=1").json(200);
    let found: Vec<&Value> =
        narrow["columns"].as_array().unwrap().iter().flat_map(|c| c["tasks"].as_array().unwrap()).collect();
    assert_eq!((found.len(), &found[0]["id"], &narrow["next"]), (1, &idea, &Value::Null));
    assert_eq!(narrow["tenants"], json!(["acme"]), "the filters offer the whole board");
}

/// The user of the tenant acme.
const ANN: u32 = 4001;

/// Has the user of acme ask for a path with curl.
fn by_ann(fleet: &Fleet, args: &[&str], path: &str) -> Command {
    let socket = fleet.root().join("run/tenants.sock");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--no-buffer", "--unix-socket"]).arg(socket).args(args);
    curl.arg(format!("http://supervisor{path}")).uid(ANN).gid(ANN);
    curl
}

/// Returns status and body of a response to the user of acme.
fn answered(fleet: &Fleet, args: &[&str], path: &str) -> (u16, String) {
    let output = by_ann(fleet, &[args, &["--write-out", "\n%{http_code}"]].concat(), path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_owned())
}

#[test]
fn the_user_of_a_tenant_streams_and_sees_its_tenant_alone() {
    if User::current() != User::Root {
        return skip("users of tenants: needs root");
    }
    let fleet = Fleet::boot();
    fleet.cli(["tenant", "create", "acme", "--member", &ANN.to_string()]).ok();
    let api = operator(&fleet);
    let (ours, theirs) = (made(&api, "ours", "acme"), made(&api, "secret of globex", "globex"));

    assert_eq!(answered(&fleet, &[], "/api/v1/stream?tenant=globex").0, 403);
    assert_eq!(answered(&fleet, &[], "/api/v1/board?tenant=globex").0, 403);
    let (status, board) = answered(&fleet, &[], "/api/v1/board");
    assert!(status == 200 && board.contains(&ours), "{board}");
    assert!(!board.contains("globex") && !board.contains(&theirs), "{board}");
    let board: Value = serde_json::from_str(&board).unwrap();
    assert_eq!(board["counts"], json!({ "ready": 1 }));

    let mut curl = by_ann(&fleet, &[], "/api/v1/stream").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(curl.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line == "event: hello").unwrap();
    comment(&api, &theirs, "not for acme");
    comment(&api, &ours, "for acme");
    let first = lines.find(|line| line.starts_with("data: {\"id\"")).unwrap();
    curl.kill().unwrap();
    curl.wait().unwrap();
    assert!(first.contains(&ours) && !first.contains(&theirs), "{first}");
}

/// A WebSocket that is read message by message, as a client would.
struct WebSocket(BufReader<UnixStream>);

impl WebSocket {
    /// Asks for one. Returns the status of the answer as well.
    fn ask(fleet: &Fleet, path: &str, version: &str) -> (u16, Self) {
        let mut stream = UnixStream::connect(fleet.root().join("run/supervisor.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-supervisor-key: {key}\r\nconnection: Upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: {version}\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let (mut status, mut accepted) = (0, false);
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            if status == 0 {
                status = line.split(' ').nth(1).unwrap().parse().unwrap();
            }
            // The answer to this key in RFC 6455, section 1.3.
            accepted |= line.to_lowercase() == "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n";
            if line.trim().is_empty() {
                break;
            }
        }
        assert_eq!(status == 101, accepted);
        (status, WebSocket(lines))
    }

    /// The next frame: its kind and what it has.
    fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut take = |count: usize| {
            let mut bytes = vec![0; count];
            self.0.read_exact(&mut bytes).unwrap();
            bytes
        };
        let head = take(2);
        let length = match head[1] & 0x7f {
            126 => usize::from(u16::from_be_bytes(take(2).try_into().unwrap())),
            127 => usize::try_from(u64::from_be_bytes(take(8).try_into().unwrap())).unwrap(),
            short => usize::from(short),
        };
        (head[0] & 0x0f, take(length))
    }

    /// The next page of events.
    fn page(&mut self) -> Value {
        loop {
            let (kind, bytes) = self.frame();
            if kind == 1 {
                return serde_json::from_slice(&bytes).unwrap();
            }
        }
    }
}

#[test]
fn the_events_come_over_a_websocket_from_a_cursor_on() {
    let fleet = Fleet::boot();
    let api = operator(&fleet);
    let task = made(&api, "watched", "acme");
    for prefix in ["/api/v1", "/api/plugins/kanban"] {
        let last = api.get("/api/v1/events?since=0").json(200)["last_event"].as_i64().unwrap();
        let (status, mut socket) =
            WebSocket::ask(&fleet, &format!("{prefix}/events?since={}", last - 1), "13");
        let hello = socket.page();
        assert_eq!((status, &hello["last_event"], &hello["events"]), (101, &json!(last), &json!([])));
        let first = socket.page();
        assert_eq!((&first["events"][0]["id"], &first["cursor"]), (&json!(last), &json!(last)));
        comment(&api, &task, "hello");
        let next = socket.page();
        assert_eq!(next["events"][0]["kind"], "commented");
    }
    assert_eq!(WebSocket::ask(&fleet, "/api/v1/events", "8").0, 422);
    assert_eq!(WebSocket::ask(&fleet, "/api/v1/events?wait=3", "13").0, 422);
    let (_, mut socket) = WebSocket::ask(&fleet, "/api/v1/events", "13");
    socket.page();
    fleet.stop(&["--now"]);
    assert_eq!(socket.frame().0, 8, "it is closed when the daemon stops");
}

#[test]
fn the_user_of_a_tenant_changes_its_tasks_alone() {
    if User::current() != User::Root {
        return skip("users of tenants: needs root");
    }
    let fleet = Fleet::boot();
    fleet.cli(["tenant", "create", "acme", "--member", &ANN.to_string()]).ok();
    let api = operator(&fleet);
    let (ours, theirs) = (made(&api, "ours", "acme"), made(&api, "secret of globex", "globex"));
    let send = |method: &str, path: &str, body: &Value| {
        let body = body.to_string();
        let head = ["--header", "content-type: application/json", "--request", method, "--data", &body];
        answered(&fleet, &head, path)
    };
    let patch = |id: &str, change: &Value| send("PATCH", &format!("/api/v1/tasks/{id}"), change);
    assert_eq!(patch(&ours, &json!({ "priority": 3, "title": "new" })).0, 200);
    assert_eq!(patch(&ours, &json!({ "status": "blocked" })).0, 200);
    for beyond in [
        json!({ "tenant": "globex" }),
        json!({ "workspace": "dir:/tmp" }),
        json!({ "policy": "unconfined" }),
        json!({ "status": "done" }),
    ] {
        assert_eq!(patch(&ours, &beyond).0, 403, "{beyond}");
    }
    let none = "t_ffffffff";
    let said = |id: &str| {
        let (status, body) = patch(id, &json!({ "title": "x" }));
        (status, body.replace(id, "ID"))
    };
    assert_eq!(said(&theirs), said(none), "a task of another tenant looks as one that is not there");
    let bulk = |ids: &[&str]| {
        let (status, body) = send("POST", "/api/v1/tasks/bulk", &json!({ "ids": ids, "archive": true }));
        assert_eq!(status, 200, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        body["results"].as_array().unwrap().clone()
    };
    let rows = bulk(&[&theirs, &ours, none]);
    assert_eq!(rows[1]["ok"], true, "{rows:?}");
    assert_eq!((fleet.status_of(&ours).as_str(), fleet.status_of(&theirs).as_str()), ("archived", "ready"));
    let named = |row: &Value, id: &str| row.to_string().replace(id, "ID");
    assert_eq!(
        named(&rows[0], &theirs),
        named(&rows[2], none),
        "one of another tenant looks as one that is not there"
    );
    assert_eq!(rows[0]["code"], "not_found");
    assert_eq!(send("POST", "/api/v1/markdown", &json!({ "text": "a" })).0, 200);
    let (_, live) = answered(&fleet, &[], "/api/v1/runs/live?tenant=globex");
    assert!(live.contains("not_permitted"), "{live}");
    let (_, config) = answered(&fleet, &[], "/api/v1/config");
    assert!(config.contains("\"default_tenant\":\"acme\""), "{config}");
    let (_, document) = answered(&fleet, &[], "/api/v1/openapi.json");
    let document: Value = serde_json::from_str(&document).unwrap();
    let has = |path: &str| document["paths"][path].is_object();
    assert!(has("/api/v1/board") && !has("/api/v1/verbs/missions") && !has("/api/v1/export"));
}
