//! What a run is as a process: its limits, its session and its rank.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use policies::{Identity, Keeper, PROXY_PORT, RunContext, ask_keeper, receive_listener};

use crate::lab::{Caller, is_root, labs, with_text, with_user};

#[test]
fn a_run_has_the_limits_of_its_policy() {
    let text = "version = 1\nextends = 'default'\n[limits]\npids = 4000\nfiles = 77\nfile_size = '1MiB'\n\
                address_space = '4GiB'\n";
    let limit = |limits: &str, name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    for lab in labs() {
        for (more, is_alone) in [("", lab.has_view()), (r#","view":false"#, lab.caller == Caller::Root)] {
            let more = format!("{}{more}", with_text(text));
            let limits = lab.run("", &lab.context(), &more, &["/bin/cat", "/proc/self/limits"]).1;
            for (name, value) in [
                ("Max file size", "1048576 1048576"),
                ("Max core file size", "0 0"),
                ("Max open files", "77 77"),
                ("Max locked memory", "65536 65536"),
                ("Max address space", "4294967296 4294967296"),
                ("Max msgqueue size", "0 0"),
                ("Max pending signals", "4096 4096"),
                ("Max realtime priority", "0 0"),
                ("Max nice priority", "0 0"),
            ] {
                assert_eq!(limit(&limits, name), value, "{name}");
            }
            // Where other processes of the user would count it is not set.
            assert_eq!(limit(&limits, "Max processes") == "4000 4000", is_alone, "{:?} {more}", lab.caller);
        }
    }
}

#[test]
fn a_run_takes_a_share_of_the_terminals_and_of_its_users_inotify_instances() {
    if !cfg!(target_arch = "x86_64") || !std::path::Path::new("/usr/bin/perl").exists() {
        return skips::skip("shares of a run: needs perl on x86_64");
    }
    let instances = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").unwrap();
    let instances: usize = instances.trim().parse().unwrap();
    // inotify_init1.
    let script = "for (1..99) { open(my $f, '+<', '/dev/ptmx') or last; push @f, $f } print scalar(@f), ' '; \
                  my $n = 0; $n++ while $n < 999 && syscall(294, 0) >= 0; print $n";
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no mount namespace here for {:?}", lab.caller));
            continue;
        }
        let printed = lab.run("default", &lab.context(), "", &["/usr/bin/perl", "-e", script]).1;
        let (terminals, made) = printed.split_once(' ').unwrap();
        assert_eq!(terminals, "64", "{:?}", lab.caller);
        // A worker of root's has a user of its own, and an ordinary user's shares the user in a namespace.
        let share = if lab.caller == Caller::Root { instances } else { instances / 2 };
        assert!(
            made.parse::<usize>().unwrap() <= share.min(999),
            "{made} of {instances} for {:?}",
            lab.caller
        );
    }
}

#[test]
fn a_run_leads_a_session_and_ignores_no_signal_whatever_its_caller_does() {
    let words = ["/bin/sh", "-c", "cat /proc/$$/stat /proc/$$/status /proc/$$/oom_score_adj"];
    for lab in labs() {
        let run = lab.command("default", &lab.context(), "", &words);
        for script in ["umask 000; exec \"$@\"", "trap '' HUP INT USR1; exec \"$@\""] {
            let mut shell = Command::new("/bin/sh");
            with_user(&lab, &mut shell);
            shell.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args());
            let printed = String::from_utf8(shell.output().unwrap().stdout).unwrap();
            let lines: Vec<&str> = printed.lines().skip(1).collect();
            let stat: Vec<&str> = lines[0].split(' ').collect();
            assert_eq!(
                (stat[4], stat[5]),
                (stat[0], stat[0]),
                "its group and its session are its own: {printed}"
            );
            let nicer = rustix::process::getpriority_process(None).unwrap() + 5;
            assert_eq!(stat[18], nicer.to_string(), "{printed}");
            let ignored = lines.iter().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
            // 32 and 33 belong to the C library.
            assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & !(0b11 << 31), 0, "{printed}");
            assert!(lines.contains(&"Umask:\t0077"), "{printed}");
            assert_eq!(lines.last(), Some(&"500"), "the first that is killed where memory runs out");
        }
    }
}

