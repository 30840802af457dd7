//! Traces of runs, with a small server in the place of a collector.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::harness::Fleet;

/// A collector, as it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CollectorAnswer {
    /// It takes what comes.
    Ok,
    /// It refuses it.
    Refused,
    /// It takes the connection and says nothing.
    Silent,
}

/// Data that a collector has received.
struct Collector {
    endpoint: String,
    spans: Arc<Mutex<Vec<Value>>>,
    answer: Arc<Mutex<CollectorAnswer>>,
    /// The connections that it leaves without an answer.
    silent: Arc<Mutex<Vec<TcpStream>>>,
}

impl Collector {
    fn start(answer: CollectorAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/base/", listener.local_addr().unwrap());
        let (spans, answer) = (Arc::new(Mutex::default()), Arc::new(Mutex::new(answer)));
        let silent = Arc::<Mutex<Vec<TcpStream>>>::default();
        let (kept, says, left) = (Arc::clone(&spans), Arc::clone(&answer), Arc::clone(&silent));
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let says = *says.lock().unwrap();
                match says {
                    CollectorAnswer::Silent => left.lock().unwrap().push(stream),
                    CollectorAnswer::Ok | CollectorAnswer::Refused => take(stream, says, &kept),
                }
            }
        });
        Collector { endpoint, spans, answer, silent }
    }

    fn spans(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }

    /// The span of a task's run and those of its steps, once they have come.
    fn trace(&self, fleet: &Fleet, task: &str) -> (Value, Vec<Value>) {
        fleet.eventually("the trace has come", || {
            let spans = self.spans();
            let is_run =
                |span: &&Value| span["name"] == "run" && attribute(span, "task").as_deref() == Some(task);
            let run = spans.iter().find(is_run)?.clone();
            let of_it =
                spans.iter().filter(|span| span["traceId"] == run["traceId"] && span["name"] != "run");
            Some((run.clone(), of_it.cloned().collect()))
        })
    }
}

