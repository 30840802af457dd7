//! Applies the shipped policies to real processes and tries to get out.
//!
//! Each probe is first shown open without a policy: one that is not is a broken test. Run by root, workers get a user of
//! their own and, besides, the tests run once more as an ordinary user; run by an ordinary user the former are skipped.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod closed_paths;
mod example;
mod lab;
mod mounts;
mod process;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::{Caller, Lab, assert_closed, copy, is_root, labs, with_user};
use policies::{BoardAccess, Layer, Policy, RunContext, State};

#[test]
fn files_that_are_not_granted_are_out_of_reach() {
    for lab in labs() {
        let (secret, sibling) = (lab.path("sibling/secret"), lab.path("sibling"));
        let (planted, mem) = (lab.path("sibling/planted"), format!("/proc/{}/mem", lab.victim.id()));
        let environ = format!("/proc/{}/environ", lab.victim.id());
        let root = format!("/proc/{}/root{}", lab.victim.id(), secret);
        let [descriptor, program] = ["fd/0", "exe"].map(|name| format!("/proc/{}/{name}", lab.victim.id()));
        let gone: &[&str] = &["ENOENT"];
        let table: &[(&[&str], &[&str])] = &[
            (&["read", &secret], gone),
            (&["write", &secret], gone),
            (&["truncate", &secret], gone),
            (&["stat", &secret], gone),
            (&["chmod", &secret], gone),
            (&["list", &sibling], gone),
            (&["watch", &sibling], gone),
            (&["create", &planted], gone),
            (&["open", &mem], &["EACCES"]),
            (&["open", &environ], &["EACCES"]),
            (&["read", &root], &["EACCES"]),
            (&["read", &descriptor], &["EACCES"]),
            (&["read", &program], &["EACCES"]),
            (&["stat", "/sys/fs/cgroup"], gone),
        ];
        if lab.has_view() {
            assert_closed(&lab, "default", "", table);
        } else {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
        }
        let denied: &[&str] = &["EACCES"];
        let table: &[(&[&str], &[&str])] = &[
            (&["read", &secret], denied),
            (&["write", &secret], denied),
            (&["truncate", &secret], denied),
            (&["list", &sibling], denied),
            (&["create", &planted], denied),
            (&["open", &mem], denied),
            (&["read", &root], denied),
        ];
        assert_closed(&lab, "default", r#","view":false"#, table);
    }
}

#[test]
fn what_others_leave_in_tmp_and_in_shared_memory_is_not_there() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        for dir in ["/tmp", "/dev/shm"] {
            let left = tempfile::NamedTempFile::new_in(dir).unwrap();
            fs::set_permissions(left.path(), fs::Permissions::from_mode(0o644)).unwrap();
            let path = left.path().to_str().unwrap();
            for policy in ["default", "strict", "network", "test"] {
                assert_closed(&lab, policy, "", &[(&["read", path], &["ENOENT"])]);
            }
        }
    }
}

#[test]
fn networks_are_closed() {
    for lab in labs() {
        let (port, udp) = (lab.port(), lab.udp.local_addr().unwrap().port().to_string());
        let table: &[(&[&str], &[&str])] = &[
            (&["tcp-connect", &port], &["EPERM"]),
            (&["tcp-bind", "0"], &["EPERM"]),
            (&["udp", &udp], &["EPERM"]),
            (&["mptcp", &port], &["EPERM"]),
            (&["fast-open", &port], &["EPERM"]),
            (&["uevent"], &["EPERM"]),
        ];
        assert_closed(&lab, "default", "", table);
        let table: &[(&[&str], &[&str])] = &[
            (&["tcp-connect", &port], &["EACCES"]),
            (&["tcp-bind", "0"], &["EACCES"]),
            (&["mptcp", &port], &["EPERM"]),
            (&["fast-open", &port], &["EPERM"]),
        ];
        assert_closed(&lab, "network", "", table);
        assert_eq!(lab.probe("network", &["udp", &udp]), "OPEN");
        assert_closed(&lab, "strict", "", &[(&["netlink"], &["EPERM"])]);
    }
}

#[test]
fn the_boards_port_is_open_and_no_other() {
    for lab in labs() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = other.local_addr().unwrap().port().to_string();
        let board = BoardAccess::Port(lab.port().parse().unwrap());
        let context = RunContext { board, ..lab.context() };
        let more = r#","view":false"#;
        assert_eq!(lab.probe_in("default", &context, more, &["tcp-connect", &lab.port()]), "OPEN");
        assert_eq!(lab.probe_in("default", &context, more, &["tcp-connect", &other]), "BLOCKED EACCES");
    }
}

