//! A worker that means harm, at the doors: it opens, sends and reads as slowly and as much as it can, and neither its
//! neighbours nor the operator wait for it.

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Fleet, User};
use crate::listeners::{as_worker, first_socket, idle_worker, operator, socket_of};

/// Connections of one process at once, by default.
const EACH: usize = 64;

/// Connects to the door of the oldest run.
pub(crate) fn connect(fleet: &Fleet) -> UnixStream {
    connect_at(&first_socket(fleet))
}

fn connect_at(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sends the beginning of something at the door of the oldest run.
pub(crate) fn begin(fleet: &Fleet, text: &str) -> UnixStream {
    begin_at(&first_socket(fleet), text)
}

fn begin_at(socket: &Path, text: &str) -> UnixStream {
    let mut stream = connect_at(socket);
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// All that a connection still has to say, until the daemon closes it.
pub(crate) fn rest(mut stream: UnixStream) -> String {
    let mut bytes = Vec::new();
    // A connection that was reset has nothing more to say.
    drop(stream.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The head of an upload of this many bytes to a task.
pub(crate) fn upload(task: &str, token: &str, name: &str, length: usize) -> String {
    format!(
        "POST /api/v1/tasks/{task}/attachments?filename={name} HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Returns the number of sockets that the daemon has open.
pub(crate) fn sockets(fleet: &Fleet) -> usize {
    let entries = fs::read_dir(format!("/proc/{}/fd", fleet.daemon_pid())).unwrap().flatten();
    entries
        .filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
        })
        .count()
}

/// The bounds that a task's runs have met.
pub(crate) fn bounds_met(fleet: &Fleet, task: &str) -> Vec<String> {
    let events = fleet.json(["events", "--task", task, "--kind", "throttled"])["events"].clone();
    let events = events.as_array().unwrap();
    events.iter().map(|event| event["payload"]["bound"].as_str().unwrap().to_owned()).collect()
}

/// A neighbour's task comes and goes, and reports to the board meanwhile; the operator is answered.
#[track_caller]
pub(crate) fn all_is_well(fleet: &Fleet) {
    fleet.cli(["status"]).ok();
    let task = fleet.create(
        "neighbour",
        "supervisor heartbeat > /dev/null && echo fine",
        &["--tenant", "neighbour"],
    );
    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "fine");
}

#[test]
fn connections_that_ask_nothing_are_bounded_and_the_oldest_give_way() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        idle_worker(&fleet, &["--tenant", "hostile"]);
        let before = sockets(&fleet);
        let crowd: Vec<UnixStream> = (0..EACH * 3).map(|_| connect(&fleet)).collect();

        all_is_well(&fleet);

        fleet.eventually("the crowd is bounded", || (sockets(&fleet) <= before + EACH + 8).then_some(()));
        let mut crowd = crowd.into_iter();
        let said = rest(crowd.next().unwrap());
        assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("retry-after: 1"), "{said}");
        assert!(said.contains("application/problem+json") && said.contains("\"throttled\""), "{said}");
        // A caller that comes now is answered.
        let ask = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        fleet.eventually("a new one is good", || {
            let mut stream = connect(&fleet);
            // It may be refused as long as those that had to leave are not gone.
            drop(stream.write_all(ask.as_bytes()));
            rest(stream).starts_with("HTTP/1.1 403 ").then_some(())
        });
        drop(crowd);
        assert_eq!(fleet.log().matches("throttled").count(), 1, "the log is not flooded: {}", fleet.log());
    }
}

#[test]
fn a_worker_with_a_uid_of_its_own_is_told_of_in_its_tasks_events_when_it_floods_the_door() {
    if User::current() != User::Root {
        return crate::harness::skip("workers with uids of their own: needs root");
    }
    let fleet = Fleet::boot();
    let script = "exec 2>&1; echo begun; python3 - <<'END'
import os, socket, time
path = os.environ['SUPERVISOR_SOCKET']
held = []
for _ in range(300):
    s = socket.socket(socket.AF_UNIX); s.connect(path); held.append(s)
open('up', 'w').close()
time.sleep(600)
END";
    if !Path::new("/usr/bin/python3").exists() {
        return crate::harness::skip("a worker that floods the door: needs python3");
    }
    let task = fleet.create("floods", script, &["--tenant", "hostile"]);
    fleet.wait_for(&task, "running");
    fleet.eventually("its flood is recorded", || (!bounds_met(&fleet, &task).is_empty()).then_some(()));
    all_is_well(&fleet);
    assert_eq!(bounds_met(&fleet, &task), ["connections_per_worker"]);
}