/// Reads one request and answers it.
fn take(mut stream: TcpStream, answer: CollectorAnswer, spans: &Mutex<Vec<Value>>) {
    let mut bytes = Vec::new();
    let body = loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap_or(0);
        if count == 0 {
            return;
        }
        bytes.extend_from_slice(&piece[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Request::new(&mut headers);
        let Ok(httparse::Status::Complete(begin)) = head.parse(&bytes) else { continue };
        assert_eq!((head.method, head.path), (Some("POST"), Some("/base/v1/traces")));
        let header = |name: &str| {
            let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.map(|header| String::from_utf8_lossy(header.value).into_owned())
        };
        assert_eq!(header("content-type").as_deref(), Some("application/json"));
        let length: usize = header("content-length").unwrap().parse().unwrap();
        if bytes.len() >= begin + length {
            break bytes[begin..].to_vec();
        }
    };
    let message: Value = serde_json::from_slice(&body).unwrap();
    if answer == CollectorAnswer::Ok {
        let resource = &message["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(
            (&service["key"], &service["value"]["stringValue"]),
            (&"service.name".into(), &"supervisor".into())
        );
        spans.lock().unwrap().extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
    }
    let status = if answer == CollectorAnswer::Ok { "200 OK" } else { "400 Bad Request" };
    stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").as_bytes()).ok();
}

fn attribute(span: &Value, name: &str) -> Option<String> {
    let key = format!("supervisor.{name}");
    let found = span["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == *key)?;
    let value = &found["value"];
    value["stringValue"].as_str().or_else(|| value["intValue"].as_str()).map(str::to_owned)
}

fn time(span: &Value, which: &str) -> i128 {
    span[which].as_str().unwrap().parse().unwrap()
}

fn configured(endpoint: &str) -> Fleet {
    let fleet = Fleet::offline();
    fleet.configure(&format!("[telemetry]\notlp_endpoint = \"{endpoint}\"\n"));
    fleet.start();
    fleet
}

/// A counter of `metrics`.
fn counted(fleet: &Fleet, name: &str) -> u64 {
    let text = fleet.cli(["metrics"]).ok().stdout;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("supervisor_{name}_total ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[test]
fn a_run_is_a_span_with_its_steps_as_children() {
    let collector = Collector::start(CollectorAnswer::Ok);
    let fleet = configured(&collector.endpoint);
    let task = fleet.create("one", "exit 0", &[]);
    fleet.wait_for(&task, "done");
    let (run, steps) = collector.trace(&fleet, &task);
    assert_eq!(attribute(&run, "outcome").as_deref(), Some("completed"), "{run}");
    assert_eq!(attribute(&run, "profile").as_deref(), Some("shell"), "{run}");
    assert!(run["parentSpanId"].is_null() && run["status"].is_null(), "{run}");
    assert_eq!(run["traceId"].as_str().map(str::len), Some(32));
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["claim", "workspace", "start", "work", "end"]);
    let mut before = time(&run, "startTimeUnixNano");
    for step in &steps {
        assert_eq!(step["parentSpanId"], run["spanId"], "{step}");
        assert!(
            time(step, "startTimeUnixNano") >= before,
            "{step} begins before the one before it: {steps:#?}"
        );
        assert!(time(step, "endTimeUnixNano") <= time(&run, "endTimeUnixNano"), "{step}");
        before = time(step, "startTimeUnixNano");
    }

    let task = fleet.create("bad", "echo error: broken >&2; exit 3", &["--max-retries", "1"]);
    fleet.wait_for(&task, "blocked");
    let (run, _) = collector.trace(&fleet, &task);
    assert_eq!(run["status"]["code"], 2, "{run}");
    assert_eq!(attribute(&run, "exit_code").as_deref(), Some("3"), "{run}");
    fleet.eventually("the spans are counted", || (counted(&fleet, "spans_exported") >= 12).then_some(()));
    assert_eq!(counted(&fleet, "spans_dropped"), 0);
}

#[test]
fn a_run_that_has_lived_through_its_daemon_has_a_trace_too() {
    let collector = Collector::start(CollectorAnswer::Ok);
    let fleet = configured(&collector.endpoint);
    let go = fleet.home().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let task = fleet.create("long", &script, &["--policy", "unconfined"]);
    fleet.wait_for(&task, "running");
    fleet.eventually("it has been started", || fleet.show(&task)["runs"][0]["spawned_at"].as_f64());
    fleet.kill_daemon();
    fleet.start();
    std::fs::write(&go, "").unwrap();
    fleet.wait_for(&task, "done");
    let (_, steps) = collector.trace(&fleet, &task);
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "work", "end"]);
}

#[test]
fn a_collector_that_is_silent_or_refuses_holds_up_no_run_and_what_it_does_not_take_is_counted() {
    let collector = Collector::start(CollectorAnswer::Silent);
    let fleet = configured(&collector.endpoint);
    for title in ["one", "two", "three"] {
        let task = fleet.create(title, "exit 0", &[]);
        fleet.wait_for(&task, "done");
    }
    fleet.eventually("it was asked, and is silent", || {
        (!collector.silent.lock().unwrap().is_empty()).then_some(())
    });
    assert_eq!((counted(&fleet, "spans_exported"), counted(&fleet, "spans_dropped")), (0, 0));
    *collector.answer.lock().unwrap() = CollectorAnswer::Refused;
    fleet.eventually("what was refused is counted", || (counted(&fleet, "spans_dropped") > 0).then_some(()));
    *collector.answer.lock().unwrap() = CollectorAnswer::Ok;
    let task = fleet.create("four", "exit 0", &[]);
    collector.trace(&fleet, &task);
    assert!(counted(&fleet, "spans_exported") > 0);
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named_and_a_reload_names_one() {
    let collector = Collector::start(CollectorAnswer::Ok);
    let fleet = Fleet::boot();
    let silent = fleet.create("silent", "exit 0", &[]);
    fleet.wait_for(&silent, "done");
    fleet.configure(&format!("[telemetry]\notlp_endpoint = \"{}\"\n", collector.endpoint));
    fleet.cli(["service", "reload"]).ok();
    let heard = fleet.create("heard", "exit 0", &[]);
    collector.trace(&fleet, &heard);
    let is_silent = |span: &Value| attribute(span, "task").as_ref() == Some(&silent);
    assert!(!collector.spans().iter().any(is_silent));

    fleet.write_config("supervisor.toml", "[telemetry]\notlp_endpoint = \"https://collector.example\"\n");
    let refused = fleet.cli(["service", "reload"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("otlp_endpoint") && refused.stderr.contains("http://HOST:PORT"),
        "{}",
        refused.stderr
    );
    fleet.configure("");
}
