//! A board that is served to workers on a loopback port, where nothing hides foreign sockets from them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Fleet, User, skip};

/// Starts a daemon of an ordinary user where no mount namespace can be made, so that workers have no view. Returns whether
/// it serves workers on a port.
fn start_without_views(fleet: &Fleet) -> bool {
    let before = fleet.log().len();
    // Limits of a user namespace hold within those that are made in it (user_namespaces(7)).
    let script = "echo 0 > /proc/sys/user/max_mnt_namespaces && \
        exec unshare --user --map-user=\"$1\" --map-group=\"$2\" -- \"$3\" --root \"$4\" daemon";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--", "sh", "-c", script, "sh"]);
    let id = User::ordinary().id().unwrap_or_else(|| nix::unistd::geteuid().as_raw());
    let group = User::ordinary().id().unwrap_or_else(|| nix::unistd::getegid().as_raw());
    command.args([id.to_string(), group.to_string()]).arg(fleet.binary()).arg(fleet.root());
    let log = fs::File::options().create(true).append(true).open(fleet.log_file()).unwrap();
    fleet.dress(&mut command);
    command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "info");
    fleet.adopt(command.spawn().unwrap());
    let serves = fleet.eventually("the daemon serves, or the host permits no such daemon", || {
        let said = &fleet.log()[before..];
        let refused = said.contains("unshare: ") || said.contains("sh: ");
        (refused || said.contains(" serves ")).then_some(!refused)
    });
    serves && fleet.root().join("worker.port").exists()
}

#[test]
fn a_worker_that_the_next_daemon_takes_over_tells_the_board_over_loopback_that_it_is_done() {
    let fleet = Fleet::offline_as(User::ordinary());
    if !start_without_views(&fleet) {
        return skip(
            "a worker that is taken over on a loopback port: no user namespaces here, or no need of a port",
        );
    }
    let script = "touch up; until [ -e go ]; do sleep 0.02; done
        supervisor comment \"$SUPERVISOR_TASK\" still && supervisor complete --summary \"over $SUPERVISOR_SOCKET\"";
    let task = fleet.create("crosses", script, &[]);
    let workspace = fleet.eventually("it works", || {
        let path = PathBuf::from(fleet.show(&task)["runs"][0]["workspace_path"].as_str()?);
        path.join("up").exists().then_some(path)
    });
    let port = fs::read_to_string(fleet.root().join("worker.port")).unwrap();

    fleet.kill_daemon();
    assert!(start_without_views(&fleet));
    fs::write(workspace.join("go"), "").unwrap();

    let done = fleet.wait_for(&task, "done");
    assert_eq!(done["latest_summary"], format!("over tcp://127.0.0.1:{}", port.trim()), "{done:#}");
    assert_eq!((done["runs"].as_array().unwrap().len(), &done["comments"][0]["body"]), (1, &"still".into()));
}