#[test]
fn a_caller_that_is_slow_at_any_step_is_cut_off() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let before = sockets(&fleet);
    let body = "x".repeat(1 << 20);
    let large =
        as_worker(&fleet, &token).post("/api/v1/tasks", &json!({"title": "large", "body": body})).json(201);
    let large = large["id"].as_str().unwrap();
    let json = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let slow = [
        ("nothing", String::new()),
        ("half a head", "GET /api/v1/tasks HTTP/1.1\r\nhost: loc".to_owned()),
        (
            "half a body",
            format!(
                "POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{json}"
            ),
        ),
        ("half a body of nobody", format!("POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\n{json}")),
        ("half a file", upload(&task, &token, "half", 1000) + "half"),
    ];
    let slow: Vec<_> = slow.iter().map(|(what, text)| (*what, begin(&fleet, text))).collect();
    // It asks for more than a socket holds, and reads none of it.
    let path = format!("GET /api/v1/tasks/{large} HTTP/1.1\r\nhost: localhost\r\n");
    let unread = begin(&fleet, &format!("{path}authorization: Bearer {token}\r\n\r\n"));

    all_is_well(&fleet);

    for (what, stream) in slow {
        let start = Instant::now();
        let said = rest(stream);
        assert!(start.elapsed() < Duration::from_secs(29), "{what}: it was not cut off: {said}");
    }
    // The client still has its end of it open.
    fleet.eventually("the reply is given up", || (sockets(&fleet) <= before).then_some(()));
    drop(unread);
    assert_eq!(fs::read_dir(fleet.root().join("boards/default/attachments")).unwrap().count(), 0);
}

#[test]
fn files_that_come_slowly_are_bounded_for_each_run_and_hold_up_nobody() {
    let fleet = Fleet::boot();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let head = |name: &str| upload(&task, &token, name, 1000) + "x";
    let slow: Vec<UnixStream> = (0..4).map(|at| begin(&fleet, &head(&format!("f{at}")))).collect();
    fleet.eventually("four are on their way in", || {
        let drafts = fs::read_dir(fleet.root().join("boards/default/attachments")).ok()?;
        (drafts.count() == 4).then_some(())
    });

    for _ in 0..3 {
        let said = as_worker(&fleet, &token).send_as(
            "POST",
            &format!("/api/v1/tasks/{task}/attachments?filename=one-more"),
            None,
            b"x",
        );
        assert_eq!(said.status, 429, "{}", said.body);
        assert!(
            said.head.contains("retry-after: 1") && said.body.contains("uploads_per_run"),
            "{}",
            said.body
        );
    }
    all_is_well(&fleet);

    fleet.eventually("it is recorded", || (!bounds_met(&fleet, &task).is_empty()).then_some(()));
    assert_eq!(bounds_met(&fleet, &task), ["uploads_per_run"], "once, not three times");
    drop(slow);
    fleet.eventually("what was cut off is gone, and there is room again", || {
        let path = format!("/api/v1/tasks/{task}/attachments?filename=last");
        let said = as_worker(&fleet, &token).send_as("POST", &path, None, b"x");
        let left = fs::read_dir(fleet.root().join("boards/default/attachments")).unwrap().count();
        (said.status == 201 && left == 1).then_some(())
    });
}

#[test]
fn a_tenant_whose_runs_all_upload_slowly_leaves_room_for_the_files_of_others() {
    let fleet = Fleet::boot();
    let mut slow = Vec::new();
    for _ in 0..4 {
        let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
        let head = |at: usize| upload(&task, &token, &format!("f{at}"), 1000) + "x";
        let socket = socket_of(&fleet, &token);
        slow.extend((0..4).map(|at| begin_at(&socket, &head(at))));
    }
    fleet.eventually("as many as may be are on their way in", || {
        let drafts = fs::read_dir(fleet.root().join("boards/default/attachments")).ok()?;
        (drafts.count() == 8).then_some(())
    });

    let (task, token) = idle_worker(&fleet, &["--tenant", "neighbour"]);
    let path = format!("/api/v1/tasks/{task}/attachments?filename=mine");
    let said = as_worker(&fleet, &token).send_as("POST", &path, None, b"x");

    assert_eq!(said.status, 201, "{}", said.body);
    drop(slow);
}

