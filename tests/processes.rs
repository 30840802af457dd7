//! Workers of every temper, and hosts that lack something: no claim is freed too early, and none is kept too long.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Fleet, Output, User, binary, skip};
use crate::http::Http;
use crate::invariants::{at_rest, in_lines, invariants_hold, nothing_is_left};
use crate::journal::{Attempts, Journal, PATIENT, of_task, outcomes, records};

/// Creates many tasks over one connection each: quicker than a process each.
fn post(fleet: &Fleet, count: usize, script: &str) -> Vec<String> {
    let key = fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let api = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", &key);
    let task = |n| json!({"title": format!("task {n}"), "assignee": "shell", "body": script});
    let created = (0..count).map(|n| api.post("/api/v1/tasks", &task(n)).json(201));
    created.map(|created| created["id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn done(fleet: &Fleet, journal: &Journal, tasks: &[String]) {
    fleet.eventually("all tasks have come to their end", || (journal.ended() >= tasks.len()).then_some(()));
    fleet.eventually("all tasks are done", || {
        let listed = fleet.json(["list", "--status", "done", "--limit", "5000"]);
        (listed.as_array().unwrap().len() == tasks.len()).then_some(())
    });
}

/// The first attempt met its deadline. On a slow host another may have, before one was through.
#[track_caller]
fn timed_out_before_it_completed(shown: &Value) {
    let outcomes = outcomes(shown);
    let (last, before) = outcomes.split_last().unwrap();
    assert!(*last == "completed" && !before.is_empty(), "{shown:#}");
    assert!(before.iter().all(|outcome| *outcome == "timed_out"), "{shown:#}");
}

#[test]
fn a_deadline_ends_stubborn_daemons_of_a_worker_before_the_task_is_tried_again() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let journal = Journal::of(&fleet, 4, "grace = 1\n");
        fleet.start();
        // They ignore TERM, leave session and parent, and hold the output and the lock of the workspace open.
        let stubborn = "trap '' TERM\n(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & ) \n\
                        (setsid setsid sleep 600 & )\nwhile :; do sleep 1; done";
        let script = Journal::script(&format!("if [ ! -e again ]; then touch again; {stubborn}; fi"));
        let task = fleet.create("stubborn", &script, &["--max-runtime", "1"]);

        let shown = fleet.wait_for(&task, "done");

        timed_out_before_it_completed(&shown);
        journal.audit(&fleet, &[task], Attempts::Many);
        invariants_hold(&fleet);
    }
}

#[test]
fn a_worker_that_stopped_itself_is_ended_at_its_deadline() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "grace = 1\n");
    fleet.start();
    let script = Journal::script("[ -e again ] || { touch again; kill -STOP $$; }");
    let task = fleet.create("stopped", &script, &["--max-runtime", "1"]);
    let shown = fleet.wait_for(&task, "done");
    timed_out_before_it_completed(&shown);
    journal.audit(&fleet, &[task], Attempts::Many);
    invariants_hold(&fleet);
}

#[test]
fn a_worker_that_forks_without_end_is_ended_whole_and_holds_up_nobody() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "grace = 1\n");
    journal.policy(&fleet, "few", |policy| {
        policy["limits"].as_table_mut().unwrap().insert("pids".to_owned(), 100.into());
    });
    fleet.start();
    // The leader forks no more: a shell that cannot would end.
    let bomb = "b() { while :; do (setsid sleep 1 & b) & sleep 0.01; done; }; b & exec sleep 600";
    let task = fleet.create("forks", bomb, &["--policy", "few"]);
    fleet.eventually("it forks", || (fleet.processes_with(&of_task(&task)).len() > 20).then_some(()));
    let other = fleet.create("goes on", &Journal::script("true"), &[]);
    fleet.wait_for(&other, "done");
    // Only now: how soon it forks depends on the host.
    fleet.cli(["archive", &task]).ok();
    let shown = fleet.wait_for(&task, "archived");
    assert_eq!(outcomes(&shown).len(), 1, "{shown:#}");
    invariants_hold(&fleet);
}

#[test]
fn a_flood_of_output_is_cut_and_holds_up_nobody() {
    let fleet = Fleet::offline();
    let _journal = Journal::of(&fleet, 4, "grace = 1\nlog_cap = 100000\n");
    fleet.start();
    let task = fleet.create("flood", "yes", &[]);
    let log = fleet.eventually("the log is full", || {
        let path = fleet.show(&task)["runs"][0]["log_path"].as_str()?.to_owned();
        (fs::metadata(&path).ok()?.len() > 90_000).then_some(path)
    });
    let other = fleet.create("goes on", &Journal::script("true"), &[]);
    fleet.wait_for(&other, "done");
    fleet.cli(["archive", &task]).ok();
    fleet.wait_for(&task, "archived");
    assert!(fs::metadata(log).unwrap().len() <= 100_000);
    invariants_hold(&fleet);
}

