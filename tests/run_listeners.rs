//! Each run has a listener of its own: no other run reaches it, requests above its limits wait, and it outlives a daemon.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Fleet, User, binary};
use crate::http::Http;
use crate::listeners::{idle_worker, run_sockets};
use crate::siege::{all_is_well, begin, bounds_met, connect, rest, sockets, upload};

/// Pause of a run that sends requests too often.
const REST: Duration = Duration::from_secs(1);

/// A request of a run that is known by its token, on a connection that ends with it.
fn ask(task: &str, token: &str) -> String {
    format!(
        "GET /api/v1/tasks/{task} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    )
}

#[test]
fn a_run_sees_its_own_door_and_no_other() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let (_, foreign) = idle_worker(&fleet, &["--tenant", "neighbour"]);
        let neighbours = run_sockets(&fleet).into_values().next().unwrap();
        let script = format!(
            "supervisor heartbeat > /dev/null && echo served; ls {}; test -e {} || echo hidden",
            fleet.root().join("run/doors").display(),
            neighbours.display()
        );
        let task = fleet.create("looks", &script, &[]);
        fleet.wait_for(&task, "done");
        let said = fleet.cli(["log", &task]).stdout;
        assert!(said.contains("served") && said.contains("hidden"), "{said}");
        assert!(!said.contains(&name_of(&neighbours)), "{said}");

        // Another run's token is no better at a door than none.
        let (own, token) = idle_worker(&fleet, &[]);
        let door = run_sockets(&fleet).into_values().next_back().unwrap();
        let at = |token: &str| Http::at(&door).with("authorization", &format!("Bearer {token}"));
        let path = format!("/api/v1/tasks/{own}");
        at(&token).get(&path).json(200);
        let [foreign, wrong] = [foreign.as_str(), "00"].map(|token| at(token).get(&path));
        assert_eq!((foreign.status, &foreign.body), (403, &wrong.body));
    }
}

/// Returns the name of a socket's directory.
fn name_of(socket: &Path) -> String {
    socket.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_door_goes_with_its_run() {
    let fleet = Fleet::boot();
    let task = fleet.create("goes", "true", &[]);
    fleet.wait_for(&task, "done");
    assert!(run_sockets(&fleet).is_empty());
    // What a daemon leaves that is killed goes when the next one starts.
    let left = fleet.root().join("run/doors/77-00000000");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("sock"), "").unwrap();
    fleet.kill_daemon();
    fleet.start();
    assert!(!left.exists());
}

#[test]
fn a_run_that_connects_too_often_waits_and_none_of_its_connections_is_refused() {
    let fleet = Fleet::offline();
    fleet.configure("[api]\nconnections_per_second_per_worker = 5");
    fleet.start();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let start = Instant::now();
    let all: Vec<UnixStream> = (0..20).map(|_| begin(&fleet, &ask(&task, &token))).collect();
    for stream in all {
        let said = rest(stream);
        assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    }
    // Two seconds' worth at once, and five in each second after that.
    assert!(start.elapsed() >= Duration::from_millis(1800), "{:?}", start.elapsed());
    assert_eq!(bounds_met(&fleet, &task), ["connections_per_second_per_worker"]);
    all_is_well(&fleet);
}

#[test]
fn a_run_whose_connections_are_all_busy_waits_for_one_of_them() {
    let fleet = Fleet::offline();
    fleet.configure("[api]\nconnections_per_worker = 2");
    fleet.start();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let slow = ["one", "two"].map(|name| begin(&fleet, &(upload(&task, &token, name, 1000) + "x")));
    let drafts = || fs::read_dir(fleet.root().join("boards/default/attachments")).ok().map(Iterator::count);
    fleet.eventually("two files are on their way in", || (drafts() == Some(2)).then_some(()));
    let waits = begin(&fleet, &ask(&task, &token));

    fleet.eventually("it waits", || (bounds_met(&fleet, &task) == ["connections_per_worker"]).then_some(()));
    let [one, _two] = slow;
    drop(one);

    let said = rest(waits);
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    all_is_well(&fleet);
}

