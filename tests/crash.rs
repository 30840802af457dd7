//! Whatever dies at whatever moment: nothing acknowledged is lost, nothing runs twice at once, nothing is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Fleet, User, binary, skip};
use crate::invariants::invariants_hold;
use crate::journal::{Attempts, Journal, PATIENT, left, records};

/// The named points, each with the passage at which the daemon dies, so that it dies some times on the way.
const POINTS: [&str; 14] = [
    "begin:41",
    "job:61",
    "commit:41",
    "committed:41",
    "after-claim:27",
    "after-prepare:27",
    "after-run-dir:27",
    "after-spawn:27",
    "after-started:27",
    "after-exit:27",
    "after-artifacts:27",
    "before-finish:27",
    "after-finish:27",
    "after-cleanup:27",
];

/// A number from the environment, or a default.
pub(crate) fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Moments and victims that differ from run to run; a failure tells the seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = setting("CRASH_SEED", usize::try_from(now.as_micros() & 0xffff_ffff).unwrap());
        println!("CRASH_SEED={seed}");
        Chance(seed as u64)
    }

    /// A number below `end` (Knuth's MMIX generator).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Creates tasks of one script without a daemon.
fn create(fleet: &Fleet, count: usize, script: &str) -> Vec<String> {
    (0..count).map(|n| fleet.create(&format!("task {n}"), script, &[])).collect()
}

/// Starts a daemon that dies at a point, if one is named. Does not wait for it to serve.
fn launch(fleet: &Fleet, point: Option<&str>) {
    let log = fs::File::options().create(true).append(true).open(fleet.log_file()).unwrap();
    let mut command = fleet.command(["daemon"]);
    command.stdout(log.try_clone().unwrap()).stderr(log).env("RUST_LOG", "info");
    if let Some(point) = point {
        command.env("SUPERVISOR_FAIL_POINT", point);
    }
    fleet.adopt(command.spawn().unwrap());
}

/// Returns true if the daemon has died and waits to be reaped.
pub(crate) fn has_died(fleet: &Fleet) -> bool {
    state_of(fleet.daemon_pid()) == Some('Z')
}

/// The state of a process; none when it is gone.
fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Returns true if all tasks are done on the board.
fn all_done(fleet: &Fleet, journal: &Journal, tasks: usize) -> bool {
    if journal.ended() < tasks {
        return false;
    }
    // The daemon may die under the question; then it is asked again.
    let listed = fleet.cli(["list", "--status", "done", "--limit", "5000", "--json"]);
    listed.code == 0 && listed.json().as_array().is_some_and(|done| done.len() == tasks)
}

/// Kills the daemon, starts one that nothing disturbs, waits for the rest and looks at everything.
#[track_caller]
fn settle(fleet: &Fleet, journal: &Journal, tasks: &[String], attempts: Attempts) {
    fleet.kill_daemon();
    fleet.start();
    fleet.eventually("all tasks are done", || all_done(fleet, journal, tasks.len()).then_some(()));
    journal.audit(fleet, tasks, attempts);
    invariants_hold(fleet);
}

#[test]
fn a_daemon_that_dies_at_any_named_point_loses_nothing_and_repeats_nothing() {
    let count = setting("CRASH_TASKS", 100);
    let template = Fleet::offline();
    let tasks = create(&template, count, &Journal::script("sleep 0.01"));
    for point in POINTS {
        println!("--- {point}");
        let fleet = Fleet::offline();
        let journal = Journal::of(&fleet, 8, "");
        copy(&template.root().join("boards"), &fleet.root().join("boards"));
        let mut deaths = 0;
        loop {
            launch(&fleet, Some(point));
            let died = fleet.eventually("the daemon has died, or is through", || {
                has_died(&fleet)
                    .then_some(true)
                    .or_else(|| all_done(&fleet, &journal, count).then_some(false))
            });
            if !died {
                break;
            }
            fleet.reap_daemon();
            deaths += 1;
        }
        assert!(deaths > 0, "{point} was never passed");
        settle(&fleet, &journal, &tasks, Attempts::One);
    }
}