#[test]
fn a_run_that_asks_too_often_is_told_to_wait_and_its_command_line_does() {
    let fleet = Fleet::offline();
    fleet.configure("[api]\nrequests_per_second_per_run = 1");
    fleet.start();
    let script = "for at in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
            supervisor heartbeat > /dev/null || exit 1
        done; echo patient";
    let task = fleet.create("asks", script, &["--tenant", "hostile"]);
    assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "patient");
    let (idle, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let ask =
        format!("GET /api/v1/tasks/{idle} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n");
    // At once and on one connection: on a slow host the rate would come back between two of them otherwise.
    let said = rest(begin(&fleet, &(format!("{ask}\r\n").repeat(12) + &ask + "connection: close\r\n\r\n")));
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let (_, refused) = said.split_once("HTTP/1.1 429 ").expect("one of them was too many");
    assert!(refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("1 requests a second") && refused.contains("\"throttled\""), "{refused}");
    fleet.eventually("it is recorded", || {
        (bounds_met(&fleet, &idle) == ["requests_per_second_per_run"]).then_some(())
    });
    // A neighbour has a rate of its own.
    all_is_well(&fleet);
}

#[test]
fn replies_that_nobody_reads_are_bounded_in_bytes() {
    let fleet = Fleet::offline();
    fleet.configure("[api]\nunread_bytes_per_run = 2000000");
    fleet.start();
    let (_, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let body = "x".repeat(1 << 20);
    let door = as_worker(&fleet, &token);
    let large = door.post("/api/v1/tasks", &json!({"title": "large", "body": body})).json(201);
    let large = large["id"].as_str().unwrap();
    let ask = format!(
        "GET /api/v1/tasks/{large} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    // All are asked for before one is looked at: what nobody reads is given up after a while, and is not counted then.
    let mut unread: Vec<UnixStream> = (0..4).map(|_| begin(&fleet, &ask)).collect();
    let heads = unread.iter_mut().map(|stream| {
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        head
    });
    let heads: Vec<[u8; 12]> = heads.collect();
    assert!(heads.contains(b"HTTP/1.1 200"), "{heads:?}");
    let at = heads.iter().position(|head| head == b"HTTP/1.1 429").expect("one of them was too many");
    let refused = rest(unread.swap_remove(at));
    assert!(refused.contains("unread_bytes_per_run"), "{refused}");
    all_is_well(&fleet);
    drop(unread);
    fleet.eventually("there is room again", || {
        (door.get(&format!("/api/v1/tasks/{large}")).status == 200).then_some(())
    });
}

#[test]
fn a_refused_file_leaves_nothing_behind() {
    let fleet = Fleet::boot();
    let task = fleet.create("goes", "true", &["--triage"]);
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let mut stream = UnixStream::connect(fleet.root().join("run/supervisor.sock")).unwrap();
    let head = format!(
        "POST /api/v1/tasks/{task}/attachments?filename=late HTTP/1.1\r\nhost: localhost\r\n\
         x-supervisor-key: {key}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"a").unwrap();
    let drafts = || fs::read_dir(fleet.root().join("boards/default/attachments")).map_or(0, Iterator::count);
    fleet.eventually("it is on its way in", || (drafts() == 1).then_some(()));
    // Its task goes meanwhile: the row is refused when the bytes are all there.
    fleet.cli(["archive", &task]).ok();
    fleet.cli(["archive", "--rm", &task]).ok();
    stream.write_all(b"b").unwrap();

    let said = rest(stream);

    assert!(said.starts_with("HTTP/1.1 404 "), "{said}");
    assert_eq!(drafts(), 0);
    assert_eq!(operator(&fleet).get("/api/v1/attachments/1").status, 404);
}

/// Durations of repeated calls.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn time(&mut self, something: impl FnOnce()) {
        let start = Instant::now();
        something();
        self.0.push(start.elapsed());
    }

    /// The time that this percentage of them took at most.
    fn percent(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted[(sorted.len() - 1) * percent / 100]
    }

    fn longest(&self) -> Duration {
        self.percent(100)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, all] = [50, 95, 100].map(|percent| self.percent(percent).as_millis());
        write!(f, "half {half} ms, 95 % {most} ms, all {all} ms ({} of them)", self.0.len())
    }
}

