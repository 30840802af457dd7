//! The lane `http`: its worker posts the task to a service, and what the service answers is how the run ends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Fleet, User};
use crate::proxy::is_possible;

/// Request to a service.
#[derive(Clone, Debug)]
struct ServiceCall {
    /// The first line and the headers.
    head: String,
    body: Value,
}

/// A service on the host's loopback interface.
struct Service {
    port: u16,
    asked: Arc<Mutex<Vec<ServiceCall>>>,
}

impl Service {
    /// Answers each request by a function.
    fn start(
        answer: impl Fn(&ServiceCall, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let noted = Arc::clone(&asked);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                thread::spawn(move || {
                    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
                    let Ok(asked) = receive(&mut stream) else { return };
                    noted.lock().unwrap().push(asked.clone());
                    // A worker that does not want the rest ends the connection.
                    drop(answer(&asked, &mut stream));
                });
            }
        });
        Service { port, asked }
    }

    /// Answers with a status, headers and a body.
    fn saying(status: u16, head: &'static str, body: &'static str) -> Self {
        Service::start(move |_, stream| say(stream, status, head, body))
    }

    fn asked(&self) -> Vec<ServiceCall> {
        self.asked.lock().unwrap().clone()
    }

    /// A lane of this service.
    fn lane(&self, fleet: &Fleet, name: &str, more: &str) {
        let text = format!(
            "extends = \"http\"\n[service]\nurl = \"http://127.0.0.1:{}/work?x=1\"\n{more}",
            self.port
        );
        fleet.lane(name, &text);
    }
}

