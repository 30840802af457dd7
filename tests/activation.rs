//! The operator's socket where a service manager listens on it: passed to the daemon, and left alone otherwise (`sd_listen_fds(3)`).

use std::fs;
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::harness::{Fleet, Output, User};
use crate::journal::of_task;
use crate::service::under_job;

/// Returns the path at which commands look for the operator's socket.
fn place(fleet: &Fleet) -> PathBuf {
    fleet.root().join("run/supervisor.sock")
}

/// Listens as a service manager does: children of this process get the socket.
fn listen(fleet: &Fleet, path: &Path, mode: u32) -> UnixListener {
    let dir = path.parent().unwrap();
    fs::create_dir_all(dir).unwrap();
    for dir in [&fleet.root(), dir] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o711)).unwrap();
        fleet.give(dir);
    }
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fleet.give(path);
    fcntl_setfd(&listener, FdFlags::empty()).unwrap();
    listener
}

/// The command of a daemon to which a socket is passed under a name.
fn passing(fleet: &Fleet, listener: &UnixListener, name: &str) -> Command {
    let number = listener.as_raw_fd();
    let script =
        format!("exec 3<&{number}; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name}; exec \"$@\"");
    let mut command = Command::new("bash");
    command
        .args(["-c", &script, "manager"])
        .arg(fleet.binary())
        .arg("--root")
        .arg(fleet.root())
        .arg("daemon");
    command
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// Starts a command that waits for a daemon, and returns what it came to.
fn waiting(fleet: &Fleet, title: &str) -> std::thread::JoinHandle<Output> {
    let mut command = fleet.command(["create", title, "--assignee", "shell", "--body", "true", "--quiet"]);
    std::thread::spawn(move || Output::of(&mut command))
}

#[test]
fn a_daemon_serves_on_the_socket_that_its_manager_has_passed_and_leaves_it_to_the_next() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let listener = listen(&fleet, &place(&fleet), 0o600);
        let made = inode(&place(&fleet));
        // The kernel keeps what comes while no daemon runs.
        let early = waiting(&fleet, "early");
        fleet.start_by(&mut passing(&fleet, &listener, "operator"));
        let task = early.join().unwrap().ok().stdout.trim().to_owned();
        fleet.wait_for(&task, "done");
        assert_eq!(inode(&place(&fleet)), made);

        assert!(fleet.stop(&["--wait"]).success());
        assert_eq!(inode(&place(&fleet)), made, "it is the manager's");
        let kind = listener.accept().map(drop).map_err(|e| e.kind());
        assert_eq!(kind, Err(ErrorKind::WouldBlock), "what stops the daemon starts none");
        UnixStream::connect(place(&fleet)).unwrap();

        let early = waiting(&fleet, "after a stop");
        fleet.start_by(&mut passing(&fleet, &listener, "operator"));
        early.join().unwrap().ok();
        fleet.kill_daemon();
        let early = waiting(&fleet, "after a crash");
        fleet.start_by(&mut passing(&fleet, &listener, "operator"));
        early.join().unwrap().ok();
        assert_eq!(inode(&place(&fleet)), made);
    }
}

#[test]
fn a_passed_socket_is_refused_that_is_not_the_operators_or_that_others_reach() {
    let start = |fleet: &Fleet, listener: &UnixListener, name: &str| {
        let mut command = passing(fleet, listener, name);
        fleet.dress(&mut command);
        Output::of(&mut command)
    };
    let fleet = Fleet::offline();
    let listener = listen(&fleet, &place(&fleet), 0o666);
    let refused = start(&fleet, &listener, "operator").refused(77, "mode 0666");
    assert!(refused.stderr.contains("SocketMode=0600"), "{}", refused.stderr);
    let refused = start(&fleet, &listener, "supervisor.socket").refused(2, "\"supervisor.socket\"");
    assert!(refused.stderr.contains("FileDescriptorName=operator"), "{}", refused.stderr);

    let fleet = Fleet::offline();
    let elsewhere = listen(&fleet, &fleet.root().join("run/elsewhere.sock"), 0o600);
    let refused = start(&fleet, &elsewhere, "operator").refused(2, "elsewhere.sock");
    let expected = format!("ListenStream={}", place(&fleet).display());
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
}

#[test]
fn where_a_manager_listens_no_daemon_of_a_person_takes_the_socket_and_the_end_of_the_unit_leaves_it() {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = 1\n");
    let listener = listen(&fleet, &place(&fleet), 0o600);
    let made = inode(&place(&fleet));
    fleet.start_by(&mut passing(&fleet, &listener, "operator"));
    let task = fleet.create("runs", "exec sleep 600", &[]);
    fleet.wait_for(&task, "running");
    fleet.eventually("its worker runs", || (!fleet.processes_with(&of_task(&task)).is_empty()).then_some(()));
    fleet.kill_daemon();

    let refused = fleet.cli(["daemon"]).refused(4, "a service manager, or another process, listens on");
    assert!(refused.stderr.contains("systemctl stop supervisor.socket"), "{}", refused.stderr);
    assert_eq!(inode(&place(&fleet)), made);

    under_job(&fleet, "after-stop", "stop").ok();
    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(inode(&place(&fleet)), made);
    UnixStream::connect(place(&fleet)).unwrap();
}

#[test]
fn a_passed_socket_whose_file_is_removed_is_replaced_by_one_of_the_daemons_own() {
    let fleet = Fleet::offline();
    let listener = listen(&fleet, &place(&fleet), 0o600);
    fleet.start_by(&mut passing(&fleet, &listener, "operator"));
    fs::remove_file(place(&fleet)).unwrap();
    fleet.eventually("the daemon puts one back", || place(&fleet).exists().then_some(()));
    let task = fleet.create("one", "true", &[]);
    fleet.wait_for(&task, "done");
    assert!(fleet.stop(&["--wait"]).success());
    assert!(!place(&fleet).exists(), "it was the daemon's");

    fleet.start_by(&mut passing(&fleet, &listener, "operator"));
    let log = fleet.log();
    assert!(log.contains("passed_socket_without_file"), "{log}");
    let task = fleet.create("two", "true", &[]);
    fleet.wait_for(&task, "done");
}