/// The first claim of a root, before which no run was.
#[test]
fn a_daemon_that_dies_at_its_first_claim_has_that_task_run_once() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 8, "");
    let tasks = create(&fleet, 1, &Journal::script("true"));
    launch(&fleet, Some("after-claim:1"));
    fleet.eventually("the daemon has died", || has_died(&fleet).then_some(()));
    fleet.reap_daemon();
    assert_eq!(journal.ended(), 0);
    fleet.start();
    fleet.eventually("the task is done", || all_done(&fleet, &journal, 1).then_some(()));
    journal.audit(&fleet, &tasks, Attempts::One);
    invariants_hold(&fleet);
}

#[test]
fn a_daemon_that_is_killed_at_random_moments_loses_nothing_and_repeats_nothing() {
    let (count, kills) = (setting("CRASH_TASKS", 100), setting("CRASH_KILLS", 200));
    let mut chance = Chance::new();
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 8, "");
    // Long enough that some run at each of the kills, each for another time.
    let tasks = create(&fleet, count, &Journal::script("sleep $(($$ % 3)).$(($$ % 10))"));
    for _ in 0..kills {
        launch(&fleet, None);
        std::thread::sleep(Duration::from_millis(20 + chance.below(200)));
        fleet.kill_daemon();
    }
    launch(&fleet, None);
    settle(&fleet, &journal, &tasks, Attempts::One);
}

#[test]
fn killed_shims_and_workers_cost_an_attempt_and_leave_nothing() {
    // Fewer than the slots' tasks together may lose, so that there is always one that may.
    let (count, kills) = (setting("CRASH_TASKS", 100) / 2, 30);
    let mut chance = Chance::new();
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 8, "failure_limit = 1000\n");
    let between = "(setsid sleep 600 &)\nwhile [ ! -e \"${JOURNAL%/*}/go\" ]; do sleep 0.05; done";
    let tasks = create(&fleet, count, &Journal::script(between));
    fleet.start();
    let mut killed = BTreeMap::<String, BTreeSet<i32>>::new();
    let total = |killed: &BTreeMap<String, BTreeSet<i32>>| killed.values().map(BTreeSet::len).sum::<usize>();
    fleet.eventually("enough shims and workers were killed", || {
        // A task waits longer after each loss, so none loses too often.
        let mut victims = victims(&fleet, chance.below(3));
        victims.retain(|(task, _)| killed.get(task).is_none_or(|pids| pids.len() < 4));
        if !victims.is_empty() {
            let (task, pid) =
                victims.swap_remove(usize::try_from(chance.below(victims.len() as u64)).unwrap());
            if kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok() {
                killed.entry(task).or_default().insert(pid);
            }
        }
        (total(&killed) >= kills).then_some(())
    });
    fs::write(journal.dir().join("go"), "").unwrap();
    settle(&fleet, &journal, &tasks, Attempts::Many);
}

/// The tasks and pids of shims, of workers, or of both.
fn victims(fleet: &Fleet, which: u64) -> Vec<(String, i32)> {
    let files: &[&str] = match which {
        0 => &["pid"],
        1 => &["started"],
        _ => &["pid", "started"],
    };
    let tasks: BTreeMap<_, _> = records(fleet, "spec.json").into_iter().collect();
    // A worker's record outlives it; its pid is still the worker's only while it runs in this root.
    let live: BTreeSet<i32> = fleet.processes().iter().map(|process| process.pid).collect();
    let recorded = files.iter().flat_map(|file| records(fleet, file));
    let pids = recorded.filter_map(|(dir, record)| {
        let task = tasks.get(&dir)?["task"].as_str()?.to_owned();
        Some((task, i32::try_from(record["pid"].as_i64()?).ok()?))
    });
    pids.filter(|(_, pid)| live.contains(pid)).collect()
}