#[test]
fn fifty_workers_are_left_killed_and_drained_and_each_task_is_done_in_the_end() {
    const WORKERS: usize = 50;
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, WORKERS, "grace = 1\n");
    fleet.start();
    let tasks = post(&fleet, WORKERS, &Journal::script(PATIENT));
    let begun = |n: usize| fleet.eventually("all have begun", || (journal.begun() == n).then_some(()));
    begun(WORKERS);

    // Left, and adopted: nothing begins again.
    assert!(fleet.stop(&["--leave"]).success());
    fleet.start();
    fleet.eventually("all are adopted", || {
        let status = fleet.json(["status"]);
        let workers = status["workers"].as_array().unwrap();
        (workers.len() == WORKERS && workers.iter().all(|worker| worker["phase"] == "running")).then_some(())
    });
    assert_eq!(journal.begun(), WORKERS);

    // Killed: gone, and ready again.
    assert!(fleet.stop(&["--kill"]).success());
    assert!(fleet.processes().is_empty(), "{:#?}", fleet.processes());
    fleet.start();
    begun(2 * WORKERS);

    // Drained, and asked twice.
    fleet.signal(Signal::SIGTERM);
    fleet.eventually("it drains", || fleet.json(["status"])["daemon"]["stopping"].as_str().map(|_| ()));
    fleet.signal(Signal::SIGTERM);
    assert!(fleet.reap_daemon().success());
    assert!(fleet.processes().is_empty(), "{:#?}", fleet.processes());
    fleet.start();
    begun(3 * WORKERS);

    journal.let_go();
    done(&fleet, &journal, &tasks);
    journal.audit(&fleet, &tasks, Attempts::Many);
    let listed = fleet.json(["list"]);
    assert!(listed.as_array().unwrap().iter().all(|task| task["consecutive_failures"] == 0));
    invariants_hold(&fleet);
}

#[test]
fn a_worker_that_lingers_after_its_verdict_is_ended_before_the_next_task_begins() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "grace = 1\nverdict_grace = 1\n");
    fleet.start();
    let lingers = "(setsid sleep 600 &)\nsupervisor complete --summary early\nsay verdict\nsleep 600";
    let first = fleet.create("lingers", &Journal::script(lingers), &[]);
    let second = fleet.create("waits", &Journal::script("true"), &["--parent", &first]);
    fleet.eventually("the verdict is given", || {
        journal.lines().iter().any(|line| line.what == "verdict").then_some(())
    });
    let shown = fleet.wait_for(&second, "done");
    assert!(fleet.processes_with(&of_task(&first)).is_empty());
    let first = fleet.show(&first);
    assert_eq!(
        (outcomes(&first), &first["latest_summary"]),
        (vec!["completed"], &json!("early")),
        "{first:#}"
    );
    // The second began after the first had ended, not after its verdict.
    let at = |value: &Value| value.as_f64().unwrap();
    assert!(at(&shown["runs"][0]["started_at"]) >= at(&first["runs"][0]["ended_at"]));
    invariants_hold(&fleet);
}

#[test]
fn an_idle_daemon_does_not_wake_up_by_itself() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    fleet.start();
    // What is done, what nobody here can run, what is for later and what waits for a person: none of it ticks.
    let ran = fleet.create("ran", &Journal::script("true"), &[]);
    fleet.json(["create", "for another", "--assignee", "elsewhere"]);
    fleet.create("later", "true", &["--not-before", "1h"]);
    fleet.create("held", "true", &["--initial-status", "blocked"]);
    fleet.wait_for(&ran, "done");
    assert_eq!(journal.ended(), 1);
    let wakeups = || fleet.json(["status"])["daemon"]["wakeups"].as_u64().unwrap();
    fleet.eventually("it has come to rest", || (wakeups() + 1 == wakeups()).then_some(()));
    let before = wakeups();
    for asked in 1..=100 {
        assert_eq!(wakeups(), before + asked, "it wakes up for the question alone");
    }
}

