//! Processes that outlive a shim or a run directory: they are ended with proof, or shown, and no second copy starts
//! beside them.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Fleet, User, binary, skip};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, PATIENT, of_task, outcomes, records};

/// Leaves the session, ignores TERM, and goes on.
const STRAY: &str = "setsid sh -c 'trap \"\" TERM; exec sleep 600' &";

/// Starts a daemon whose host has no cgroups.
pub(crate) fn start_without_cgroups(fleet: &Fleet) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(mount) = mount.map(|line| line.split(' ').nth(4).unwrap().to_owned()) else {
        fleet.start();
        return;
    };
    let mut command = Command::new("unshare");
    let hide = "umount -l \"$2\" && exec \"$0\" --root \"$1\" daemon";
    command.args(["-m", "sh", "-c", hide, binary()]).arg(fleet.root()).arg(mount);
    fleet.start_by(&mut command);
}

/// Returns true if this host lets a user make a pid namespace: root, or a user who may make a user namespace.
fn may_make_pid_namespaces(fleet: &Fleet, user: User) -> bool {
    let mut command = Command::new("unshare");
    if user != User::Root {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--pid", "--fork", "--", "true"]);
    fleet.dress(&mut command);
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The records of the one run that has begun, once its worker has.
fn begun(fleet: &Fleet, journal: &Journal) -> (PathBuf, Value, Value) {
    fleet.eventually("the run has begun", || {
        let has_begun = journal.begun() > 0 && !records(fleet, "started").is_empty();
        let (dir, pid) = has_begun.then(|| records(fleet, "pid").pop()).flatten()?;
        let spec = serde_json::from_slice(&fs::read(dir.join("spec.json")).ok()?).ok()?;
        Some((dir, pid, spec))
    })
}

fn kill_shim(record: &Value) {
    kill(Pid::from_raw(record["pid"].as_i64().unwrap().try_into().unwrap()), Signal::SIGKILL).unwrap();
}

/// Returns the note of `status` about the only worker, once its state is unknown.
fn unknown(fleet: &Fleet, what: &str) -> String {
    fleet.eventually(&format!("status says: {what}"), || {
        let status = fleet.json(["status"]);
        let worker = status["workers"].as_array()?.iter().find(|worker| worker["phase"] == "unknown")?;
        worker["note"].as_str().filter(|note| note.contains(what)).map(str::to_owned)
    })
}

#[test]
fn without_a_cgroup_a_killed_shim_takes_all_that_its_worker_started_along() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 1, "");
        let script = Journal::script(&format!("[ -e again ] || {{ touch again; {STRAY} sleep 600; }}"));
        let task = fleet.create("strays", &script, &[]);
        if user == User::Root {
            start_without_cgroups(&fleet);
        } else {
            fleet.start();
        }
        let (_, record, spec) = begun(&fleet, &journal);
        if !spec["cgroup"].is_null() || !may_make_pid_namespaces(&fleet, user) {
            skip(
                "a pid namespace in the place of a cgroup: this host has cgroups for users, or no user namespaces",
            );
            continue;
        }
        assert!(!record["init"].is_null(), "it has no first process: {record:#}");
        fleet.eventually("the stray has left", || {
            let sleepers = fleet.processes_with(&of_task(&task));
            (sleepers.iter().filter(|process| process.command == "sleep 600").count() == 2).then_some(())
        });

        kill_shim(&record);

        let shown = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&shown), ["lost", "completed"], "{shown:#}");
        journal.audit(&fleet, &[task], Attempts::Many);
        invariants_hold(&fleet);
    }
}

#[test]
fn a_worker_in_a_pid_namespace_sees_its_own_processes_by_its_own_numbers() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let _journal = Journal::of(&fleet, 1, "");
        if user == User::Root {
            start_without_cgroups(&fleet);
        } else {
            fleet.start();
        }
        let script = "sleep 600 & until grep -q sleep /proc/$!/cmdline; do :; done; tr '\\0' ' ' < /proc/$!/cmdline; kill -TERM $!; wait $!; echo \"ended $?\"; \
                      read -r own _ < /proc/self/stat; [ $own -gt 100 ] || echo small";
        for policy in ["default", "unconfined"] {
            let task = fleet.create("looks", script, &["--policy", policy]);
            let shown = fleet.wait_for(&task, "done");
            let summary = shown["latest_summary"].as_str().unwrap();
            assert!(summary.starts_with("sleep 600 ended 143"), "{policy}: {summary}");
            let has_namespace = may_make_pid_namespaces(&fleet, user) && fleet.log().contains("no_cgroups");
            // An ordinary user's worker without a view keeps the host's numbers: it has no namespace.
            let expected = has_namespace && (user == User::Root || policy == "default");
            assert_eq!(summary.contains("small"), expected, "{user:?}, {policy}: {summary}");
        }
    }
}

