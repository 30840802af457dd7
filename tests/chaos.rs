//! Chaos that no other file has: a pid that is given away, a board that somebody locks, a clock that jumps, a worker without memory, workers
//! that always fail, and a drain that is killed. docs/testing.md lists all of them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{Fleet, User, skip};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, PATIENT, left, outcomes, records};
use crate::survivors::start_without_cgroups;

/// The one run that has begun: its directory, and what its shim says of itself.
fn begun(fleet: &Fleet, journal: &Journal) -> (PathBuf, Value) {
    fleet.eventually("the run has begun", || {
        let has_begun = journal.begun() > 0 && !records(fleet, "started").is_empty();
        has_begun.then(|| records(fleet, "pid").pop()).flatten()
    })
}

fn pid_in(record: &Value) -> Option<i32> {
    i32::try_from(record["pid"].as_i64()?).ok()
}

/// Somebody else's process with a pid that was another's. None where this host does not give pids away on demand.
fn stranger_with(pid: i32) -> Option<Child> {
    // What is started in between takes the number: then the next one in turn is not it, and it is tried again.
    for _ in 0..300 {
        let mut last = fs::File::options().write(true).open("/proc/sys/kernel/ns_last_pid").ok()?;
        last.write_all((pid - 1).to_string().as_bytes()).ok()?;
        let mut child = Command::new("sleep").arg("600").env_clear().stdin(Stdio::null()).spawn().ok()?;
        if child.id().cast_signed() == pid {
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    None
}

#[test]
fn a_pid_that_was_given_to_somebody_else_is_neither_adopted_nor_signalled() {
    if User::current() != User::Root {
        skip("a pid that is given away: needs root");
        return;
    }
    for start in [Fleet::start, start_without_cgroups] {
        let fleet = Fleet::offline();
        let journal = Journal::of(&fleet, 2, "");
        let script = Journal::script(&format!("[ -e again ] || {{ touch again; {PATIENT}; }}"));
        let tasks = [fleet.create("dies", &script, &[])];
        start(&fleet);
        let (_, record) = begun(&fleet, &journal);
        left(&fleet, &tasks[0], "again");
        let shim = pid_in(&record).unwrap();
        // Of a run without a cgroup, the first process of its pid namespace is what the daemon would end.
        let started = records(&fleet, "started").pop().unwrap().1;
        let pids: Vec<i32> =
            [Some(shim), pid_in(&record["init"]), pid_in(&started)].into_iter().flatten().collect();
        fleet.kill_daemon();
        kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();
        fleet.eventually("all of the run is gone", || {
            (!pids.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists())).then_some(())
        });
        let strangers: Vec<Child> = pids.iter().map_while(|pid| stranger_with(*pid)).collect();
        if strangers.len() < pids.len() {
            skip("a pid that is given away: this host gives none on demand");
        }

        start(&fleet);

        let shown = fleet.wait_for(&tasks[0], "done");
        assert_eq!(outcomes(&shown), ["lost", "completed"], "{shown:#}");
        for mut stranger in strangers {
            assert!(stranger.try_wait().unwrap().is_none(), "{} was ended", stranger.id());
            stranger.kill().unwrap();
            stranger.wait().unwrap();
        }
        journal.audit(&fleet, &tasks, Attempts::Many);
        invariants_hold(&fleet);
    }
}

#[test]
fn a_board_that_another_program_locks_loses_no_end_and_is_read_meanwhile() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 2, "");
    let tasks = [fleet.create("ends meanwhile", &Journal::script(PATIENT), &[])];
    fleet.start();
    begun(&fleet, &journal);
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    board.busy_timeout(Duration::from_secs(10)).unwrap();
    board.execute_batch("BEGIN IMMEDIATE").unwrap();

    journal.let_go();
    fleet.eventually("its script has come to its end", || (journal.ended() == 1).then_some(()));
    fleet.eventually("a write is refused, and may be tried again", || {
        let refused = fleet.cli(["create", "no room"]);
        assert!([0, 75].contains(&refused.code), "{refused:?}");
        (refused.code == 75).then_some(())
    });
    assert_eq!(fleet.status_of(&tasks[0]), "running");
    board.execute_batch("ROLLBACK").unwrap();
    drop(board);

    let shown = fleet.wait_for(&tasks[0], "done");
    assert_eq!(outcomes(&shown), ["completed"], "{shown:#}");
    journal.audit(&fleet, &tasks, Attempts::One);
    invariants_hold(&fleet);
}

#[test]
fn a_daemon_whose_clock_since_boot_has_jumped_ends_no_run_and_counts_no_time_below_zero() {
    let mut can_jump = Command::new("unshare");
    can_jump.args(["--time", "--boottime", "86400", "true"]).stderr(Stdio::null());
    if User::current() != User::Root || !can_jump.status().is_ok_and(|status| status.success()) {
        skip("a clock that jumps: needs root and time namespaces");
        return;
    }
    for jump in ["86400", "-60"] {
        let fleet = Fleet::offline();
        let journal = Journal::of(&fleet, 2, "");
        let task = fleet.create("limited", &Journal::script(PATIENT), &["--max-runtime", "1h"]);
        fleet.start();
        begun(&fleet, &journal);
        fleet.kill_daemon();
        let mut command = Command::new("unshare");
        command
            .args(["--time", "--boottime", jump])
            .arg(fleet.binary())
            .arg("--root")
            .arg(fleet.root())
            .arg("daemon");
        fleet.start_by(&mut command);
        let worker = fleet.eventually("the run is adopted", || {
            let worker = fleet.json(["status"])["workers"][0].clone();
            (worker["phase"] == "running").then_some(worker)
        });
        assert!(worker["age_seconds"].as_u64().is_some_and(|age| age < 3600), "{worker:#}");
        let other = fleet.create("begins after the jump", &Journal::script("true"), &["--max-runtime", "1h"]);
        fleet.wait_for(&other, "done");

        journal.let_go();

        let shown = fleet.wait_for(&task, "done");
        assert_eq!(outcomes(&shown), ["completed"], "{shown:#}");
        let run = &shown["runs"][0];
        assert!(run["ended_at"].as_u64() >= run["started_at"].as_u64(), "{shown:#}");
        journal.audit(&fleet, &[task, other], Attempts::One);
        invariants_hold(&fleet);
    }
}