#[test]
fn a_caller_that_leads_a_session_may_begin_a_run_and_one_that_leads_only_a_group_may_not() {
    for lab in labs() {
        let run = lab.command("default", &lab.context(), "", &["/bin/echo", "here"]);
        let mut leader = Command::new("/usr/bin/setsid");
        with_user(&lab, &mut leader);
        let output = leader.arg(run.get_program()).args(run.get_args()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.ends_with("here\n"), "{printed}");
        let mut run = run;
        let output = run.process_group(0).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.starts_with("error: failed to begin a session"), "{printed}");
    }
}

#[test]
fn an_ordinary_user_stays_who_it_is() {
    for lab in labs().filter(|lab| lab.caller == Caller::User) {
        let start = |gid| {
            let context = RunContext { identity: Some(Identity { uid: lab.uid, gid }), ..lab.context() };
            let output = lab.command("default", &context, "", &["/bin/echo", "here"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let gid = if is_root() { lab.uid } else { rustix::process::getegid().as_raw() };
        assert!(start(gid).ends_with("here\n"), "{}", start(gid));
        let other = start(gid + 1);
        assert!(other.starts_with("error: failed to"), "{other}");
    }
}

#[test]
fn a_run_cannot_change_what_its_privileges_come_from() {
    for lab in labs().filter(|lab| lab.caller == Caller::Root) {
        assert_eq!(lab.free(&["secure-bits"]), "OPEN");
        assert_eq!(lab.probe("default", &["secure-bits"]), "BLOCKED EPERM");
    }
}

#[test]
fn a_policy_of_tcp_ports_has_no_other_socket_of_the_internet() {
    for lab in labs() {
        let (port, udp) = (lab.port(), lab.udp.local_addr().unwrap().port().to_string());
        let text =
            format!("version = 1\nextends = 'default'\n[network]\nmode = 'ports'\nconnect_tcp = [{port}]\n");
        let more = with_text(&text);
        assert_eq!(lab.probe_in("", &lab.context(), &more, &["tcp-connect", &port]), "OPEN");
        assert_eq!(lab.free(&["udp", &udp]), "OPEN");
        assert_eq!(lab.probe_in("", &lab.context(), &more, &["udp", &udp]), "BLOCKED EPERM");
    }
}

#[test]
fn a_run_with_a_proxy_hands_its_listening_socket_over() {
    for lab in labs() {
        if !lab.has_view() {
            skips::skip(&format!("no namespaces here for {:?}", lab.caller));
            continue;
        }
        let path = std::path::PathBuf::from(lab.path("keeper"));
        let mut keeper = Keeper::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let context = RunContext { proxy: Some(path.clone()), ..lab.context() };
        let more = with_text("version = 1\nextends = 'default'\n[network]\nmode = 'proxy'\n");
        assert_eq!(lab.run("", &context, &more, &["/bin/echo", "here"]).1, "here");
        let answer = ask_keeper(&path).unwrap();
        keeper.attend();
        let listener = receive_listener(&answer).unwrap().unwrap();
        assert_eq!(listener.local_addr().unwrap().port(), PROXY_PORT);
    }
}

#[test]
fn a_user_reads_a_secret_of_its_own() {
    for lab in labs() {
        let path = lab.path("home/key");
        fs::write(&path, "value").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            chown(&path, Some(lab.uid), Some(lab.uid)).unwrap();
        }
        assert_eq!(lab.free(&["secret", &path]), "OPEN");
    }
}

#[test]
fn a_workspace_is_written_in_every_way() {
    let script = "cd \"$1\" && mkdir d && echo x > f && : > f && mv f d/f && ln -s d l && mkfifo p && rm l p d/f && rmdir d && echo done";
    for lab in labs() {
        let ws = lab.path("ws");
        let printed = lab.run("default", &lab.context(), "", &["/bin/sh", "-c", script, "sh", &ws]).1;
        assert_eq!(printed, "done", "{:?}", lab.caller);
    }
}