/// Durations of a neighbour's task from its creation to its end, and of calls of `status`.
#[derive(Default)]
struct Delays {
    task: Times,
    status: Times,
}

/// Looks as long as is said, and at least twice.
fn delays(fleet: &Fleet, during: Duration) -> Delays {
    let mut seen = Delays::default();
    let begin = Instant::now();
    while seen.task.0.len() < 2 || begin.elapsed() < during {
        seen.task.time(|| {
            let script = "supervisor heartbeat > /dev/null; echo fine";
            let task = fleet.create("n", script, &["--tenant", "neighbour"]);
            assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "fine");
        });
        seen.status.time(|| drop(fleet.cli(["status"]).ok()));
    }
    seen
}

/// Returns the number of hostile workers.
fn attackers() -> usize {
    std::env::var("SUPERVISOR_SIEGE_WORKERS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// The most memory that the daemon has had, in MiB.
fn peak(fleet: &Fleet) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", fleet.daemon_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// The hostile workers go on until a neighbour's tasks have come and gone beside them, whatever that takes on this host.
///
/// `SUPERVISOR_SIEGE=600 cargo test --test e2e -- siege::hostile` lets them try for ten minutes and measures; `SUPERVISOR_SIEGE_WORKERS` says how
/// many there are, else two, and `SUPERVISOR_TEST_BINARY` names a release binary for that. On a host with nothing else to do
/// a neighbour's task is delayed by less than a second, and `status` by less than half of one.
#[test]
fn hostile_workers_that_try_everything_at_once_delay_neither_a_neighbour_nor_the_operator() {
    if !Path::new("/usr/bin/python3").exists() {
        return crate::harness::skip("hostile workers at the door: needs python3");
    }
    let measured = std::env::var("SUPERVISOR_SIEGE").ok().and_then(|text| text.parse().ok());
    let measured = measured.map(Duration::from_secs);
    let during = measured.unwrap_or_default();
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        if measured.is_some() {
            // Each task has a uid of its own, and there are several of them in each second.
            fleet.configure("[worker]\nfirst_uid = 1500000000\nuid_count = 1600000");
        }
        fleet.start_as_service();
        let calm = measured.map(|during| delays(&fleet, during / 5));
        let attack = include_str!("siege/attack.py");
        let script = format!("cat > attack.py <<'END'\n{attack}\nEND\nexec python3 attack.py");
        let body = "x".repeat(100_000);
        let script = format!("{script}\n# {body}");
        let hostile: Vec<String> =
            (0..attackers()).map(|_| fleet.create("hostile", &script, &["--tenant", "hostile"])).collect();
        let workspace = |task: &String| fleet.root().join("workspaces/default").join(task);
        let workspaces: Vec<PathBuf> = hostile.iter().map(workspace).collect();
        for workspace in &workspaces {
            fleet.eventually("it attacks", || workspace.join("begun").exists().then_some(()));
        }

        let besieged = delays(&fleet, during);

        println!("{user:?}: daemon: {} MiB", peak(&fleet));
        println!("a neighbour's task: {}; status: {}", besieged.task, besieged.status);
        fleet.eventually("a door or a request was refused", || {
            fleet.log().contains("throttled").then_some(())
        });
        assert!(hostile.iter().all(|task| fleet.status_of(task) == "running"), "the attack still went on");
        if let Some(calm) = calm {
            println!("before: {}; status: {}", calm.task, calm.status);
            assert!(besieged.task.longest() < calm.task.longest() + Duration::from_secs(1));
            assert!(besieged.status.longest() < calm.status.longest() + Duration::from_millis(500));
        }
        assert!(peak(&fleet) < 1024, "{} MiB", peak(&fleet));
        for (task, workspace) in hostile.iter().zip(&workspaces) {
            fs::write(workspace.join("enough"), "").unwrap();
            let done = fleet.wait_for(task, "done");
            let did = done["latest_summary"].to_string();
            println!("{did}");
            assert!(did.contains("wall held") && !did.contains("wall open"), "{did}");
        }
        let boards = fleet.json(["boards", "list"]);
        assert_eq!(boards.as_array().unwrap().len(), 1, "{boards:#}");
        for hold in fleet.json(["holds"]).as_array().unwrap() {
            assert!(hostile.iter().any(|task| hold["name"] == **task), "{hold:#}");
        }
    }
}