fn receive(stream: &mut TcpStream) -> std::io::Result<ServiceCall> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or_default()];
    stream.read_exact(&mut body)?;
    Ok(ServiceCall { head, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn say(stream: &mut TcpStream, status: u16, head: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

const JSON: &str = "content-type: application/json\r\n";

fn create(fleet: &Fleet, lane: &str) -> String {
    let words = ["create", "read the news", "--assignee", lane, "--max-retries", "1", "--body", "all of it"];
    fleet.json(words)["id"].as_str().unwrap().to_owned()
}

/// A root for lanes of services. None where the host lacks what they need.
fn root(user: User) -> Option<Fleet> {
    let fleet = Fleet::offline_as(user);
    is_possible(&fleet).then_some(fleet)
}

#[test]
fn a_service_gets_the_task_and_its_answer_completes_it() {
    for user in User::all() {
        let Some(fleet) = root(user) else { return };
        let answer = r#"{"complete": {"summary": "nothing new", "metadata": {"pages": 3}}}"#;
        let service = Service::saying(200, JSON, answer);
        fleet.write_config("secrets/service-key", "sk-Key-of-a-service\n");
        let key = fleet.root().join("secrets/service-key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let more =
            "[service.headers]\nx-key = \"k ${SERVICE_KEY}\"\n[secrets]\nSERVICE_KEY = \"service-key\"\n";
        service.lane(&fleet, "news", more);
        fleet.start();
        let task = create(&fleet, "news");
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["latest_summary"], "nothing new", "{shown:#}");
        assert_eq!(shown["runs"][0]["metadata"]["pages"], 3, "{shown:#}");
        let [asked] = service.asked().try_into().unwrap();
        assert!(asked.head.starts_with("post /work?x=1 http/1.1"), "{}", asked.head);
        assert!(asked.head.contains("x-key: k sk-key-of-a-service"), "{}", asked.head);
        let run = shown["runs"][0]["id"].as_u64().unwrap();
        assert!(asked.head.contains(&format!("idempotency-key: {task}-{run}")), "{}", asked.head);
        let about =
            ["version", "task", "run", "board", "profile", "purpose"].map(|key| asked.body[key].clone());
        assert_eq!(
            about,
            [json!(1), json!(task), json!(run), json!("default"), json!("news"), json!("work")]
        );
        let context = asked.body["context"].as_str().unwrap();
        assert!(context.contains("read the news") && context.contains("all of it"), "{context}");
        assert!(!context.contains("How this run ends"), "a service runs no commands: {context}");
        let log = fleet.cli(["log", &task]).ok().stdout;
        assert!(log.contains(answer), "{log}");
        assert!(!shown.to_string().contains("sk-Key") && !log.contains("sk-Key"), "{shown:#}");
    }
}

#[test]
fn an_answer_is_logged_as_it_comes_and_its_last_line_is_the_verdict() {
    let Some(fleet) = root(User::current()) else { return };
    let seen = Arc::new(Mutex::new(false));
    let wait = Arc::clone(&seen);
    let service = Service::start(move |_, stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";
        writeln!(stream, "{head}{{\"step\": \"reading\"}}")?;
        // The rest comes when the first line was read in the log.
        while !*wait.lock().unwrap() {
            thread::sleep(Duration::from_millis(5));
        }
        writeln!(stream, "{{\"block\": {{\"question\": \"which paper?\", \"choices\": [\"A\", \"B\"]}}}}")
    });
    service.lane(&fleet, "news", "");
    fleet.start();
    let task = create(&fleet, "news");
    fleet.eventually("the first line is in the log", || {
        fleet.cli(["log", &task]).stdout.contains("{\"step\": \"reading\"}").then_some(())
    });
    assert_eq!(fleet.status_of(&task), "running");
    *seen.lock().unwrap() = true;
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "blocked", "{shown:#}");
    assert!(shown.to_string().contains("which paper?"), "{shown:#}");
}

#[test]
fn each_refusal_of_a_service_is_read_as_what_it_is() {
    let Some(fleet) = root(User::current()) else { return };
    let table = [
        ("limit", Service::saying(429, "retry-after: 3600\r\n", "slow down"), "rate_limited", "scheduled"),
        ("busy", Service::saying(503, "", "restarting"), "rate_limited", "scheduled"),
        ("missing", Service::saying(404, "", "no such thing"), "crashed", "blocked"),
        ("moved", Service::saying(307, "location: http://127.0.0.1:1/\r\n", ""), "crashed", "blocked"),
        ("odd", Service::saying(200, JSON, "{\"finish\": {}}"), "crashed", "blocked"),
        (
            "other",
            Service::saying(200, JSON, "{\"complete\": {\"task_ids\": [\"t_00000000\"]}}"),
            "crashed",
            "blocked",
        ),
        ("words", Service::saying(200, "content-type: text/plain\r\n", "all done"), "unreported", "blocked"),
    ];
    for (lane, service, ..) in &table {
        service.lane(&fleet, lane, "");
    }
    let locked = Service::saying(401, "", "who are you?");
    locked.lane(&fleet, "locked", "");
    // The words of a text are its summary, where the lane demands that.
    let teller = Service::saying(200, "content-type: text/plain\r\n", "all done");
    let words = "extends = \"http\"\non_clean_exit = \"complete\"\n[service]\nurl = ";
    fleet.lane("told", &format!("{words}\"http://127.0.0.1:{}/\"\n", teller.port));
    fleet.start();
    let tasks: Vec<String> = table.iter().map(|(lane, ..)| create(&fleet, lane)).collect();
    let (refused, told) = (create(&fleet, "locked"), create(&fleet, "told"));
    for ((lane, service, outcome, status), task) in table.iter().zip(&tasks) {
        let shown = fleet.wait_for(task, status);
        assert_eq!(shown["runs"][0]["outcome"], *outcome, "{lane}: {shown:#}");
        assert_eq!(service.asked().len(), 1, "{lane}");
    }
    let why = |task: &str| fleet.show(task)["runs"][0].to_string();
    assert!(why(&tasks[2]).contains("has answered 404") && why(&tasks[2]).contains("no such thing"));
    assert!(why(&tasks[5]).contains("the board refuses the verdict"), "{}", why(&tasks[5]));
    let holds = fleet.json(["holds"]).to_string();
    assert!(holds.contains("has answered 429"), "{holds}");
    fleet.eventually("the lane waits for a login", || {
        fleet.json(["holds"]).to_string().contains("\"login\"").then_some(())
    });
    assert_eq!(fleet.status_of(&refused), "ready");
    assert_eq!(fleet.wait_for(&told, "done")["latest_summary"], "all done");
}

#[test]
fn a_service_that_the_sandbox_denies_is_a_failure_with_the_line_that_allows_it() {
    let Some(fleet) = root(User::current()) else { return };
    let service = Service::saying(200, JSON, r#"{"complete": {"summary": "reached"}}"#);
    let lane = |scheme: &str, more: &str| {
        format!("{more}extends = \"http\"\n[service]\nurl = \"{scheme}://localhost:{}/w\"\n", service.port)
    };
    fleet.lane("clear", &lane("http", ""));
    fleet.lane("tunnel", &lane("https", ""));
    fleet.start();
    let mut allowed = String::new();
    for name in ["tunnel", "clear"] {
        let shown = fleet.wait_for(&create(&fleet, name), "blocked");
        let run = &shown["runs"][0];
        let error = run["error"].as_str().unwrap();
        assert_eq!(run["outcome"], "crashed", "{run:#}");
        assert!(error.contains("lets no request through to the service at"), "{error}");
        let denied = format!("; the sandbox denied connecting to localhost:{}, which is ", service.port);
        assert!(error.contains(&denied), "{error}");
        let told = error.split_once("does not allow it; ").unwrap().1;
        let place = format!(" in lanes.d/{name}.toml does");
        told.strip_suffix(&place).unwrap_or_else(|| panic!("{error}")).clone_into(&mut allowed);
    }
    assert_eq!(fleet.json(["holds"]), json!([]));
    let check = fleet.cli(["lane", "check", "clear"]).stdout;
    assert!(check.contains("which is not an address of the internet"), "{check}");
    let address = format!("127.0.0.1:{}", service.port);
    assert!(check.contains("before its tables: hosts = ["), "{check}");
    if allowed.contains(&address) {
        assert!(check.contains(&format!("hosts = [\"{address}\"]")), "{check}");
        fleet.lane("named", &lane("http", &format!("{allowed}\n")));
        fleet.signal(nix::sys::signal::Signal::SIGHUP);
        let check = fleet.eventually("the lane is there", || {
            Some(fleet.cli(["lane", "check", "named"]).stdout).filter(|said| said.contains("network"))
        });
        assert!(!check.contains("before its tables"), "{check}");
        fleet.wait_for(&create(&fleet, "named"), "done");
    }
}

#[test]
fn an_answer_without_an_end_is_cut_off() {
    let Some(fleet) = root(User::current()) else { return };
    let service = Service::start(|_, stream| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")?;
        let piece = vec![b' '; 1 << 20];
        loop {
            stream.write_all(&piece)?;
        }
    });
    service.lane(&fleet, "endless", "");
    fleet.start();
    let task = create(&fleet, "endless");
    let shown = fleet.wait_for(&task, "blocked");
    assert_eq!(shown["runs"][0]["outcome"], "crashed", "{shown:#}");
    assert!(shown.to_string().contains("has more than 67108864 bytes"), "{shown:#}");
}

#[test]
fn the_lane_itself_names_no_service_and_says_what_to_write() {
    let fleet = Fleet::offline();
    let created = fleet.json(["create", "x", "--assignee", "http"]);
    let warned = created["warnings"].to_string();
    assert!(warned.contains("waits for the lane http: it names no service"), "{warned}");
    let check = fleet.cli(["lane", "check", "http"]);
    assert_eq!(check.code, 1, "{}", check.stdout);
    assert!(check.stdout.contains("lanes.d/http.toml: extends = \"http\""), "{}", check.stdout);
    let service = Service::saying(200, JSON, "{}");
    service.lane(&fleet, "news", "");
    let shown = fleet.cli(["lane", "show", "news"]).ok().stdout;
    assert!(shown.contains(&format!("hosts         127.0.0.1:{}", service.port)), "{shown}");
    let defect = "extends = \"http\"\n[service]\nurl = \"news.example\"\n";
    fleet.lane("wrong", defect);
    let check = fleet.cli(["lane", "check", "wrong"]);
    assert!(
        check.stdout.contains("wrong.toml:3 (url): `news.example` does not begin with"),
        "{}",
        check.stdout
    );
}
