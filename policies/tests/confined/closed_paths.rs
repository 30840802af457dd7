//! What lies beneath a granted directory and is closed all the same, and what a run may do to others and leave to them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use policies::{ClosedPaths, Layer, RunContext, State};

use crate::lab::{Lab, is_root, labs, with_text};

/// A directory that a policy grants for reading, with a root, another task's directory and a socket in it.
struct Granted {
    dir: String,
    text: String,
    closed: ClosedPaths,
    _socket: UnixListener,
}

fn granted(lab: &Lab) -> Granted {
    let dir = lab.path("opt");
    for name in ["sv/boards", "sv/home", "task", "tool"] {
        fs::create_dir_all(Path::new(&dir).join(name)).unwrap();
    }
    for name in ["sv/operator.key", "sv/home/mine", "task/secret", "tool/program"] {
        fs::write(Path::new(&dir).join(name), "x").unwrap();
    }
    let socket = UnixListener::bind(Path::new(&dir).join("tool/open.sock")).unwrap();
    fs::set_permissions(Path::new(&dir).join("tool/open.sock"), fs::Permissions::from_mode(0o777)).unwrap();
    if is_root() {
        for name in ["sv/operator.key", "sv/home", "sv/home/mine", "task", "task/secret"] {
            chown(Path::new(&dir).join(name), Some(lab.uid), Some(lab.uid)).unwrap();
        }
    }
    let at = |name: &str| Path::new(&dir).join(name);
    let closed = ClosedPaths { places: vec![at("sv")], own: vec![at("sv/home")], tasks: vec![at("task")] };
    let text = format!("version = 1\nextends = 'default'\n[filesystem]\nro = ['/etc', '{dir}']\n");
    Granted { dir, text, closed, _socket: socket }
}

#[test]
fn a_root_and_the_directory_of_another_task_beneath_a_grant_are_not_there() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        let Granted { dir, text, closed, .. } = granted(&lab);
        let context = RunContext { closed, ..lab.context() };
        let context = RunContext { write: vec![format!("{dir}/sv/home").into()], ..context };
        let more = with_text(&text);
        for name in ["sv/operator.key", "task/secret"] {
            let path = format!("{dir}/{name}");
            let open = RunContext { closed: ClosedPaths::default(), ..context.clone() };
            assert_eq!(lab.probe_in("", &open, &more, &["read", &path]), "OPEN", "{path}");
            assert_eq!(lab.probe_in("", &context, &more, &["read", &path]), "BLOCKED ENOENT", "{path}");
            assert_eq!(lab.probe_in("", &context, &more, &["stat", &path]), "BLOCKED ENOENT", "{path}");
        }
        for path in ["tool/program", "sv/home/mine"].map(|name| format!("{dir}/{name}")) {
            assert_eq!(lab.probe_in("", &context, &more, &["read", &path]), "OPEN", "{path}");
        }
        let made = format!("{dir}/sv/home/made");
        assert_eq!(lab.probe_in("", &context, &more, &["create", &made]), "OPEN");
        let planted = format!("{dir}/sv/planted");
        assert_ne!(lab.probe_in("", &context, &more, &["create", &planted]), "OPEN");
    }
}

#[test]
fn without_a_view_a_grant_that_holds_a_root_is_refused() {
    for lab in labs() {
        let Granted { text, closed, .. } = granted(&lab);
        let context = RunContext { closed, ..lab.context() };
        let more = format!(r#"{},"view":false"#, with_text(&text));
        let output = lab.command("", &context, &more, &["/bin/true"]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("cannot be hidden (switched off)"), "{printed}");
    }
}

#[test]
fn a_second_name_of_a_root_is_covered_too() {
    for lab in labs() {
        if !lab.has_view() || !is_root() {
            skips::skip("a bind mount needs root");
            continue;
        }
        let Granted { dir, text, closed, .. } = granted(&lab);
        let alias = format!("{dir}/alias");
        fs::create_dir(&alias).unwrap();
        let boards = format!("{dir}/sv");
        fs::write(format!("{boards}/boards/board.db"), "x").unwrap();
        let done = Command::new("/bin/mount").args(["--bind", &boards, &alias]).status().unwrap();
        if !done.success() {
            skips::skip("no bind mount can be made here");
            continue;
        }
        let context = RunContext { closed, ..lab.context() };
        let more = with_text(&text);
        let path = format!("{alias}/boards/board.db");
        let open = RunContext { closed: ClosedPaths::default(), ..context.clone() };
        let (free, closed) =
            [&open, &context].map(|context| lab.probe_in("", context, &more, &["stat", &path])).into();
        assert!(Command::new("/bin/umount").arg(&alias).status().unwrap().success());
        assert_eq!((free.as_str(), closed.as_str()), ("OPEN", "BLOCKED ENOENT"));
    }
}

#[test]
fn a_socket_in_a_granted_directory_cannot_be_connected_to() {
    for lab in labs() {
        let granted = granted(&lab);
        let path = format!("{}/tool/open.sock", granted.dir);
        assert_eq!(lab.free(&["socket", &path]), "OPEN");
        let more = with_text(&granted.text);
        if lab.has_view() {
            let report = lab.run("", &lab.context(), &more, &["/bin/true"]).0;
            if report.landlock_abi < 9 {
                assert_eq!(report.state(Layer::UnixSockets), Some(State::Partial), "{report}");
                // Another file stands in its place, and nobody listens there.
                let printed = lab.probe_in("", &lab.context(), &more, &["socket", &path]);
                assert!(["BLOCKED ECONNREFUSED", "BLOCKED EACCES"].contains(&printed.as_str()), "{printed}");
            }
        }
        let more = format!(r#"{more},"view":false"#);
        assert_eq!(lab.probe_in("", &lab.context(), &more, &["socket", &path]), "BLOCKED EPERM");
    }
}

#[test]
fn a_user_without_a_name_gets_one() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        for policy in ["default", "strict"] {
            let name = lab.run(policy, &lab.context(), "", &["/usr/bin/id", "-un"]).1;
            assert!(name == "worker" || !is_root(), "{policy}: {name}");
            let group = lab.run(policy, &lab.context(), "", &["/usr/bin/id", "-gn"]).1;
            assert!(group == "worker" || !is_root(), "{policy}: {group}");
            let home = lab.run(policy, &lab.context(), "", &["/bin/sh", "-c", "echo ~worker"]).1;
            assert!(home == lab.path("home") || !is_root(), "{policy}: {home}");
        }
    }
}

#[test]
fn the_preset_for_tests_has_a_loopback_and_no_other_network() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no namespaces here for {:?}", lab.caller));
            continue;
        }
        assert_eq!(lab.probe("test", &["tcp-pair"]), "OPEN");
        assert_eq!(lab.probe("default", &["tcp-pair"]), "BLOCKED EPERM");
        assert_eq!(lab.free(&["tcp-connect", &lab.port()]), "OPEN");
        assert_eq!(lab.probe("test", &["tcp-connect", &lab.port()]), "BLOCKED ECONNREFUSED");
        let udp = lab.udp.local_addr().unwrap().port().to_string();
        assert_eq!(lab.probe("test", &["udp", &udp]), "OPEN", "on an interface of its own");
        lab.udp.set_nonblocking(true).unwrap();
        assert!(lab.udp.recv(&mut [0; 8]).is_err(), "nothing has come to the host's");
    }
}