#[test]
fn where_nothing_holds_them_together_survivors_are_shown_and_ended_before_the_task_runs_again() {
    let fleet = Fleet::offline_as(User::ordinary());
    let journal = Journal::of(&fleet, 1, "");
    let between = format!("[ -e again ] || {{ touch again; {STRAY} echo $! > stray; sleep 600; }}");
    // Without a view it has no user namespace, and so no pid namespace either.
    let task = fleet.create("strays", &journal.own_script(&between), &["--policy", "unconfined"]);
    fleet.start();
    let (_, record, spec) = begun(&fleet, &journal);
    if !spec["cgroup"].is_null() {
        skip("survivors unknown: this user has cgroups");
        return;
    }
    let stray = fleet.eventually("the stray has left", || {
        let own = fleet.processes_with(&of_task(&task));
        let stray = own.iter().find(|process| process.command == "sleep 600" && leads_session(process.pid));
        stray.map(|process| process.pid)
    });

    kill_shim(&record);

    let note = unknown(&fleet, &format!("{stray} (sleep)"));
    assert!(note.contains(&format!("supervisor reclaim {task}")), "{note}");
    assert!(journal.begun() == 1 && fleet.status_of(&task) == "running");
    // The only slot is free for others.
    let other = fleet.create("another", &Journal::script("true"), &[]);
    fleet.wait_for(&other, "done");
    // A daemon that stops does not wait for it, and says what it leaves.
    let stopped = fleet.cli(["stop", "--wait"]);
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.stdout.contains(&task) && stopped.stdout.contains(&stray.to_string()), "{stopped:?}");
    assert!(fleet.reap_daemon().success());
    fleet.start();
    unknown(&fleet, &format!("{stray} (sleep)"));

    fleet.cli(["reclaim", &task]).ok();

    let shown = fleet.wait_for(&task, "done");
    assert_eq!(outcomes(&shown), ["reclaimed", "completed"], "{shown:#}");
    nothing_ran_twice(&journal, &task);
    invariants_hold(&fleet);
}

/// Looks at what the runs of a task that was taken back themselves have recorded.
#[track_caller]
fn nothing_ran_twice(journal: &Journal, task: &str) {
    let lines: Vec<_> = journal.lines().into_iter().filter(|line| line.task == task).collect();
    let told: Vec<&str> = lines.iter().map(|line| line.what.as_str()).collect();
    assert_eq!(told, ["start", "start", "end"], "{lines:?}");
}

fn leads_session(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let session = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(3)?.parse().ok());
    session == Some(pid)
}

#[test]
fn every_stop_of_a_daemon_with_survivors_ends() {
    for flag in ["--now", "--kill", "--leave"] {
        let fleet = Fleet::offline_as(User::ordinary());
        let journal = Journal::of(&fleet, 2, "");
        let script = journal.own_script(&format!("{STRAY} sleep 600"));
        let task = fleet.create("strays", &script, &["--policy", "unconfined"]);
        fleet.start();
        let (_, record, spec) = begun(&fleet, &journal);
        if !spec["cgroup"].is_null() {
            skip("survivors unknown: this user has cgroups");
            return;
        }
        fleet.eventually("the stray has left", || {
            let sleepers = fleet.processes_with(&of_task(&task));
            (sleepers.iter().filter(|process| process.command == "sleep 600").count() == 2).then_some(())
        });
        kill_shim(&record);
        unknown(&fleet, "(sleep)");
        let stopped = fleet.cli(["stop", flag]);
        assert_eq!(stopped.code, i32::from(flag != "--leave"), "{flag}: {stopped:?}");
        assert!(fleet.reap_daemon().success(), "{flag}");
        let lives = !fleet.processes_with(&of_task(&task)).is_empty();
        assert_eq!(lives, flag == "--leave", "{flag}: {stopped:?}");
        fleet.start();
        unknown(&fleet, if lives { "(sleep)" } else { "None with the run's mark is left" });
        fleet.cli(["block", &task, "enough"]).ok();
        fleet.wait_for(&task, "blocked");
        invariants_hold(&fleet);
    }
}