#[test]
fn foreign_unix_sockets_are_out_of_reach_and_the_board_is_not() {
    for lab in labs() {
        let (foreign, named) = (lab.path("foreign.sock"), lab.path("abstract"));
        if lab.has_view() {
            let table: &[(&[&str], &[&str])] =
                &[(&["socket", &foreign], &["ENOENT"]), (&["abstract", &named], &["EPERM"])];
            assert_closed(&lab, "default", "", table);
            let board = lab.path("board/board.sock");
            let context = RunContext { board: BoardAccess::Socket(board.clone().into()), ..lab.context() };
            assert_eq!(lab.probe_in("default", &context, "", &["socket", &board]), "OPEN");
            assert_eq!(lab.probe_in("default", &context, "", &["socket", &foreign]), "BLOCKED ENOENT");
            assert_eq!(
                lab.probe_in("default", &context, "", &["list", &lab.path("board")]),
                "BLOCKED EACCES"
            );
            for probe in [["own-abstract", "mine"].as_slice(), &["own-socket", &lab.path("ws/own.sock")]] {
                assert_eq!(lab.probe("default", probe), "OPEN", "{probe:?}");
            }
        }
        let table: &[(&[&str], &[&str])] =
            &[(&["socket", &foreign], &["EPERM"]), (&["abstract", &named], &["EPERM"])];
        assert_closed(&lab, "default", r#","view":false"#, table);
        assert_eq!(lab.probe_in("default", &lab.context(), r#","view":false"#, &["pair"]), "OPEN");
    }
}

#[test]
fn other_processes_and_privileges_are_out_of_reach() {
    for lab in labs() {
        let victim = lab.victim.id().to_string();
        let table: &[(&[&str], &[&str])] = &[
            (&["signal", &victim], &["EPERM"]),
            (&["trace", &victim], &["EPERM"]),
            (&["prlimit", &victim], &["EPERM"]),
            (&["user-namespace"], &["EPERM"]),
            (&["mount"], &["EPERM"]),
        ];
        assert_closed(&lab, "default", "", table);
        assert_closed(&lab, "strict", "", table);
        let status = lab.run("default", &lab.context(), "", &["/bin/cat", "/proc/self/status"]).1;
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigBlk"] {
            assert!(status.contains(&format!("{set}:\t0000000000000000")), "{set}: {status}");
        }
        let ids = format!("Uid:\t{0}\t{0}\t{0}\t{0}", lab.uid);
        for line in ["NoNewPrivs:\t1", "Seccomp:\t2", ids.as_str()] {
            assert!(status.contains(line), "{line}: {status}");
        }
        if is_root() {
            let own = lab.path("ws/setuid");
            let free = Command::new(&own).args(["probe", "root"]).uid(lab.uid).gid(lab.uid).output().unwrap();
            assert_eq!(free.stdout, b"OPEN\n");
            assert_eq!(lab.run("default", &lab.context(), "", &[&own, "probe", "root"]).1, "BLOCKED EPERM");
        }
    }
}

#[test]
fn inherited_descriptors_are_closed() {
    for lab in labs() {
        let file = fs::File::open(lab.path("sibling/secret")).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        assert_eq!(lab.free(&["descriptor", "secret"]), "OPEN");
        assert_eq!(lab.probe("default", &["descriptor", "secret"]), "BLOCKED EBADF");
    }
}

#[test]
fn what_a_worker_needs_is_open() {
    for lab in labs() {
        let mut probes = vec![
            vec!["read".to_owned(), lab.path("ws/mine")],
            vec!["create".to_owned(), lab.path("ws/new")],
            vec!["create".to_owned(), lab.path("home/new")],
            vec!["create".to_owned(), lab.path("tmp/new")],
            vec!["write".to_owned(), "/dev/null".to_owned()],
            vec!["open".to_owned(), "/etc/passwd".to_owned()],
            vec!["open".to_owned(), "/proc/self/status".to_owned()],
            vec!["execute".to_owned(), "/bin/true".to_owned()],
            vec!["pair".to_owned()],
            vec!["netlink".to_owned()],
        ];
        if lab.has_view() {
            probes.push(vec!["terminal".to_owned()]);
            probes.push(vec!["create".to_owned(), "/dev/shm/x".to_owned()]);
            probes.push(vec!["create".to_owned(), "/tmp/x".to_owned()]);
            probes.push(vec!["open".to_owned(), "/dev/stdin".to_owned()]);
        }
        for probe in probes {
            let words: Vec<&str> = probe.iter().map(String::as_str).collect();
            assert_eq!(lab.probe("default", &words), "OPEN", "{:?} {probe:?}", lab.caller);
        }
        copy(Path::new("/bin/true"), Path::new(&lab.path("home/true")));
        assert_eq!(lab.probe("default", &["execute", &lab.path("home/true")]), "BLOCKED EACCES");
        assert_eq!(lab.run("default", &lab.context(), "", &["/bin/pwd"]).1, lab.path("ws"));
    }
}

#[test]
fn strict_has_no_proc_and_little_of_etc() {
    for lab in labs() {
        let table: &[(&[&str], &[&str])] = &[
            (&["open", "/proc/self/status"], &["ENOENT", "EACCES"]),
            (&["open", "/etc/hostname"], &["ENOENT", "EACCES"]),
        ];
        assert_closed(&lab, "strict", "", table);
        assert_eq!(lab.probe("strict", &["open", "/etc/passwd"]), "OPEN");
    }
}

#[test]
fn the_report_says_what_is_enforced() {
    for lab in labs() {
        let report = lab.run("default", &lab.context(), "", &["/bin/true"]).0;
        for layer in [
            Layer::Session,
            Layer::NoNewPrivs,
            Layer::ParentDeath,
            Layer::Files,
            Layer::Scopes,
            Layer::Syscalls,
        ] {
            assert_eq!(report.state(layer), Some(State::Enforced), "{report}");
        }
        let own = if lab.caller == Caller::Root { State::Enforced } else { State::Partial };
        assert_eq!(report.state(Layer::Uid), Some(own), "{report}");
        let (report, status) = lab.run("unconfined", &lab.context(), "", &["/bin/cat", "/proc/self/status"]);
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        assert_eq!(report.state(Layer::Files), Some(State::Absent), "{report}");
        assert_eq!(report.state(Layer::NoNewPrivs), Some(State::Enforced), "{report}");
    }
}

#[test]
fn lower_abis_are_refused_or_degrade_in_the_report() {
    for lab in labs() {
        let output = lab.command("default", &lab.context(), r#","abi":5"#, &["/bin/true"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("error: failed to restrict files: the policy default needs Landlock ABI 6"),
            "{text}"
        );
        let board = BoardAccess::Socket(lab.path("board/board.sock").into());
        let context = RunContext { board, ..lab.context() };
        let output = lab.command("default", &context, r#","view":false"#, &["/bin/true"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("error: failed to reach the board at"), "{text}");
    }
}

#[test]
fn a_worker_whose_parent_is_gone_does_not_start() {
    for lab in labs() {
        let context = RunContext { parent: 1, ..lab.context() };
        let output = lab.command("default", &context, "", &["/bin/true"]).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("check the parent"));
    }
}

#[test]
fn every_shipped_policy_starts_a_program() {
    for lab in labs() {
        let keeper = PathBuf::from(lab.path("keeper"));
        let _keeps = policies::Keeper::bind(&keeper).unwrap();
        fs::set_permissions(&keeper, fs::Permissions::from_mode(0o666)).unwrap();
        let context = RunContext { proxy: Some(keeper), ..lab.context() };
        for policy in Policy::builtin_names() {
            assert_eq!(lab.run(policy, &context, "", &["/bin/echo", "here"]).1, "here", "{policy}");
        }
    }
}

#[test]
fn a_helper_reaches_what_it_was_given_and_nothing_else() {
    let Some(lab) = Lab::new(Caller::Root) else { return };
    let uid = lab.uid.to_string();
    let (read, write) = (lab.path("sibling"), lab.path("ws"));
    let (planted, port) = (lab.path("sibling/planted"), lab.port());
    let (secret, mine, made) = (lab.path("sibling/secret"), lab.path("home"), lab.path("ws/made"));
    let roots = lab.path("sibling/roots");
    fs::write(&roots, "r").unwrap();
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o600)).unwrap();
    let table: [(&[&str], &str); 7] = [
        (&["read", &roots], "BLOCKED EACCES"),
        (&["read", &secret], "OPEN"),
        (&["create", &made], "OPEN"),
        (&["create", &planted], "BLOCKED EACCES"),
        (&["list", &mine], "BLOCKED EACCES"),
        (&["tcp-connect", &port], "BLOCKED EACCES"),
        (&["root"], "BLOCKED EPERM"),
    ];
    for (probe, expected) in table {
        let mut command = Command::new(lab.path("bin/confined"));
        let output = command.args(["helper", &uid, &read, &write]).args(probe).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{probe:?}");
    }
}

#[test]
fn the_probe_of_a_view_agrees_with_the_report() {
    for lab in labs() {
        let mut command = Command::new(lab.path("bin/confined"));
        with_user(&lab, &mut command);
        let text = command.arg("view").output().unwrap().stdout;
        assert_eq!(text == b"OPEN\n", lab.has_view(), "{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn a_worker_is_in_its_cgroup() {
    let Some(lab) = Lab::new(Caller::Root) else { return };
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let Some(mount) = places.into_iter().find(|place| place.join("cgroup.procs").exists()) else {
        skips::skip("no cgroup v2");
        return;
    };
    let name = format!("policies-test-{}", std::process::id());
    let group = mount.join(&name);
    if let Err(error) = fs::create_dir(&group) {
        skips::skip(&format!("cgroup v2 cannot be written: {error}"));
        return;
    }
    let context = RunContext { work_cgroup: Some(group.clone()), ..lab.context() };
    let text = lab.run("default", &context, "", &["/bin/cat", "/proc/self/cgroup"]).1;
    fs::remove_dir(&group).unwrap();
    assert!(text.lines().any(|line| line.ends_with(&name)), "{text}");
}
