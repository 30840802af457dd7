//! Hostile use of a connection: the client gets a reply or is disconnected, and all others are served meanwhile.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Fleet;
use crate::listeners::{as_worker, idle_worker};
use crate::siege::{all_is_well, begin, connect, rest, sockets, upload};

/// Longer than any step of a request may take, and shorter than a test waits for bytes.
const CUT_OFF: Duration = Duration::from_secs(29);

#[test]
fn whatever_is_sent_is_answered_or_cut_off_and_leaves_no_connection_behind() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let before = sockets(&fleet);
    let get =
        format!("GET /api/v1/tasks/{task} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
    let post = get.replace("GET", "POST").replace(&format!("/{task}"), "");
    let fields = |count: usize| (0..count).map(|at| format!("x-{at}: y\r\n")).collect::<Vec<_>>().concat();
    let long = "x".repeat(160 << 10);
    let table = [
        ("one question and then nothing", format!("{get}\r\n"), "HTTP/1.1 200 "),
        ("more fields than there may be", format!("{get}{}\r\n", fields(100)), "HTTP/1.1 431 "),
        ("a long field", format!("{get}x: {long}\r\n\r\n"), "HTTP/1.1 431 "),
        ("a long path", format!("GET /{long} HTTP/1.1\r\n\r\n"), "HTTP/1.1 4"),
        ("no HTTP", "\u{0}\u{1}\r\n\r\n".to_owned(), "HTTP/1.1 400 "),
        (
            "another protocol",
            format!("{get}connection: upgrade\r\nupgrade: websocket\r\n\r\n"),
            "HTTP/1.1 200 ",
        ),
        (
            "a tunnel",
            get.replace(&format!("GET /api/v1/tasks/{task}"), "CONNECT localhost:1") + "\r\n",
            "HTTP/1.1 4",
        ),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), ""),
        ("two lengths", format!("{post}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"), "HTTP/1.1 400 "),
        (
            "a body that goes on",
            format!("{post}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{{"),
            "HTTP/1.1 4",
        ),
        (
            "a chunk without an end",
            format!("{post}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nffffffffff"),
            "HTTP/1.1 4",
        ),
    ];
    let sent: Vec<_> =
        table.into_iter().map(|(what, text, answer)| (what, started(&fleet, &text), answer)).collect();
    // What it asks is answered, though it says no more; what it does not say to its end is not waited for.
    let closed = [
        ("nothing", ""),
        ("half a head", "GET / HT"),
        ("half a body", &*format!("{post}content-length: 9\r\n\r\n{{")),
    ];
    let closed = closed.map(|(what, text)| {
        let stream = begin(&fleet, text);
        stream.shutdown(Shutdown::Write).unwrap();
        (what, stream, "")
    });

    all_is_well(&fleet);

    for (what, stream, answer) in sent.into_iter().chain(closed) {
        let start = Instant::now();
        let said = rest(stream);
        assert!(start.elapsed() < CUT_OFF, "{what}: it was not cut off: {said}");
        assert!(said.starts_with(answer) && !said.starts_with("HTTP/1.1 101"), "{what}: {said}");
    }
    fleet.eventually("no connection is left", || (sockets(&fleet) <= before).then_some(()));
}

#[test]
fn a_body_in_chunks_without_end_is_refused_when_it_is_too_large() {
    let fleet = Fleet::boot();
    let (_, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let head = format!(
        "POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut stream = begin(&fleet, &head);
    let reader = stream.try_clone().unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(1 << 16));
    // It ends when the daemon has closed the connection, and not before.
    let start = Instant::now();
    while stream.write_all(chunk.as_bytes()).is_ok() {
        assert!(start.elapsed() < CUT_OFF * 2, "nobody stops it");
    }
    let said = rest(reader);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 413 "), "{said}");
    all_is_well(&fleet);
}

#[test]
fn questions_that_are_sent_all_at_once_are_answered_one_after_the_other() {
    const MANY: usize = 300;
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let ask =
        format!("GET /api/v1/tasks/{task} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
    let mut stream = connect(&fleet);
    let writer = stream.try_clone().unwrap();
    let all = [format!("{ask}\r\n").repeat(MANY - 1), format!("{ask}connection: close\r\n\r\n")].concat();
    // More than a socket holds: it is taken in no faster than the answers are read.
    let sending = std::thread::spawn(move || send(writer, all.as_bytes()));
    let said = rest(stream.try_clone().unwrap());
    sending.join().unwrap();
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), MANY);
    stream.flush().unwrap();
    all_is_well(&fleet);
}

/// Sends what the daemon takes: it may close the connection before that is all.
fn started(fleet: &Fleet, text: &str) -> UnixStream {
    let mut stream = connect(fleet);
    drop(stream.write_all(text.as_bytes()));
    stream
}

fn send(mut stream: UnixStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

#[test]
fn a_file_that_nobody_reads_is_given_up_and_so_is_its_place() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let door = as_worker(&fleet, &token);
    let path = format!("/api/v1/tasks/{task}/attachments?filename=large");
    let kept = door.send_as("POST", &path, None, &vec![b'x'; 8 << 20]).json(201);
    let before = sockets(&fleet);
    let ask = format!(
        "GET /api/v1/attachments/{} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n",
        kept["id"]
    );
    let unread: Vec<UnixStream> = (0..8).map(|_| begin(&fleet, &ask)).collect();
    let half = begin(&fleet, &upload(&task, &token, "half", 1000));

    all_is_well(&fleet);

    fleet.eventually("they are given up", || (sockets(&fleet) <= before).then_some(()));
    drop((unread, half));
    assert_eq!(door.get(&format!("/api/v1/tasks/{task}")).status, 200);
}

#[test]
fn request_ids_without_number_leave_the_latest_replies_alone() {
    let fleet = Fleet::offline();
    fleet.configure("[api]\nrequests_per_second_per_run = 10000\nrequests_per_second_per_tenant = 10000\nconnections_per_second_per_worker = 10000");
    fleet.start();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let door = as_worker(&fleet, &token);
    let beat = |id: usize, note: &str| {
        let door = door.with("x-request-id", &format!("id-{id}"));
        door.post("/api/v1/verbs/heartbeat", &json!({"task_id": task, "note": note})).status
    };
    for id in 0..1005 {
        assert_eq!(beat(id, "one"), 200);
    }
    assert_eq!(beat(1004, "another body"), 422, "the latest is kept");
    assert_eq!(beat(0, "another body"), 200, "the first is not");
    let long = door.with("x-request-id", &"x".repeat(5000));
    assert_eq!(long.post("/api/v1/verbs/heartbeat", &json!({"task_id": task})).status, 422);
    all_is_well(&fleet);
}