#[test]
fn a_shim_that_comes_after_its_run_was_taken_back_runs_nothing() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    let tasks = create(&fleet, 1, &Journal::script("true"));
    launch(&fleet, Some("after-run-dir"));
    fleet.eventually("the daemon has died", || has_died(&fleet).then_some(()));
    fleet.reap_daemon();
    let dir = fleet.root().join("runs/default/1");
    assert!(dir.join("spec.json").exists() && !dir.join("pid").exists());
    let mut late = Command::new("sh")
        .args(["-c", "kill -STOP $$; exec \"$0\" __shim \"$1\"", binary()])
        .arg(&dir)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(late.id()).unwrap();
    fleet.eventually("the late shim is stopped", || (state_of(pid) == Some('T')).then_some(()));

    fleet.start();
    fleet.wait_for(&tasks[0], "done");
    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();

    let code = late.wait().unwrap().code();
    assert!(matches!(code, Some(66 | 76)), "no run directory, or a revoked one: {code:?}");
    journal.audit(&fleet, &tasks, Attempts::One);
    let shown = fleet.show(&tasks[0]);
    assert_eq!(shown["runs"].as_array().unwrap().len(), 2, "{shown:#}");
    assert_eq!(
        (&shown["runs"][0]["outcome"], &shown["runs"][0]["spawned_at"]),
        (&"reclaimed".into(), &().into())
    );
    invariants_hold(&fleet);
}

#[test]
fn a_second_daemon_refuses_and_names_the_first_and_a_killed_first_is_no_obstacle() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 1, "");
    let tasks = create(&fleet, 2, &Journal::script(PATIENT));
    fleet.start();
    let first = fleet.daemon_pid();
    fleet.cli(["daemon"]).refused(4, &format!("a daemon, pid {first}"));
    fleet.eventually("a worker has begun", || (journal.begun() == 1).then_some(()));
    fleet.restart();
    fleet.cli(["daemon"]).refused(4, &format!("a daemon, pid {}", fleet.daemon_pid()));
    journal.let_go();
    settle(&fleet, &journal, &tasks, Attempts::One);
}

#[test]
fn a_run_of_another_boot_is_lost_and_costs_nothing() {
    let fleet = Fleet::offline();
    let journal = Journal::of(&fleet, 4, "");
    // One process: it dies with its shim, and leaves nobody.
    let script = journal.own_script("[ -e again ] || { touch again; exec sleep 600; }");
    let tasks = [fleet.create("dies", &script, &["--policy", "unconfined"])];
    fleet.start();
    let (dir, record) = fleet.eventually("the run has begun", || {
        let begun = journal.lines().len() == 1 && !records(&fleet, "started").is_empty();
        begun.then(|| records(&fleet, "pid").pop()).flatten()
    });
    left(&fleet, &tasks[0], "again");
    // The host goes down: daemon, shim and worker at once, and the boot id changes.
    fleet.kill_daemon();
    kill(Pid::from_raw(record["pid"].as_i64().unwrap().try_into().unwrap()), Signal::SIGKILL).unwrap();
    fleet.eventually("everything is gone", || {
        let left = fleet.processes();
        for process in &left {
            kill(Pid::from_raw(process.pid), Signal::SIGKILL).ok();
        }
        left.is_empty().then_some(())
    });
    let mut other = record.clone();
    other["boot_id"] = "00000000-0000-4000-8000-000000000000".into();
    // This very process stands for the one that has the pid in the new boot.
    other["pid"] = std::process::id().into();
    other["start_ticks"] = ticks(std::process::id()).into();
    fs::write(dir.join("pid"), other.to_string()).unwrap();

    fleet.start();

    let shown = fleet.wait_for(&tasks[0], "done");
    assert_eq!(shown["runs"][0]["outcome"], "lost", "{shown:#}");
    assert_eq!(shown["task"]["consecutive_failures"], 0);
    journal.audit(&fleet, &tasks, Attempts::Many);
    invariants_hold(&fleet);
}

fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap()
}

#[test]
fn an_ordinary_users_daemon_survives_its_deaths_as_well() {
    let (count, kills) = (setting("CRASH_TASKS", 100) / 4, setting("CRASH_KILLS", 200) / 5);
    let mut chance = Chance::new();
    let fleet = Fleet::offline_as(User::ordinary());
    let journal = Journal::of(&fleet, 8, "");
    let tasks = create(&fleet, count, &Journal::script("sleep $(($$ % 2)).$(($$ % 10))"));
    for _ in 0..kills {
        launch(&fleet, None);
        std::thread::sleep(Duration::from_millis(20 + chance.below(200)));
        fleet.kill_daemon();
    }
    launch(&fleet, None);
    settle(&fleet, &journal, &tasks, Attempts::One);
}