#[test]
fn a_thousand_tasks_leave_nothing_behind() {
    let count = std::env::var("FLEET_TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 8, "");
    fleet.start();
    // The readers of the board are a pool, which grows with what is asked at once, and has an end.
    let open = || -> Vec<String> {
        let fds = fs::read_dir(format!("/proc/{}/fd", fleet.daemon_pid())).unwrap().flatten();
        let links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        links.map(|link| link.display().to_string()).filter(|link| !link.contains("/boards/")).collect()
    };
    let mut tasks = post(&fleet, 100, &Journal::script("true"));
    done(&fleet, &journal, &tasks);
    invariants_hold(&fleet);
    let before = open();

    tasks.extend(post(&fleet, count - tasks.len(), &Journal::script("true")));
    done(&fleet, &journal, &tasks);

    invariants_hold(&fleet);
    let rest = || (open().len() <= before.len()).then_some(());
    fleet.eventually(&format!("no descriptor is left open beside {before:#?}"), rest);
    journal.audit(&fleet, &tasks, Attempts::One);
    fleet.restart();
    let leases = fs::read_dir(fleet.root().join("leases")).unwrap().count();
    assert_eq!(leases, 0, "a start sweeps the leases that nobody holds");
}

#[test]
fn a_daemon_short_of_descriptors_costs_no_task_an_attempt() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 16, "");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 56 && exec \"$0\" --root \"$1\" daemon", binary()]).arg(fleet.root());
    fleet.start_by(&mut command);
    let tasks = create(&fleet, 40, &Journal::script("sleep 0.3"));
    done(&fleet, &journal, &tasks);
    journal.audit(&fleet, &tasks, Attempts::One);
    invariants_hold(&fleet);
}

#[test]
fn tasks_wait_for_a_policy_that_is_not_there_and_go_on_when_it_is() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    fs::rename(fleet.root().join("policies.d/journal.toml"), fleet.root().join("journal.away")).unwrap();
    let tasks = create(&fleet, 3, &Journal::script("true"));
    fleet.start();
    fleet.eventually("status says what they wait for", || {
        let status = fleet.json(["status"]);
        let why = |waiting: &Value| {
            waiting["why"]["text"].as_str().is_some_and(|why| why.contains("no policy `journal`"))
        };
        let waiting = status["waiting"].as_array().unwrap();
        (waiting.iter().filter(|waiting| why(waiting)).count() == 3).then_some(())
    });
    assert_eq!(fleet.show(&tasks[0])["runs"], json!([]), "no run was spent on it");
    fs::rename(fleet.root().join("journal.away"), fleet.root().join("policies.d/journal.toml")).unwrap();
    fleet.signal(Signal::SIGHUP);
    done(&fleet, &journal, &tasks);
    journal.audit(&fleet, &tasks, Attempts::One);
}

#[test]
fn a_full_disk_pauses_dispatch_and_loses_nothing() {
    if User::current() != User::Root {
        skip("a full disk under the board: needs root for a mount");
        return;
    }
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 1, "");
    let boards = fleet.root().join("boards");
    fs::create_dir(&boards).unwrap();
    fs::set_permissions(&boards, fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = Command::new("unshare");
    let mount = "mount -t tmpfs -o size=4m,mode=0700 none \"$2\" && exec \"$0\" --root \"$1\" daemon";
    command.args(["-m", "sh", "-c", mount, binary()]).arg(fleet.root()).arg(&boards);
    fleet.start_by(&mut command);
    let inside = format!("/proc/{}/root{}", fleet.daemon_pid(), boards.display());
    let mut tasks = vec![fleet.create("runs", &Journal::script(PATIENT), &[])];
    fleet.eventually("the worker has begun", || (journal.begun() == 1).then_some(()));
    // They wait for the slot, and then for the disk.
    tasks.extend(create(&fleet, 3, &Journal::script("true")));

    let ballast = Path::new(&inside).join("ballast");
    let full = Full::keep(ballast.clone());
    // What is acknowledged is kept, and what cannot be kept is refused.
    let refused = loop {
        let created = fleet.cli([
            "create",
            "more",
            "--assignee",
            "shell",
            "--body",
            &Journal::script("true"),
            "--json",
        ]);
        if created.code != 0 {
            break created;
        }
        tasks.push(created.json()["id"].as_str().unwrap().to_owned());
    };
    assert_eq!(refused.code, 75, "{}{}", refused.stdout, refused.stderr);
    // The log has room that was made ahead, and a comment needs less of it than the end of a run.
    let comment = || fleet.cli(["comment", &tasks[1], "more"]).code == 0;
    let comments = std::iter::repeat_with(comment).take_while(|kept| *kept).count();
    fleet.write_config(
        "supervisor.toml",
        &fs::read_to_string(fleet.root().join("supervisor.toml"))
            .unwrap()
            .replace("max_running = 1", "max_running = 4"),
    );
    fleet.signal(Signal::SIGHUP);
    let paused = fleet.eventually("status says why nothing starts", || {
        fleet.json(["status"])["daemon"]["paused"].as_str().map(str::to_owned)
    });
    assert!(paused.contains("full"), "{paused}");
    assert_eq!(journal.begun(), 1);
    journal.let_go();
    fleet.eventually("the worker's end waits for the board", || {
        let status = fleet.json(["status"]);
        status["workers"].as_array()?.iter().any(|worker| worker["phase"] == "settling").then_some(())
    });
    assert_eq!(fleet.status_of(&tasks[0]), "running");

    drop(full);
    fs::remove_file(&ballast).unwrap();

    done(&fleet, &journal, &tasks);
    journal.audit_runs(&fleet, &tasks, Attempts::One);
    assert_eq!(fleet.json(["show", &tasks[1]])["comments"].as_array().unwrap().len(), comments);
    fleet.eventually("dispatch goes on", || {
        fleet.json(["status"])["daemon"]["paused"].is_null().then_some(())
    });
    nothing_is_left(&fleet);
    // The board is where the daemon has mounted it.
    let beside_the_daemon = |args: &[&str]| {
        let mut command = Command::new("nsenter");
        command.args(["--target", &fleet.daemon_pid().to_string(), "--mount", "--", binary(), "--root"]);
        command.arg(fleet.root()).args(args);
        fleet.dress(&mut command);
        Output::of(&mut command)
    };
    assert_eq!(in_lines(&at_rest(&beside_the_daemon)), "");
}

