//! What the mounts of a run permit, and what it sees of processes.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use policies::{Arrange, Arrangement, ClosedPaths, PidNamespace, RunContext};

use crate::lab::{Caller, Lab, is_root, labs, with_user};

/// The options of the last mount at a path, of what `mountinfo` of proc(5) says.
fn options(mountinfo: &str, at: &str) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        Some((*words.get(4)?, *words.get(5)?))
    });
    mounts.rev().find(|(place, _)| *place == at).map(|(_, options)| options.to_owned())
}

#[test]
fn a_view_permits_no_more_than_is_granted() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        for name in ["ws/fresh", "shown", "shown/sv"] {
            fs::create_dir(lab.path(name)).unwrap();
        }
        if is_root() {
            chown(lab.path("ws/fresh"), Some(lab.uid), Some(lab.uid)).unwrap();
        }
        let places = vec![lab.path("shown/sv").into(), lab.path("shown/gone").into()];
        let context = RunContext {
            read: vec![lab.path("shown").into()],
            closed: ClosedPaths {
                places,
                tasks: vec![lab.path("shown/moved").into()],
                ..ClosedPaths::default()
            },
            arrangement: Arrangement {
                steps: vec![Arrange::Fresh { at: lab.path("ws/fresh").into() }],
                ..Arrangement::default()
            },
            ..lab.context()
        };
        let seen = lab.run("default", &context, "", &["/bin/cat", "/proc/self/mountinfo"]).1;
        let [ws, bin, fresh, shown, covered] =
            ["ws", "bin", "ws/fresh", "shown", "shown/sv"].map(|name| lab.path(name));
        for (at, permitted) in [
            ("/", "ro,nosuid,nodev,"),
            ("/usr", "ro,nosuid,nodev,"),
            (&bin, "ro,nosuid,nodev,"),
            (&shown, "ro,nosuid,nodev,"),
            (&covered, "ro,nosuid,nodev,"),
            (&fresh, "ro,nosuid,nodev,noexec,"),
            (&ws, "rw,nosuid,nodev,"),
            ("/tmp", "rw,nosuid,nodev,"),
            ("/dev/null", "rw,nosuid,"),
            ("/dev/shm", "rw,nosuid,nodev,noexec,"),
            ("/dev/pts", "rw,nosuid,noexec,"),
        ] {
            let options = options(&seen, at);
            assert!(options.as_deref().is_some_and(|all| all.starts_with(permitted)), "{at}: {options:?}");
        }
        if is_root() {
            for at in ["/etc/passwd", "/etc/group"] {
                assert!(options(&seen, at).unwrap().starts_with("ro,nosuid,nodev,"), "{at}: {seen}");
            }
        }
    }
}

#[test]
fn what_is_arranged_for_a_run_is_read_and_written_as_it_is_meant() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        let [fresh, shown, lent] = ["place", "place/shown", "place/lent"].map(|name| lab.path(name));
        for name in ["place", "store", "store/shown", "store/lent"] {
            fs::create_dir(lab.path(name)).unwrap();
            if is_root() {
                chown(lab.path(name), Some(lab.uid), Some(lab.uid)).unwrap();
            }
        }
        fs::write(lab.path("store/shown/file"), "x").unwrap();
        let steps = vec![
            Arrange::Fresh { at: fresh.clone().into() },
            Arrange::Show { at: shown.clone().into(), source: lab.path("store/shown").into() },
            Arrange::Lend { at: lent.clone().into(), source: lab.path("store/lent").into() },
        ];
        let context =
            RunContext { arrangement: Arrangement { steps, ..Arrangement::default() }, ..lab.context() };
        let probe = |what: &str, path: String| lab.probe_in("default", &context, "", &[what, &path]);
        assert_eq!(probe("list", fresh.clone()), "OPEN");
        assert_eq!(probe("read", format!("{shown}/file")), "OPEN");
        assert_eq!(probe("create", format!("{lent}/made")), "OPEN");
        for path in [format!("{fresh}/made"), format!("{shown}/made")] {
            assert_ne!(probe("create", path), "OPEN");
        }
    }
}

#[test]
fn an_empty_directory_takes_the_place_of_one_of_any_user_and_group() {
    // Any number that is neither the caller nor a group of the caller.
    const OTHER: u32 = 54_321;
    for lab in labs().filter(|lab| is_root() && lab.has_view()) {
        for (name, uid) in [("group", lab.uid), ("user", OTHER)] {
            let fresh = lab.path(name);
            fs::create_dir(&fresh).unwrap();
            chown(&fresh, Some(uid), Some(OTHER)).unwrap();
            let steps = vec![Arrange::Fresh { at: fresh.clone().into() }];
            let arrangement = Arrangement { steps, ..Arrangement::default() };
            let context = RunContext { arrangement, ..lab.context() };
            let answer = lab.probe_in("default", &context, "", &["list", &fresh]);
            assert_eq!(answer, "OPEN", "{name} {:?}", lab.caller);
        }
    }
}

#[test]
fn what_the_host_does_not_permit_on_a_mount_no_run_is_permitted() {
    for lab in labs().filter(|lab| lab.caller == Caller::Root && lab.has_view()) {
        let place = lab.path("opt");
        fs::create_dir(&place).unwrap();
        let mount = |options: &str| {
            let done = Command::new("/bin/mount").args(["-o", options, &place, &place]).status();
            done.unwrap().success()
        };
        if !mount("bind") {
            skips::skip("no bind mount can be made here");
            continue;
        }
        let is_limited = mount("remount,bind,ro,nodev,noexec");
        let context = RunContext { read: vec![place.clone().into()], ..lab.context() };
        let seen = lab.run("default", &context, "", &["/bin/cat", "/proc/self/mountinfo"]).1;
        assert!(Command::new("/bin/umount").arg(&place).status().unwrap().success());
        assert!(is_limited);
        let options = options(&seen, &place).unwrap();
        assert!(options.starts_with("ro,nosuid,nodev,noexec,"), "{options}");
    }
}