#[test]
fn a_run_whose_directory_was_taken_away_is_not_taken_for_dead() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 2, "grace = 1\n");
        let task = fleet.create("runs", &Journal::script(PATIENT), &[]);
        fleet.start();
        let (dir, _, _) = begun(&fleet, &journal);
        fleet.eventually("the board knows it", || fleet.show(&task)["runs"][0]["worker_pid"].as_i64());
        fs::rename(&dir, fleet.home().join("taken")).unwrap();
        fleet.restart();

        let note = unknown(&fleet, "is gone");

        assert!(note.contains("Still there: "), "{note}");
        assert!(journal.begun() == 1 && fleet.status_of(&task) == "running");
        fleet.cli(["reclaim", &task]).ok();
        fleet.eventually("it runs again", || (journal.begun() == 2).then_some(()));
        journal.let_go();
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&shown), ["reclaimed", "completed"], "{shown:#}");
        nothing_ran_twice(&journal, &task);
        invariants_hold(&fleet);
    }
}

#[test]
fn a_run_that_ends_without_its_directory_is_lost_and_never_said_not_to_have_started() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 2, "");
        let task = fleet.create("runs", &Journal::script(PATIENT), &[]);
        fleet.start();
        let (dir, _, _) = begun(&fleet, &journal);
        fs::remove_dir_all(&dir).unwrap();
        journal.let_go();
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&shown), ["lost", "completed"], "{shown:#}");
        journal.audit(&fleet, &[task], Attempts::Many);
        invariants_hold(&fleet);
    }
}

#[test]
fn workers_of_two_roots_never_have_one_uid_and_the_end_of_one_leaves_the_other() {
    if User::current() != User::Root {
        skip("workers with uids of their own: needs root");
        return;
    }
    let places = tempfile::tempdir().unwrap();
    let ledger = places.path().join("uids");
    let fleets = [(); 2].map(|()| {
        let fleet = Fleet::offline();
        let journal = Journal::of(
            &fleet,
            1,
            &format!("first_uid = 1999000000\nuid_count = 160\nuid_ledger = {ledger:?}\n"),
        );
        let task = fleet.create("runs", &Journal::script(PATIENT), &[]);
        start_without_cgroups(&fleet);
        (fleet, journal, task)
    });
    let uids = fleets.each_ref().map(|(fleet, journal, task)| {
        begun(fleet, journal);
        fleet.eventually("the worker's uid is known", || fleet.show(task)["runs"][0]["worker_uid"].as_u64())
    });
    assert_ne!(uids[0], uids[1]);
    let [(one, ..), (other, journal, task)] = &fleets;
    kill_shim(&begun(one, &fleets[0].1).1);
    one.eventually("its run is over", || {
        (outcomes(&one.show(&fleets[0].2)).first() == Some(&"lost")).then_some(())
    });
    assert_eq!(other.status_of(task), "running");
    for (_, journal, _) in &fleets {
        journal.let_go();
    }
    one.wait_for(&fleets[0].2, "done");
    other.wait_for(task, "done");
    journal.audit(other, std::slice::from_ref(task), Attempts::One);
}

#[test]
fn sockets_that_somebody_removes_are_put_back_and_status_never_says_that_there_is_no_daemon() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let sockets = ["supervisor.sock", "poke.sock"];
        let places = sockets.map(|socket| fleet.root().join("run").join(socket));
        for removed in [places[0].clone(), places[1].clone(), fleet.root().join("run")] {
            // At once: a directory that is emptied step by step is filled again meanwhile.
            let aside = fleet.home().join("aside");
            if removed.is_dir() { fs::rename(&removed, aside) } else { fs::remove_file(&removed) }.unwrap();
            let first = fleet.cli(["status"]);
            assert!(!first.stdout.contains("no daemon is running"), "{first:?}");
            fleet.eventually("all sockets are there again", || {
                let status = fleet.cli(["status", "--json"]);
                (status.code == 0 && places.iter().all(|place| place.exists())).then_some(())
            });
        }
        let task =
            fleet.create("reports", "supervisor complete --summary 'by the new socket'; sleep 600", &[]);
        let shown = fleet.wait_for(&task, "done");
        assert_eq!(shown["latest_summary"], "by the new socket");
    }
}

#[test]
fn a_daemon_whose_socket_cannot_be_put_back_is_named_by_status() {
    let fleet = Fleet::boot();
    let socket = fleet.root().join("run/supervisor.sock");
    // What is in the way is left as it is.
    let beside = fleet.root().join("run/file");
    fs::write(&beside, "somebody's").unwrap();
    fs::rename(&beside, &socket).unwrap();
    fleet.eventually("the log says what is in the way", || {
        fleet.log().contains("is in the way").then_some(())
    });
    let status = fleet.cli(["status"]);
    let pid = format!("a daemon, pid {} owns this root", fleet.daemon_pid());
    assert!(status.code == 3 && status.stdout.contains(&pid), "{status:?}");
    let text = status.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("supervisor.sock is not a socket: move it away"), "{status:?}");
    fleet.cli(["stop"]).refused(75, "supervisor.sock is not a socket: move it away");
    fs::remove_file(&socket).unwrap();
    fleet.eventually("it serves again", || (fleet.cli(["status"]).code == 0).then_some(()));
}

