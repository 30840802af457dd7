//! The daemon as a service manager sees it, by a socket of the test (`sd_notify(3)`).

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Fleet, Output, User};
use crate::http::{Http, free_port};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, PATIENT, of_task};
use crate::plugins::installed;

/// The time in which a sign of life must come, in the tests.
const WATCHDOG: Duration = Duration::from_millis(800);

/// A service manager that listens.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    /// Listens in the home of a fleet.
    fn listen(fleet: &Fleet) -> Self {
        let socket = UnixDatagram::bind(fleet.home().join("notify")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Manager { socket }
    }

    /// Starts the daemon of a fleet with further variables.
    fn start(fleet: &Fleet, variables: &[String]) -> Self {
        let manager = Manager::listen(fleet);
        let path = fleet.home().join("notify");
        let mut command = Command::new("env");
        // A thread that a test keeps must not be the only one.
        command.arg(format!("NOTIFY_SOCKET={}", path.display())).arg("TOKIO_WORKER_THREADS=4");
        command.args(variables).arg(fleet.binary()).arg("--root").arg(fleet.root()).arg("daemon");
        fleet.start_by(&mut command);
        manager
    }

    /// The next notice, where one has come.
    fn next(&self) -> Option<String> {
        let mut notice = [0_u8; 4096];
        let length = self.socket.recv(&mut notice).ok()?;
        Some(String::from_utf8_lossy(&notice[..length]).into_owned())
    }

    /// Waits for a notice that has a text, and returns all that came until then.
    fn until(&self, fleet: &Fleet, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        fleet.eventually(&format!("the manager hears {text}"), || {
            while let Some(notice) = self.next() {
                let found = notice.contains(text);
                seen.push(notice);
                if found {
                    return Some(());
                }
            }
            None
        });
        seen
    }
}

#[test]
fn a_daemon_of_which_one_part_hangs_gives_no_sign_of_life() {
    for (point, part) in [
        ("owner-loop", "the owner loop"),
        ("begin", "a board's writer"),
        ("reap", "the reaper"),
        ("answer", "the operator's listener"),
    ] {
        let fleet = Fleet::offline();
        let hangs = fleet.home().join("hangs");
        let variables = [
            format!("WATCHDOG_USEC={}", WATCHDOG.as_micros()),
            format!("SUPERVISOR_HANG_POINT={point}@{}", hangs.display()),
        ];
        let journal = Journal::of(&fleet, 1, "");
        let task = fleet.create("does not notice", &Journal::script(PATIENT), &[]);
        let manager = Manager::start(&fleet, &variables);
        for _ in 0..3 {
            manager.until(&fleet, "WATCHDOG=1");
        }
        fleet.eventually("its worker has begun", || (journal.begun() == 1).then_some(()));

        std::fs::write(&hangs, "").unwrap();
        fleet.eventually(&format!("{point}: the log names what hangs"), || {
            let log = fleet.log();
            log.lines().any(|line| line.contains("not_moving") && line.contains(part)).then_some(())
        });

        let mut heard = Instant::now();
        fleet.eventually(&format!("{point}: the manager has waited for a sign of life in vain"), || {
            while let Some(notice) = manager.next() {
                if notice.contains("WATCHDOG") {
                    heard = Instant::now();
                }
            }
            (heard.elapsed() > WATCHDOG).then_some(())
        });
        std::fs::remove_file(&hangs).unwrap();
        manager.until(&fleet, "WATCHDOG=1");
        journal.let_go();
        fleet.wait_for(&task, "done");
        journal.audit(&fleet, &[task], Attempts::One);
        invariants_hold(&fleet);
    }
}