#[test]
fn root_without_its_capabilities_has_no_view() {
    let setpriv = "/usr/bin/setpriv";
    if !is_root() || !fs::exists(setpriv).unwrap() {
        skips::skip("only root has capabilities to give up");
        return;
    }
    for lab in labs().filter(|lab| lab.caller == Caller::Root) {
        for capability in ["sys_admin", "sys_chroot"] {
            let mut without = Command::new(setpriv);
            without.arg(format!("--bounding-set=-{capability}")).arg(lab.path("bin/confined")).arg("view");
            let printed = String::from_utf8(without.output().unwrap().stdout).unwrap();
            assert!(printed.contains("root lacks CAP_SYS_ADMIN"), "{capability}: {printed}");
        }
    }
}

#[test]
fn the_first_process_of_a_pid_namespace_sees_its_own_processes_alone() {
    for lab in labs() {
        if !lab.has_view() || (lab.caller == Caller::User && masks_proc()) {
            skips::skip(&format!("no pid namespace with a /proc of its own here for {:?}", lab.caller));
            continue;
        }
        let own =
            if lab.caller == Caller::Root { PidNamespace::Privileged } else { PidNamespace::UserNamespace };
        let context = RunContext { pid_namespace: Some(own), parent: 0, ..lab.context() };
        for more in ["", r#","view":false"#] {
            let words = ["/bin/sh", "-c", "echo $$ /proc/[0-9]*; cat /proc/self/mountinfo"];
            let run = lab.command("default", &context, more, &words);
            let mut first = Command::new(run.get_program());
            with_user(&lab, &mut first);
            let output = first.arg("first").args(run.get_args()).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.lines().nth(1), Some("1 /proc/1"), "{:?} {more}: {printed}", lab.caller);
            let options = options(&printed, "/proc").unwrap();
            assert!(options.starts_with("rw,nosuid,nodev,noexec,"), "{more}: {options}");
        }
    }
}

/// Whether this host hides parts of `/proc` from its users, as containers do: they can mount no other one.
fn masks_proc() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mut places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    places.any(|place| place.starts_with("/proc/") && place != "/proc/sys/fs/binfmt_misc")
}

#[test]
fn no_view_is_made_in_a_run() {
    for lab in labs() {
        let own = lab.path("bin/confined");
        let printed = lab.run("default", &lab.context(), "", &[&own, "view"]).1;
        assert!(printed.starts_with("error: failed to "), "{printed}");
    }
}

/// What a process in a Landlock domain of its own can do to others.
#[test]
fn a_process_in_a_domain_of_its_own_keeps_its_files_and_traces_no_other() {
    for lab in labs() {
        let (victim, secret) = (lab.victim.id().to_string(), lab.path("sibling/secret"));
        let printed = |lab: &Lab, words: &[&str]| {
            let mut command = Command::new(lab.path("bin/confined"));
            with_user(lab, &mut command);
            String::from_utf8(command.args(words).output().unwrap().stdout).unwrap().trim().to_owned()
        };
        if lab.caller == Caller::Root {
            assert_eq!(printed(&lab, &["probe", "trace", &victim]), "OPEN");
        }
        assert_eq!(printed(&lab, &["domain", "trace", &victim]), "BLOCKED EPERM", "{:?}", lab.caller);
        assert_eq!(printed(&lab, &["domain", "read", &secret]), "OPEN", "{:?}", lab.caller);
    }
}

#[test]
fn a_workspace_beneath_tmp_is_seen_in_a_tmp_of_the_runs_own() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        let shared = tempfile::Builder::new().prefix("shared").tempdir_in("/tmp").unwrap();
        fs::set_permissions(shared.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let at = |name: &str| shared.path().join(name);
        for name in ["inner/ws", "inner/read", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        if is_root() {
            chown(at("inner/ws"), Some(lab.uid), Some(lab.uid)).unwrap();
        }
        let context = RunContext { workspace: at("inner/ws"), read: vec![at("inner/read")], ..lab.context() };
        let own = shared.path().file_name().unwrap().to_str().unwrap();
        let script = format!(
            "echo hi > /tmp/made && mkdir /tmp/dir && cat /tmp/made; ls /tmp; echo done > /tmp/{own}/inner/ws/file; \
             for place in {own} {own}/inner {own}/inner/read; do touch /tmp/$place/new 2>/dev/null && echo writes $place; done; \
             for place in {own} {own}/inner; do ls /tmp/$place 2>/dev/null && echo lists $place; done; \
             mv /tmp/{own} /tmp/moved 2>/dev/null && echo moves; test -e /tmp/{own}/other && echo sees; ls /tmp/{own}/inner/ws"
        );
        let printed = lab.run("default", &context, "", &["/bin/sh", "-c", &script]).1;
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        let mut expected = ["hi", "dir", "made", own, "file"];
        expected.sort_unstable();
        assert_eq!(lines, expected, "{:?}: {printed}", lab.caller);
        assert_eq!(fs::read_to_string(at("inner/ws/file")).unwrap(), "done\n");
        assert!(!fs::exists("/tmp/made").unwrap() && fs::exists(lab.path("tmp/made")).unwrap());
        // The user of the worker can empty the place.
        let mut remove = Command::new("/bin/sh");
        remove.args(["-c", "rm -r \"$0\"/*", &lab.path("tmp")]);
        if is_root() {
            std::os::unix::process::CommandExt::uid(&mut remove, lab.uid);
        }
        assert!(remove.status().unwrap().success(), "{:?}", lab.caller);
    }
}