/// Copies a root as `cp -a` does, under a name of its own.
fn copied(fleet: &Fleet, other: &Fleet) {
    fs::remove_dir_all(other.root()).unwrap();
    let copied = Command::new("cp").arg("-a").arg(fleet.root()).arg(other.root()).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_daemon_on_a_copied_root_leaves_the_workers_of_the_original_alone_and_says_what_it_found() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 2, "");
        let worked = fleet.create("works on", &Journal::script(PATIENT), &[]);
        let vanished = fleet.create("works on without its directory", &Journal::script(PATIENT), &[]);
        fleet.start();
        fleet.eventually("both work", || (records(&fleet, "started").len() == 2).then_some(()));
        let workers = || {
            let started = records(&fleet, "started");
            let pids = started.iter().map(|(_, record)| record["pid"].as_i64().unwrap());
            let own = fleet.processes();
            let lives = |pid: &i64| own.iter().any(|process| i64::from(process.pid) == *pid);
            pids.filter(lives).collect::<Vec<i64>>()
        };
        let before = workers();
        assert_eq!(before.len(), 2);
        let copy = Fleet::offline_as(user);
        copied(&fleet, &copy);
        let run = fleet.show(&vanished)["task"]["current_run_id"].as_i64().unwrap();
        fs::remove_dir_all(copy.root().join(format!("runs/default/{run}"))).unwrap();

        copy.start();

        let notes = copy.eventually("both are held and shown", || {
            let status = copy.json(["status"]);
            let workers = status["workers"].as_array()?.clone();
            let held = workers.iter().filter(|worker| worker["phase"] == "unknown");
            let notes: Vec<String> =
                held.filter_map(|worker| Some(worker["note"].as_str()?.to_owned())).collect();
            (notes.len() == 2).then_some(notes)
        });
        assert!(
            notes
                .iter()
                .any(|note| note.contains("was copied from another root") && note.contains("reclaim")),
            "{notes:?}"
        );
        assert!(notes.iter().any(|note| note.contains("is gone")), "{notes:?}");
        for task in [&worked, &vanished] {
            copy.cli(["block", task, "the original has it"]).ok();
        }
        // What only shares the session of the one without a directory is the original's: the person insists.
        copy.eventually("both are free", || {
            let open = [&worked, &vanished].into_iter().filter(|task| copy.status_of(task) != "blocked");
            for task in open.clone() {
                copy.cli(["reclaim", task]);
            }
            (open.count() == 0).then_some(())
        });
        copy.cli(["gc"]).ok();
        copy.restart();
        assert!(copy.stop(&["--kill"]).success());
        assert_eq!(workers(), before, "the original's workers go on");
        assert_eq!(journal.begun(), 2);

        journal.let_go();
        for task in [&worked, &vanished] {
            let shown = fleet.wait_for(task, "done");
            assert_eq!(outcomes(&shown), ["completed"], "{shown:#}");
        }
        invariants_hold(&fleet);
    }
}

#[test]
fn a_process_that_only_shares_the_session_of_a_dead_worker_holds_its_task_until_a_person_insists() {
    let fleet = Fleet::offline_as(User::ordinary());
    let journal = Journal::of(&fleet, 1, "");
    // Without the mark, and in the worker's session still.
    let between = "[ -e again ] || { touch again; env -i sleep 600 & sleep 600; }";
    let task = fleet.create("strays", &journal.own_script(between), &["--policy", "unconfined"]);
    fleet.start();
    let (_, record, spec) = begun(&fleet, &journal);
    if !spec["cgroup"].is_null() {
        skip("a process of a dead worker's session: this user has cgroups");
        return;
    }
    let bare = fleet.eventually("the process without a mark is there", || {
        let all = fleet.processes();
        let bare = all.iter().find(|process| process.command == "sleep 600" && !process.mentions(&task));
        bare.map(|process| process.pid)
    });
    kill_shim(&record);
    unknown(&fleet, &format!("{bare} (sleep, perhaps another's)"));

    fleet.cli(["reclaim", &task]).ok();

    let note = unknown(&fleet, "again to free the task and leave it running");
    assert!(note.contains(&format!("{bare} (sleep, perhaps another's)")), "{note}");
    assert!(fleet.processes_with(&of_task(&task)).is_empty(), "what carries the mark is ended");
    assert_eq!(fleet.status_of(&task), "running");

    fleet.cli(["reclaim", &task]).ok();

    fleet.wait_for(&task, "done");
    kill(Pid::from_raw(bare), Signal::SIGKILL).unwrap();
    invariants_hold(&fleet);
}
