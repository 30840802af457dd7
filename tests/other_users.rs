//! Another user of the host, neither operator nor worker: the parts of a root that this user reaches, and a root of their own.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::harness::{Fleet, Output, User, skip};
use crate::journal::of_task;

/// Nobody's on a host, and not the user of an ordinary fleet.
const STRANGER: u32 = 65_533;

/// A command of the stranger's.
fn stranger(fleet: &Fleet, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    fleet.dress(&mut command);
    command.uid(STRANGER).gid(STRANGER).current_dir("/");
    command
}

/// Everything beneath a directory, and the directory itself.
fn beneath(dir: &Path, found: &mut Vec<String>) {
    found.push(dir.display().to_string());
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            beneath(&entry.path(), found);
        } else {
            found.push(entry.path().display().to_string());
        }
    }
}

#[test]
fn a_stranger_opens_no_file_of_a_root_connects_to_no_socket_and_touches_no_process() {
    if User::current() != User::Root {
        return skip("another user of the host: needs root");
    }
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let task = fleet.create("works", "echo secret > private; touch up; exec sleep 600", &[]);
        fleet.eventually("it works", || {
            fleet.processes_with(&of_task(&task)).iter().any(|one| one.command == "sleep 600").then_some(())
        });
        let (mut paths, root) = (Vec::new(), fleet.root().canonicalize().unwrap());
        beneath(&root, &mut paths);
        assert!(paths.len() > 30 && paths.iter().any(|path| path.ends_with("/sock")), "{paths:?}");
        // Reading lists a directory, and writing to a socket is what connecting to it needs.
        let mut script = String::new();
        for path in &paths {
            writeln!(script, "[ ! -r '{path}' ] || echo 'r {path}'; [ ! -w '{path}' ] || echo 'w {path}'")
                .unwrap();
        }
        let pids: Vec<i32> = fleet.processes().iter().map(|process| process.pid).collect();
        assert!(pids.len() >= 3, "a daemon, a shim and a worker: {pids:?}");
        for pid in pids {
            let files = format!(
                "cat /proc/{pid}/environ; cat /proc/{pid}/mem; ls /proc/{pid}/fd; ls /proc/{pid}/cwd/"
            );
            writeln!(script, "({files}; kill -0 {pid}) 2>/dev/null && echo 'touched {pid}'").unwrap();
            writeln!(script, "({files}) 2>/dev/null | head -c 100").unwrap();
        }
        let told = Output::of(stranger(&fleet, "/bin/sh").args(["-c", &script])).stdout;
        // The program, and the settings as this test wrote them.
        let open =
            ["bin/supervisor", "supervisor.toml"].map(|name| format!("r {}", root.join(name).display()));
        let wrong: Vec<&str> = told.lines().filter(|line| !open.iter().any(|open| open == line)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(told.lines().count() >= 1, "the program is there for all to run: {told}");
        for verb in [&["status"][..], &["list"], &["stop"], &["create", "x"], &["daemon"], &["export"]] {
            let mut command = stranger(&fleet, root.join("bin/supervisor"));
            let refused = Output::of(command.arg("--root").arg(&root).args(verb));
            refused.refused(77, "");
        }
    }
}

#[test]
fn a_root_of_another_user_is_refused_before_a_link_in_it_is_followed() {
    if User::current() != User::Root {
        return skip("another user of the host: needs root");
    }
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let precious = fleet.home().join("precious");
        fs::write(&precious, "precious").unwrap();
        fleet.give(&precious);
        let planted = fleet.home().join("planted");
        fs::create_dir(&planted).unwrap();
        for name in ["board.lock", "operator.key"] {
            symlink(&precious, planted.join(name)).unwrap();
        }
        chown(&planted, Some(STRANGER), Some(STRANGER)).unwrap();
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o777)).unwrap();
        let on = |verb: &[&str]| {
            let mut command = Command::new(fleet.binary());
            fleet.dress(&mut command);
            Output::of(command.arg("--root").arg(&planted).args(verb))
        };
        for verb in [&["create", "x"][..], &["list"], &["daemon"], &["dispatch"], &["doctor"], &["status"]] {
            on(verb).refused(77, &format!("belongs to uid {STRANGER}"));
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        assert_eq!(fs::read_dir(&planted).unwrap().count(), 2, "nothing was made in it");
        // Its own directory, in which everybody may put links.
        chown(&planted, user.id().or(Some(0)), None).unwrap();
        on(&["create", "x"]).refused(77, "can be written to by every user");
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["board.lock", "operator.key"] {
            fs::remove_file(planted.join(name)).unwrap();
        }
        assert_eq!(on(&["create", "x"]).code, 0);
    }
}

#[test]
fn an_import_does_not_wait_for_the_writer_of_a_pipe() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let pipe = fleet.home().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fleet.give(&pipe);
        let refused = fleet.cli(["--board", "other", "import", pipe.to_str().unwrap()]);
        refused.refused(2, "is not a regular file");
    }
}

#[test]
fn a_scratch_workspace_that_its_worker_has_opened_is_closed_when_its_run_has_ended() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let id = fleet.create("opens it", "chmod 0777 . && exit 1", &["--max-retries", "1"]);
        let shown = fleet.wait_for(&id, "blocked");
        let place = shown["task"]["workspace_path"].as_str().unwrap();
        let mode = fs::metadata(place).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{mode:o}");
    }
}