#[test]
fn a_daemon_with_a_session_of_its_own_and_the_shims_go_before_the_workers() {
    let share_of = |pid: i32| fs::read_to_string(format!("/proc/{pid}/autogroup"));
    if User::current() != User::Root || share_of(1).is_err() {
        return skip(
            "the share of a session: needs root, and a kernel that divides processors between sessions",
        );
    }
    let service = Fleet::offline();
    service.start_as_service();
    assert!(share_of(service.daemon_pid()).unwrap().ends_with("nice -10\n"));
    service.create("has the share of any other program", "sleep 600", &[]);
    let of_the_one = |file: &str| {
        let (_, record) = records(&service, file).pop()?;
        share_of(record["pid"].as_i64()?.try_into().ok()?).ok()
    };
    service.eventually("the worker has a share of its own", || {
        of_the_one("started").filter(|share| share.ends_with("nice 0\n"))
    });
    let shim = of_the_one("pid").unwrap();
    assert!(shim.ends_with("nice -10\n"), "{shim}");

    let in_a_shell = Fleet::boot();
    assert_eq!(
        share_of(in_a_shell.daemon_pid()).unwrap(),
        fs::read_to_string("/proc/self/autogroup").unwrap(),
        "a session that the daemon does not lead is not changed"
    );
}

/// A disk that stays full, whatever is given back on it.
struct Full {
    stop: Arc<AtomicBool>,
    filler: Option<thread::JoinHandle<()>>,
}

impl Full {
    /// Writes to a file of that disk until this is dropped.
    fn keep(ballast: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let filler = thread::spawn(move || {
            let mut file = fs::File::options().create(true).append(true).open(ballast).unwrap();
            while !until.load(Ordering::Relaxed) {
                for size in [4096, 1] {
                    while file.write_all(&vec![0; size]).is_ok() {}
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        Full { stop, filler: Some(filler) }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.filler.take().map(thread::JoinHandle::join));
    }
}

fn create(fleet: &Fleet, count: usize, script: &str) -> Vec<String> {
    (0..count).map(|n| fleet.create(&format!("task {n}"), script, &[])).collect()
}

#[test]
fn the_memory_of_a_worker_is_recorded_where_it_is_more_than_that_of_the_step_before_it() {
    let fleet = Fleet::boot();
    let small = fleet.create("small", "true", &[]);
    // tail keeps what it may have to write.
    let large = fleet.create("large", "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c", &[]);
    fleet.wait_for(&small, "done");
    fleet.wait_for(&large, "done");
    let kib = |task: &str| fleet.json(["runs", task])[0]["usage"]["max_rss_kib"].as_u64().unwrap();
    assert_eq!(kib(&small), 0);
    assert!(kib(&large) > 150_000, "{}", kib(&large));
}