#[test]
fn without_a_cgroup_a_killed_shim_holds_its_claim_until_a_person_takes_it_back() {
    let fleet = Fleet::offline_as(User::ordinary());
    let journal = Journal::of(&fleet, 4, "");
    // One process: it dies with its shim, and leaves nobody.
    let script = journal.own_script("[ -e again ] || { touch again; exec sleep 600; }");
    let tasks = [fleet.create("dies", &script, &["--policy", "unconfined"])];
    fleet.start();
    let record = fleet.eventually("the run has begun", || {
        let begun = journal.lines().len() == 1 && !records(&fleet, "started").is_empty();
        begun.then(|| records(&fleet, "pid").pop()).flatten()
    });
    left(&fleet, &tasks[0], "again");
    let (dir, record) = record;
    let spec: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("spec.json")).unwrap()).unwrap();
    if !spec["cgroup"].is_null() {
        skip("survivors unknown: this user has cgroups");
        return;
    }
    kill(Pid::from_raw(record["pid"].as_i64().unwrap().try_into().unwrap()), Signal::SIGKILL).unwrap();
    let unknown = || {
        let status = fleet.json(["status"]);
        let worker = &status["workers"][0];
        (worker["phase"] == "unknown" && worker["note"].as_str()?.contains("survivors unknown")).then_some(())
    };
    fleet.eventually("status says that survivors are unknown", unknown);
    let found = fleet.json(["diagnostics", "--severity", "critical"]);
    assert_eq!(found[0]["diagnostics"][0]["kind"], "survivors_unknown", "{found:#}");
    // The next daemon cannot know more.
    fleet.restart();
    fleet.eventually("status still says it", unknown);
    assert_eq!(fleet.status_of(&tasks[0]), "running");

    fleet.cli(["reclaim", &tasks[0]]).ok();

    let shown = fleet.wait_for(&tasks[0], "done");
    assert_eq!(shown["runs"][0]["outcome"], "reclaimed", "{shown:#}");
    invariants_hold(&fleet);
}

#[test]
fn what_was_asked_of_a_run_before_its_shim_was_killed_does_not_free_it() {
    let fleet = Fleet::offline_as(User::ordinary());
    let journal = Journal::of(&fleet, 4, "grace = 600\n");
    let script = journal.own_script("trap '' TERM; exec sleep 600");
    let tasks = [fleet.create("stays", &script, &["--policy", "unconfined"])];
    fleet.start();
    let (dir, record) = fleet.eventually("the run has begun", || {
        let begun = journal.lines().len() == 1 && !records(&fleet, "started").is_empty();
        begun.then(|| records(&fleet, "pid").pop()).flatten()
    });
    let spec: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("spec.json")).unwrap()).unwrap();
    if !spec["cgroup"].is_null() {
        skip("survivors unknown: this user has cgroups");
        return;
    }
    fleet.cli(["archive", &tasks[0]]).ok();
    fleet.eventually("the shim is asked to end it", || dir.join("stop").exists().then_some(()));
    kill(Pid::from_raw(record["pid"].as_i64().unwrap().try_into().unwrap()), Signal::SIGKILL).unwrap();
    for _ in 0..2 {
        fleet.eventually("status says that survivors are unknown", || {
            (fleet.json(["status"])["workers"][0]["phase"] == "unknown").then_some(())
        });
        assert_eq!(fleet.status_of(&tasks[0]), "running");
        fleet.restart();
    }

    fleet.eventually("a person frees it", || {
        // Only what is asked for once it is known counts.
        fleet.cli(["reclaim", &tasks[0]]);
        (fleet.status_of(&tasks[0]) == "archived").then_some(())
    });
    invariants_hold(&fleet);
}

/// Copies a directory of plain files and directories.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}