#[test]
fn a_daemon_that_starts_is_said_to_and_is_ready_when_its_doors_are_open() {
    let fleet = Fleet::offline();
    fleet.json(["init"]);
    let hangs = fleet.home().join("hangs");
    std::fs::write(&hangs, "").unwrap();
    let manager = Manager::listen(&fleet);
    let launch = || {
        let log = std::fs::File::options().create(true).append(true).open(fleet.log_file()).unwrap();
        let mut command = fleet.command(["daemon"]);
        command.env("NOTIFY_SOCKET", fleet.home().join("notify"));
        command.env("SUPERVISOR_HANG_POINT", format!("before-listeners@{}", hangs.display()));
        fleet.adopt(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    };
    launch();

    let said = fleet.eventually("status says that it is starting", || {
        let said = fleet.cli(["status"]);
        // One that has hung for ten seconds by now does not start any more.
        if said.stdout.contains("owns this root") {
            fleet.kill_daemon();
            launch();
        }
        said.stdout.contains("is starting; try again in a moment").then_some(said)
    });

    assert_eq!(said.code, 3, "{said:?}");
    let early: Vec<String> = std::iter::from_fn(|| manager.next()).collect();
    assert_eq!(early, Vec::<String>::new(), "nothing is ready");
    std::fs::remove_file(&hangs).unwrap();
    manager.until(&fleet, "READY=1");
    manager.until(&fleet, "STATUS=0 of ");
    assert_eq!(fleet.cli(["status"]).code, 0);
}

#[test]
fn a_daemon_without_a_watchdog_gives_no_sign_of_life() {
    let fleet = Fleet::offline();
    let manager = Manager::start(&fleet, &[]);
    manager.until(&fleet, "READY=1");
    let task = fleet.create("one", "true", &[]);
    fleet.wait_for(&task, "done");
    let signs = std::iter::from_fn(|| manager.next()).filter(|notice| notice.contains("WATCHDOG"));
    assert_eq!(signs.count(), 0);
}

#[test]
fn the_line_for_the_manager_names_paused_plugins_and_channels_that_take_nothing_as_status_does() {
    let fleet = Fleet::offline();
    let channel = format!(
        "[notify]\ndefault = 'ops'\n[notify.channels.ops]\nkind = 'webhook'\nurl = 'http://127.0.0.1:{}/hook'\n\
         retry_first = 0\nretry_longest = 0\ngive_up_after = 1\n",
        free_port()
    );
    fleet.configure(&channel);
    let manager = Manager::start(&fleet, &[]);
    installed(&fleet, "unlucky", "tries = 1\n[[events]]\nkinds = ['created']", "exit 3");
    let task = fleet.create("told of", "true", &[]);
    fleet.wait_for(&task, "done");

    let troubles = ["channel ops: it does not take its messages", "plugin unlucky: it is paused"];
    let notices = manager.until(&fleet, &troubles.join("; "));

    assert!(notices.last().unwrap().starts_with("STATUS=0 of "), "{notices:?}");
    let status = fleet.cli(["status"]);
    assert_eq!(status.code, 1, "{status:?}");
    let said = status.stdout.replace("\n  ", " ");
    for trouble in troubles {
        assert!(said.contains(trouble), "{said}");
    }
    fleet.cli(["notify", "drop", "--channel", "ops"]).ok();
    fleet.cli(["plugin", "resume", "unlucky", "--skip"]).ok();
    fleet.eventually("the manager hears that it is over", || {
        let last =
            std::iter::from_fn(|| manager.next()).filter(|notice| notice.starts_with("STATUS=")).last();
        last.filter(|notice| troubles.iter().all(|trouble| !notice.contains(trouble)))
    });
}

#[test]
fn a_reload_is_announced_and_a_bad_configuration_fails_it() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 3\n");
    let manager = Manager::start(&fleet, &[]);
    manager.until(&fleet, "STATUS=0 of 3 slots taken");

    fleet.configure("[limits]\nmax_running = 2\n");
    fleet.cli(["service", "reload"]).ok();
    let notices = manager.until(&fleet, "STATUS=0 of 2 slots taken");
    let begun = notices.iter().position(|notice| notice.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    let over = notices.iter().position(|notice| notice.starts_with("READY=1"));
    assert!(begun.is_some() && begun < over, "{notices:?}");

    fleet.write_config("supervisor.toml", "[limits]\nmax_running = \"many\"\n");
    let refused = fleet.cli(["service", "reload"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("supervisor.toml") && refused.stderr.contains("max_running"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("the daemon continues"), "{}", refused.stderr);
    let notices = manager.until(&fleet, "STATUS=");
    assert!(notices.last().unwrap().contains("of 2 slots taken; "), "{notices:?}");
    assert!(notices.last().unwrap().contains("supervisor.toml"), "{notices:?}");

    fleet.configure("");
    fleet.cli(["service", "reload"]).ok();
}

#[test]
fn a_reload_without_a_daemon_is_refused() {
    let fleet = Fleet::offline();
    let refused = fleet.cli(["service", "reload"]);
    assert_eq!(refused.code, 69, "{}", refused.stderr);
}

/// A script that withstands TERM, with a child that does so too.
const STUBBORN: &str =
    "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & touch up; while :; do sleep 0.05; done";

/// A daemon with a worker that withstands TERM, and the task of it.
pub(crate) fn with_worker() -> (Fleet, String) {
    let fleet = Fleet::offline();
    fleet.configure("[worker]\ngrace = 1\ndrain = 1\n");
    fleet.start();
    let task = fleet.create("runs", STUBBORN, &[]);
    fleet.eventually("the script has begun", || {
        let path = fleet.show(&task)["runs"][0]["workspace_path"].as_str()?.to_owned();
        std::path::Path::new(&path).join("up").exists().then_some(())
    });
    (fleet, task)
}

/// Runs a command of the unit while the service manager has a job for it, or none.
pub(crate) fn under_job(fleet: &Fleet, verb: &str, job: &str) -> Output {
    let bin = fleet.home().join(format!("bin-{verb}-{job}"));
    std::fs::create_dir_all(&bin).unwrap();
    let line =
        if job.is_empty() { String::new() } else { format!("echo '12 supervisor.service {job} running'") };
    let systemctl = bin.join("systemctl");
    std::fs::write(&systemctl, format!("#!/bin/sh\n{line}\n")).unwrap();
    std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = fleet.command(["service", verb, "supervisor.service"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    Output::of(&mut command)
}

#[test]
fn what_a_dead_daemon_left_ends_with_a_stop_of_the_unit_alone() {
    let (fleet, task) = with_worker();
    fleet.kill_daemon();
    for job in ["", "restart", "start"] {
        under_job(&fleet, "after-stop", job).ok();
        assert!(fleet.processes_with(&of_task(&task)).len() >= 2, "{job}");
    }

    under_job(&fleet, "after-stop", "stop").ok();

    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
    let shown = fleet.show(&task);
    assert_eq!(
        (&shown["task"]["status"], &shown["runs"][0]["outcome"]),
        (&json!("ready"), &json!("preempted"))
    );
    assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "nothing was started");
}

#[test]
fn a_daemon_that_lives_is_not_taken_for_a_dead_one() {
    let (fleet, task) = with_worker();
    under_job(&fleet, "after-stop", "stop").ok();
    assert!(fleet.processes_with(&of_task(&task)).len() >= 2);
    assert_eq!(fleet.status_of(&task), "running");
}

#[test]
fn a_daemon_that_hangs_is_killed_by_a_stop_and_its_workers_end() {
    let (fleet, task) = with_worker();
    fleet.signal(Signal::SIGSTOP);
    under_job(&fleet, "at-stop", "stop").ok();
    assert_eq!(fleet.reap_daemon().signal(), Some(Signal::SIGKILL as i32));
    assert!(fleet.processes_with(&of_task(&task)).len() >= 2);
    under_job(&fleet, "after-stop", "stop").ok();
    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(fleet.status_of(&task), "ready");
}

#[test]
fn a_restart_of_the_unit_leaves_workers_and_a_stop_drains() {
    let (fleet, task) = with_worker();
    under_job(&fleet, "at-stop", "restart").ok();
    assert!(fleet.reap_daemon().success());
    assert!(fleet.processes_with(&of_task(&task)).len() >= 2);

    fleet.start();
    under_job(&fleet, "at-stop", "stop").ok();
    assert!(fleet.reap_daemon().success());
    let left = fleet.processes();
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(fleet.show(&task)["runs"][0]["outcome"], "preempted");
}

#[test]
fn the_units_are_printed_for_anybody_and_installed_by_root_alone() {
    for user in User::all() {
        let is_root = user == User::Root;
        let fleet = Fleet::offline_as(user);
        let run = |args: &[&str]| {
            let mut command = Command::new(fleet.binary());
            command.args(args);
            fleet.dress(&mut command);
            Output::of(&mut command)
        };
        for (manager, dir) in [
            ("--system", "/etc/systemd/system/".to_owned()),
            ("--user", format!("{}/.config/systemd/user/", fleet.home().display())),
        ] {
            let printed = run(&[manager, "service", "install", "--print"]).ok().stdout;
            for unit in ["supervisor.service", "supervisor-stop.service", "supervisor.socket"] {
                assert!(printed.contains(&format!("# {dir}{unit}\n")), "{printed}");
            }
            assert!(
                printed.contains(&format!("={} {manager} daemon\n", fleet.binary().display())),
                "{printed}"
            );
        }
        let both = run(&["service", "install", "--print", "--no-start"]);
        assert_eq!(both.code, 2, "nothing is installed that could start later: {}", both.stderr);
        let named = run(&["--root", "/srv/fleet", "service", "install"]);
        assert_eq!(named.code, 2, "{}", named.stderr);
        if !is_root {
            let refused = run(&["--system", "service", "install"]);
            assert_eq!(refused.code, 77, "{}", refused.stderr);
            assert!(refused.stderr.contains("sudo supervisor service install"), "{}", refused.stderr);
        } else if !Path::new("/run/systemd/system").exists() {
            let refused = run(&["--system", "service", "install"]);
            assert_eq!(refused.code, 1, "{}", refused.stderr);
            assert!(refused.stderr.contains("systemd does not run here"), "{}", refused.stderr);
        }
    }
}

#[test]
fn the_log_is_one_json_object_a_line_where_that_is_asked_for() {
    let fleet = Fleet::offline();
    let mut command = Command::new(fleet.binary());
    command.arg("--root").arg(fleet.root()).args(["daemon", "--log-format", "json"]);
    fleet.start_by(&mut command);
    let task = fleet.create("one", "true", &[]);
    fleet.wait_for(&task, "done");
    let launched = fleet.eventually("the log has the start of the run", || {
        let log = fleet.log();
        let entries = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let mut launched = entries.filter(|entry| entry["message"] == "launched");
        launched.next()
    });
    assert_eq!((&launched["level"], &launched["task"]), (&json!("INFO"), &json!(format!("default/{task}"))));
}

#[test]
fn metrics_are_counted_over_all_boards_and_served_as_text() {
    let fleet = Fleet::offline();
    fleet.configure("[limits]\nmax_running = 3\n");
    let offline = fleet.cli(["metrics"]).ok().stdout;
    assert!(offline.contains("\nsupervisor_up 0\n") && offline.ends_with("# EOF\n"), "{offline}");

    fleet.start();
    fleet.cli(["boards", "create", "other"]).ok();
    crate::plugins::installed(&fleet, "diary", "[[events]]\nkinds = ['gave_up']\n", "cat > /dev/null");
    fleet.create("waits", "true", &["--triage"]);
    fleet.cli(["--board", "other", "create", "waits too", "--triage"]).ok();
    let done = fleet.create("is done", "true", &[]);
    fleet.wait_for(&done, "done");
    let text = fleet.cli(["metrics"]).ok().stdout;
    for line in [
        "supervisor_up 1",
        "supervisor_slots 3",
        "supervisor_paused 0",
        "supervisor_boards 2",
        "supervisor_boards_troubled 0",
        "supervisor_tasks{board=\"default\",status=\"triage\"} 1",
        "supervisor_tasks{board=\"default\",status=\"done\"} 1",
        "supervisor_tasks{board=\"other\",status=\"triage\"} 1",
        "supervisor_configuration_defects 0",
        "supervisor_plugin_paused{board=\"default\",plugin=\"diary\"} 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in {text}");
    }
    let key = std::fs::read_to_string(fleet.root().join("operator.key")).unwrap();
    let api = Http::at(fleet.root().join("run/supervisor.sock")).with("x-supervisor-key", key.trim());
    let served = api.get("/api/v1/metrics");
    assert_eq!(served.status, 200);
    assert!(served.head.contains("content-type: application/openmetrics-text"), "{}", served.head);
    assert!(served.body.contains("supervisor_up 1"), "{}", served.body);
}