#[test]
fn a_worker_that_takes_all_memory_fails_alone() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 2, "");
    // What the shell holds in a variable is memory of its own.
    let greedy = "[ -e again ] || { touch again; ulimit -v 60000; x=$(head -c 200000000 /dev/zero | tr '\\0' x); exit 9; }";
    let tasks = [
        fleet.create("greedy", &Journal::script(greedy), &[]),
        fleet.create("modest", &Journal::script("true"), &[]),
    ];
    fleet.start();
    let daemon = fleet.daemon_pid();
    let score = |pid: i32| {
        fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse::<i32>().unwrap()
    };
    let patient = fleet.create("patient", &Journal::script(PATIENT), &[]);
    let worker = fleet.eventually("it runs", || fleet.show(&patient)["runs"][0]["worker_pid"].as_i64());
    assert!(score(worker.try_into().unwrap()) > score(daemon), "the kernel ends a worker before the daemon");
    journal.let_go();

    for task in &tasks {
        fleet.wait_for(task, "done");
    }

    assert_eq!(outcomes(&fleet.show(&tasks[0])), ["crashed", "completed"]);
    assert_eq!(fleet.daemon_pid(), daemon);
    fleet.wait_for(&patient, "done");
    journal.audit(&fleet, &[tasks.to_vec(), vec![patient]].concat(), Attempts::Many);
    invariants_hold(&fleet);
}

#[test]
fn what_always_fails_is_given_up_after_its_limit_and_stays_so() {
    let fleet = Fleet::offline();
    drop(Journal::of(&fleet, 4, "failure_limit = 3\n"));
    fleet.lane("silent", "argv = [\"/bin/sh\", \"-c\", \"exit 0\"]\n");
    let kinds = [
        fleet.create("dies at once", &Journal::script("kill -KILL $$"), &[]),
        fleet.create("fails", &Journal::script("exit 1"), &[]),
        fleet.json(["create", "says nothing", "--assignee", "silent"])["id"].as_str().unwrap().to_owned(),
    ];
    let gone = fleet.home().join("gone");
    fs::create_dir(&gone).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(&gone, Some(64_322), Some(64_322)).unwrap();
    }
    let place = format!("dir:{}", gone.display());
    let placeless = fleet.create("has no place", "true", &["--workspace", &place]);
    fs::remove_dir(&gone).unwrap();
    fleet.start();
    let works = fleet.create("works", &Journal::script("true"), &[]);

    for task in &kinds {
        let shown = fleet.wait_for(task, "blocked");
        assert_eq!(shown["runs"].as_array().unwrap().len(), 3, "{shown:#}");
        assert_eq!(shown["why"]["code"], "gave_up", "{shown:#}");
    }
    fleet.wait_for(&works, "done");
    // What it needs is gone: that is no failure of the task, and no other task waits for it.
    let waits = fleet.eventually("it says what it waits for", || {
        let shown = fleet.show(&placeless);
        (shown["task"]["status"] != "running" && shown["why"]["text"].is_string()).then_some(shown)
    });
    assert_eq!(waits["task"]["consecutive_failures"], 0, "{waits:#}");
    let runs = |task: &String| fleet.show(task)["runs"].as_array().unwrap().len();
    fleet.restart();
    let more = fleet.create("works too", &Journal::script("true"), &[]);
    fleet.wait_for(&more, "done");
    for task in &kinds {
        assert_eq!((fleet.status_of(task), runs(task)), ("blocked".to_owned(), 3));
    }
    assert_eq!(fleet.status_of(&works), "done");
    assert!(fleet.cli(["doctor", "--replay"]).stdout.contains("the event log matches the board"));
    invariants_hold(&fleet);
}

#[test]
fn a_daemon_that_is_killed_while_it_drains_loses_nothing() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 10, "grace = 1\n");
    let tasks: Vec<String> =
        (0..10).map(|n| fleet.create(&format!("task {n}"), &Journal::script(PATIENT), &[])).collect();
    fleet.start();
    fleet.eventually("all have begun", || (journal.begun() == tasks.len()).then_some(()));
    fleet.signal(Signal::SIGTERM);
    fleet.eventually("it drains", || fleet.json(["status"])["daemon"]["stopping"].as_str().map(|_| ()));
    let late = fleet.create("late", &Journal::script("true"), &[]);

    fleet.restart();

    fleet.wait_for(&late, "ready");
    journal.let_go();
    let all = [tasks, vec![late]].concat();
    fleet.eventually("all are done", || {
        let done = fleet.json(["list", "--status", "done", "--limit", "100"]);
        (done.as_array().unwrap().len() == all.len()).then_some(())
    });
    journal.audit(&fleet, &all, Attempts::One);
    assert_eq!(json!(journal.begun()), json!(11));
    invariants_hold(&fleet);
}