/// However many connections the configuration allows, most descriptors are kept for the operator, the boards and the runs.
#[test]
fn a_run_that_holds_every_connection_it_can_leaves_descriptors_for_the_operator_and_for_neighbours() {
    const DESCRIPTORS: usize = 240;
    let fleet = Fleet::offline();
    let many = ["connections", "connections_per_worker", "connections_per_second_per_worker"];
    fleet.configure(&format!("[api]\n{}", many.map(|key| format!("{key} = 100000\n")).concat()));
    let script = "ulimit -n \"$2\" && exec \"$0\" --root \"$1\" daemon";
    let mut command = Command::new("sh");
    command.args(["-c", script, binary()]).arg(fleet.root()).arg(DESCRIPTORS.to_string());
    fleet.start_by(&mut command);
    let (task, _) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let (before, socket) = (sockets(&fleet), run_sockets(&fleet).into_values().next().unwrap());
    // The last of them wait in connect(2), until the daemon ends.
    let connect = move || (0..DESCRIPTORS * 2).map_while(|_| UnixStream::connect(&socket).ok()).collect();
    let crowd = std::thread::spawn::<_, Vec<UnixStream>>(connect);

    fleet.eventually("the bound is met", || (!bounds_met(&fleet, &task).is_empty()).then_some(()));
    for _ in 0..3 {
        all_is_well(&fleet);
    }

    let taken = sockets(&fleet) - before;
    assert!((DESCRIPTORS / 8..DESCRIPTORS * 5 / 8).contains(&taken), "{taken} of {DESCRIPTORS} descriptors");
    assert!(!fleet.log().contains("not_accepted"), "{}", fleet.log());
    fleet.stop(&["--kill"]);
    drop(crowd.join().unwrap());
}

#[test]
fn a_run_that_asks_too_often_rests_and_costs_nothing_meanwhile() {
    const MANY: usize = 8;
    let fleet = Fleet::offline();
    fleet.configure("[api]\nrequests_per_second_per_run = 1");
    fleet.start();
    let (task, token) = idle_worker(&fleet, &["--tenant", "hostile"]);
    let mut stream = connect(&fleet);
    // It does not wait for an answer, nor does it do what the answers say.
    let one = ask(&task, &token).replace("connection: close\r\n", "");
    let start = Instant::now();
    stream.write_all((one.repeat(10 + MANY) + &ask(&task, &token)).as_bytes()).unwrap();
    let said = rest(stream);
    let refused = said.matches("HTTP/1.1 429 ").count();
    assert!(refused >= 2, "{refused}");
    let rests = u32::try_from(refused - 1).unwrap();
    assert!(start.elapsed() >= REST * rests, "{refused} refusals in {:?}", start.elapsed());
    assert_eq!(bounds_met(&fleet, &task), ["requests_per_second_per_run"]);
    all_is_well(&fleet);
}

#[test]
fn a_worker_is_served_at_its_door_by_the_next_daemon_and_after_somebody_removed_the_socket() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "touch up; while [ ! -e go ]; do sleep 0.02; done
            supervisor heartbeat > /dev/null && echo again; rm go; touch beat
            while [ ! -e go ]; do sleep 0.02; done; supervisor complete --summary 'at the same door'";
        let task = fleet.create("stays", script, &[]);
        let workspace = fleet.eventually("the worker is up", || {
            let path = PathBuf::from(fleet.show(&task)["runs"][0]["workspace_path"].as_str()?);
            path.join("up").exists().then_some(path)
        });
        let go = || fs::write(workspace.join("go"), "").unwrap();
        fleet.kill_daemon();
        fleet.start();
        go();
        fleet.eventually("it has reported", || workspace.join("beat").exists().then_some(()));

        let socket = run_sockets(&fleet).into_values().next().unwrap();
        fs::remove_file(&socket).unwrap();
        fleet.eventually("the socket is put back", || socket.exists().then_some(()));
        go();

        assert_eq!(fleet.wait_for(&task, "done")["latest_summary"], "at the same door");
    }
}
