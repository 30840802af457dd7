//! Schedules: their files, the commands that keep them, and ticks that come once over the death of the daemon.

mod ahead;
mod creators;
mod failing;
mod files;
mod replaced;

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::Fleet;

/// The tasks of a schedule by the seconds of their ticks, in the order of the ticks.
fn ticks(fleet: &Fleet) -> Vec<i64> {
    let listed = fleet.json(["list", "--limit", "1000"]);
    let of_schedule = listed.as_array().unwrap().iter().filter(|task| task["schedule"] == "beat");
    let mut ticks: Vec<i64> = of_schedule.map(|task| task["tick"].as_i64().unwrap()).collect();
    ticks.sort_unstable();
    ticks
}

#[test]
fn each_tick_is_made_once_over_daemons_that_are_killed() {
    let fleet = Fleet::boot();
    // Tasks that nobody runs stay open: each tick replaces that of the one before, so every tick has its task.
    let file =
        "every = \"1s\"\nmissed = \"all\"\noverlap = \"replace\"\n[task]\ntitle = \"beat of {tick}\"\n";
    fs::write(fleet.home().join("beat.toml"), file).unwrap();
    fleet.cli(["schedules", "add", "beat", "--file", "beat.toml"]).ok();
    let shown = || fleet.json(["schedules", "show", "beat"]);
    let made = || {
        let events = fleet.json(["events", "--kind", "ticked", "--limit", "1000"]);
        let events = events["events"].as_array().unwrap().clone();
        let of = |event: &Value| {
            let payload = &event["payload"];
            (payload["outcome"] == "made" && payload["note"].is_null())
                .then(|| payload["tick"].as_i64().unwrap())
        };
        events.iter().filter_map(of).collect::<Vec<i64>>()
    };
    for kill in 1..=4 {
        let before = made().len();
        fleet.eventually("further ticks", || (made().len() > before + kill).then_some(()));
        fleet.kill_daemon();
        fleet.start();
    }
    let before = made().len();
    fleet.eventually("a tick after the last death", || (made().len() > before).then_some(()));

    fleet.cli(["schedules", "pause", "beat"]).ok();

    let made = made();
    let distinct: BTreeSet<i64> = made.iter().copied().collect();
    assert_eq!(distinct.len(), made.len(), "no tick comes twice: {made:?}");
    let (first, last) = (made[0], made[made.len() - 1]);
    assert_eq!(distinct, (first..=last).collect(), "no tick is lost");
    assert_eq!(shown()["paused"], true);
    assert!(ticks(&fleet).len() <= 2, "the earlier ones are archived");
}

/// Returns the decisions about a schedule's ticks, oldest first: tick, outcome, and the number of missed ticks before
/// it.
fn decided(fleet: &Fleet, name: &str) -> Vec<(i64, String, i64)> {
    let events = fleet.json(["events", "--kind", "ticked", "--limit", "1000"]);
    let of = |event: &Value| {
        let said = &event["payload"];
        (said["schedule"] == name).then(|| {
            let outcome = said["outcome"].as_str().unwrap().to_owned();
            (said["tick"].as_i64().unwrap(), outcome, said["missed"].as_i64().unwrap())
        })
    };
    let mut decided: Vec<_> = events["events"].as_array().unwrap().iter().filter_map(of).collect();
    decided.sort();
    decided
}

/// Adds a schedule of each second, whose tasks nobody does.
fn each_second(fleet: &Fleet, name: &str, more: &str) {
    let file = format!("every = \"1s\"\n{more}\n[task]\ntitle = \"{name} of {{tick}}\"\n");
    let path = format!("{name}.toml");
    fs::write(fleet.home().join(&path), file).unwrap();
    fleet.cli(["schedules", "add", name, "--file", &path]).ok();
}

fn seconds() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

#[test]
fn a_daemon_that_slept_through_ticks_does_what_each_schedule_says() {
    let fleet = Fleet::boot();
    // No tick is near: one of the last minute is on time.
    let now = seconds();
    let is_far = |period: &i64| (300..period - 300).contains(&(now % period));
    let period = [3600, 5000, 7000, 11_000, 13_000].into_iter().find(is_far).unwrap();
    let rules = ["skip", "once", "all"];
    for rule in rules {
        let file = format!(
            "every = \"{period}s\"\nmissed = \"{rule}\"\noverlap = \"replace\"\n[task]\ntitle = \"{rule}\"\n"
        );
        fs::write(fleet.home().join("rule.toml"), file).unwrap();
        fleet.cli(["schedules", "add", rule, "--file", "rule.toml"]).ok();
    }
    fleet.kill_daemon();
    // Six periods go by, as the board has it.
    let board = rusqlite::Connection::open(fleet.root().join("boards/default/board.db")).unwrap();
    let back = "UPDATE schedules SET decided = decided - ?1, next = next - ?1";
    assert_eq!(board.execute(back, [6 * period * 1_000_000]).unwrap(), 3);
    drop(board);

    fleet.start();

    fleet.eventually("each is decided", || {
        rules.iter().all(|rule| !decided(&fleet, rule).is_empty()).then_some(())
    });
    let last = seconds() / period * period;
    let made = |tick: i64| (tick, "made".to_owned(), 0);
    assert_eq!(decided(&fleet, "skip"), [(last, "missed".to_owned(), 6)]);
    assert_eq!(decided(&fleet, "once"), [(last, "made".to_owned(), 5)], "the latest stands for all");
    let all: Vec<_> = (0..6).rev().map(|ago| made(last - ago * period)).collect();
    assert_eq!(decided(&fleet, "all"), all, "oldest first, each at its time");
    let listed = fleet.json(["list"]);
    let titles: Vec<&str> =
        listed.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap()).collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
}

#[test]
fn a_tick_beside_an_open_task_is_skipped_or_waits_for_its_turn() {
    let fleet = Fleet::boot();
    each_second(&fleet, "skips", "overlap = \"skip\"");
    each_second(&fleet, "waits", "overlap = \"queue\"");
    let count = |name: &str, outcome: &str| {
        decided(&fleet, name).iter().filter(|(_, found, _)| found == outcome).count()
    };
    fleet.eventually("ticks meet an open task", || {
        (count("skips", "skipped") > 1 && count("waits", "queued") > 2).then_some(())
    });
    let tasks = |name: &str| {
        let listed = fleet.json(["list", "--limit", "1000"]);
        let of = listed.as_array().unwrap().iter().filter(|task| task["schedule"] == name);
        of.map(|task| (task["tick"].as_i64().unwrap(), task["id"].as_str().unwrap().to_owned()))
            .collect::<Vec<_>>()
    };
    let (skips, waits) = (tasks("skips"), tasks("waits"));
    assert_eq!((skips.len(), waits.len()), (1, 1), "one task each, however many ticks");

    fleet.cli(["complete", &skips[0].1]).ok();
    fleet.cli(["complete", &waits[0].1]).ok();

    let next = |name: &str, before: i64| {
        fleet.eventually("the next one is made", || {
            let made = tasks(name).into_iter().find(|(tick, _)| *tick > before);
            made.map(|(tick, _)| tick)
        })
    };
    assert_eq!(next("waits", waits[0].0), waits[0].0 + 1, "the first that waits has its turn");
    assert!(next("skips", skips[0].0) > skips[0].0 + 1, "what was skipped makes nothing");
}

#[test]
fn nothing_of_what_comes_by_itself_wakes_an_idle_daemon() {
    let fleet = Fleet::offline();
    let port = crate::http::free_port();
    fleet.configure(&format!(
        "[notify]\ndefault = 'ops'\n[notify.channels.ops]\nkind = 'webhook'\nurl = 'http://127.0.0.1:{port}/'\n\
         retry_first = '1h'\n[triage]\nrouter = 'nobody'\nreview_idle = '1h'\nreview_moves = 100\n\
         [approvals.spend]\nexpires = '1h'\n[a2a]\nlisten = '127.0.0.1:{}'\nprofiles = ['shell']\n\
         [a2a.senders.one]\nsecret = 'one'\ntenant = 'acme'\n",
        crate::http::free_port()
    ));
    let sender = "[[senders]]\nid = 'ann'\nname = 'ann'\n";
    fleet.write_config("chat.d/team.toml", &format!("channel = 'ops'\n{sender}"));
    crate::plugins::installed(&fleet, "diary", "[[events]]\nkinds = ['gave_up']\n", "cat > /dev/null");
    fleet.start();
    each_second(&fleet, "later", "start = \"2099-01-01 00:00\"");
    // A message that nobody takes, a mission that stands still, and a request that nobody decides: each has its own time.
    let told = fleet.create("told", "true", &[]);
    fleet.wait_for(&told, "done");
    fleet.json(["mission", "create", "stands still", "--notify", "none"]);
    fleet.create("buys", "true", &["--approval-class", "spend", "--notify", "none"]);
    let wakeups = || fleet.json(["status"])["daemon"]["wakeups"].as_u64().unwrap();
    fleet.eventually("the message was tried", || {
        fleet.json(["notify", "outbox"])[0]["attempts"].as_u64().filter(|tries| *tries > 0)
    });

    fleet.eventually("it has come to rest", || (wakeups() + 1 == wakeups()).then_some(()));
    let before = wakeups();
    for asked in 1..=100 {
        assert_eq!(wakeups(), before + asked, "it wakes up for the question alone");
    }
}

#[test]
fn the_tasks_of_a_tick_start_at_a_time_within_the_jitter() {
    let fleet = Fleet::boot();
    each_second(&fleet, "spread", "jitter = \"6h\"");
    let task = fleet.eventually("a tick is made", || {
        fleet.json(["list"]).as_array().unwrap().iter().find(|task| task["schedule"] == "spread").cloned()
    });
    let shown = fleet.show(task["id"].as_str().unwrap())["task"].clone();
    let (tick, at) = (shown["tick"].as_i64().unwrap(), shown["not_before"].as_i64().unwrap());
    assert!(at > tick && at <= tick + 6 * 3600, "{shown:#}");
    assert_eq!(shown["status"], "scheduled");
}

#[test]
fn a_template_runs_in_the_order_of_its_parents_and_the_list_says_what_came_of_it() {
    let fleet = Fleet::boot();
    let file = "every = \"1d\"\n[[tasks]]\nname = \"edit\"\nparents = [\"scout\"]\ntitle = \"edit\"\nassignee = \"shell\"\nbody = \"true\"\n\
        [[tasks]]\nname = \"scout\"\ntitle = \"scout\"\nassignee = \"shell\"\nbody = \"true\"\n";
    fs::write(fleet.home().join("brief.toml"), file).unwrap();
    fleet.cli(["schedules", "add", "brief", "--file", "brief.toml"]).ok();

    let tick = fleet.json(["schedules", "run", "brief"]);

    let ids: Vec<&str> = tick["tasks"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{tick:#}");
    let edit = fleet.wait_for(ids[1], "done");
    assert_eq!(edit["task"]["title"], "edit", "{edit:#}");
    assert_eq!(edit["parents"], json!([ids[0]]), "{edit:#}");
    let listed = fleet.cli(["schedules", "list"]).ok().stdout;
    assert!(listed.contains("brief") && listed.contains("2 done"), "{listed}");
    let status = fleet.cli(["status"]).ok().stdout;
    assert!(status.contains("next ticks: brief at "), "{status}");
}

#[test]
fn a_schedule_is_added_with_all_that_is_said_and_shown_paused_run_and_removed() {
    let fleet = Fleet::offline();
    let words = "schedules add brief --description d --cron 0_9_*_*_mon-fri --every 36h --at 07:00 --time-zone UTC --jitter 5m \
        --start 2026-12-01_00:00 --end 2099-12-31_00:00 --missed all --overlap queue --paused --channel c --title t_{date} --body b \
        --assignee shell --tenant acme --workspace dir:/tmp --priority 7 --max-runtime 2h --max-retries 3 --check true --policy strict \
        --skill s --pool gpu";
    let words: Vec<String> = words.split_whitespace().map(|word| word.replace('_', " ")).collect();

    let added = fleet.cli(&words).ok();

    assert!(added.stdout.starts_with("Saved brief  paused"), "{added:?}");
    assert!(added.stderr.contains("no daemon is running"), "{added:?}");
    let said = fleet.json(["schedules", "show", "brief"])["schedule"].clone();
    let expected = json!({
        "description": "d", "cron": "0 9 * * mon-fri", "every": "36h", "at": ["07:00"], "time_zone": "UTC", "jitter": "5m",
        "start": "2026-12-01 00:00", "end": "2099-12-31 00:00", "missed": "all", "overlap": "queue", "paused": true, "channel": "c",
        "task": {
            "title": "t {date}", "body": "b", "assignee": "shell", "tenant": "acme", "workspace": "dir:/tmp", "priority": 7,
            "max_runtime": "2h", "max_retries": 3, "check": "true", "policy": "strict", "skills": ["s"], "pools": ["gpu"],
        },
    });
    assert_eq!(said, expected);
    fleet.cli(&words).ok();
    let other: Vec<&str> = vec!["schedules", "add", "brief", "--every", "1h", "--title", "x"];
    fleet.cli(&other).refused(4, "exists already");

    let tick = fleet.json(["schedules", "run", "brief"]);
    let task = fleet.show(tick["tasks"][0].as_str().unwrap())["task"].clone();
    assert_eq!(
        (&task["channel"], &task["schedule"], &task["priority"]),
        (&json!("c"), &json!("brief"), &json!(7))
    );
    assert!(task["title"].as_str().unwrap().starts_with("t 20"), "{task:#}");
    let resumed = fleet.cli(["schedules", "resume", "brief"]).ok().stdout;
    assert!(resumed.contains("next tick 20"), "{resumed}");
    assert!(!fs::read_to_string(fleet.root().join("schedules.d/brief.toml")).unwrap().contains("paused"));
    assert!(fleet.cli(["schedules", "check"]).ok().stdout.starts_with("ok"));

    fleet.cli(["schedules", "rm", "brief"]).ok();
    fleet.cli(["schedules", "show", "brief"]).refused(3, "no schedule `brief`");
    fleet.cli(["schedules", "rm", "brief"]).refused(3, "no schedule `brief`");
    assert_eq!(fleet.json(["schedules", "list"]), json!([]));
}

#[test]
fn a_schedule_is_added_changed_and_imported_from_files() {
    let fleet = Fleet::offline();
    let write = |name: &str, text: &str| fs::write(fleet.home().join(name), text).unwrap();
    write("body.txt", "the body");
    let add = ["schedules", "add", "a", "--every", "1h", "--title", "x", "--body-file", "body.txt"];
    fleet.cli(add).ok();
    assert_eq!(fleet.json(["schedules", "show", "a"])["schedule"]["task"]["body"], "the body");
    write("b.toml", "# mine\nat = [\"07:00\"]\n[task]\ntitle = \"y\"\n");
    fleet.cli(["schedules", "add", "a", "--file", "b.toml"]).refused(4, "exists already");
    fleet.cli(["schedules", "add", "a", "--file", "b.toml", "--force"]).ok();
    fleet.cli(["schedules", "pause", "a"]).ok();
    let kept = fs::read_to_string(fleet.root().join("schedules.d/a.toml")).unwrap();
    assert_eq!(kept, "paused = true\n# mine\nat = [\"07:00\"]\n[task]\ntitle = \"y\"\n");
    write("bad.toml", "every = \"1h\"\n[[tasks]]\nname = \"p\"\nparents = [\"p\"]\ntitle = \"y\"\n");
    let refused = fleet.cli(["schedules", "edit", "a", "--file", "bad.toml"]);
    assert!(refused.code == 2 && refused.stderr.contains("p wait for each other"), "{refused:?}");
    assert_eq!(
        fs::read_to_string(fleet.root().join("schedules.d/a.toml")).unwrap(),
        kept,
        "nothing was written"
    );
    let checked = fleet.cli(["schedules", "check", "bad.toml"]);
    assert!(checked.code == 1 && checked.stdout.contains("bad.toml"), "{checked:?}");

    write(
        "insta-fleet.yaml",
        "schedule: \"0 */4 * * *\"\ncommand: hermes kanban dispatch-fleet insta-manager ~/insta\n",
    );
    fleet.cli(["schedules", "import", "insta-fleet.yaml"]).ok();
    let said = fleet.json(["schedules", "show", "insta-fleet"])["schedule"].clone();
    assert_eq!(
        (&said["cron"], &said["command"]),
        (&json!("0 */4 * * *"), &json!("hermes kanban dispatch-fleet insta-manager ~/insta"))
    );
    fleet.cli(["schedules", "import", "insta-fleet.yaml", "--name", "other"]).ok();
    write(
        "insta-fleet.yaml",
        "schedule: \"0 */6 * * *\"\ncommand: dispatch-fleet insta-manager /srv/insta\n",
    );
    fleet.cli(["schedules", "import", "insta-fleet.yaml"]).refused(4, "exists already");
    fleet.cli(["schedules", "import", "insta-fleet.yaml", "--force"]).ok();
    write("rm.yaml", "schedule: \"0 * * * *\"\ncommand: rm -rf /\n");
    fleet.cli(["schedules", "import", "rm.yaml"]).refused(2, "not a command of a schedule");
    let command = ["schedules", "add", "c", "--every", "1h", "--command", "dispatch-fleet a /srv"];
    fleet.cli(command).ok();
}

#[test]
fn a_file_that_becomes_defective_changes_nothing_and_one_that_is_written_by_hand_is_read_by_a_reload() {
    let fleet = Fleet::boot();
    fleet.write_config("schedules.d/hand.toml", "every = \"1d\"\n[task]\ntitle = \"by hand\"\n");
    fleet.signal(Signal::SIGHUP);
    let next = || fleet.json(["schedules", "show", "hand"])["next"].as_i64();
    let first = fleet.eventually("the schedule is read", || {
        let listed = fleet.json(["schedules", "list"]);
        listed.as_array().unwrap().iter().find_map(|line| line["next"].as_i64())
    });
    fleet.write_config("schedules.d/hand.toml", "every = \"soon\"\n");
    fleet.signal(Signal::SIGHUP);
    fleet.eventually("the defect is told", || {
        let defects = serde_json::to_string(&fleet.problems("configuration_defect")).unwrap();
        defects.contains("hand.toml").then_some(())
    });
    assert_eq!(next(), Some(first), "it ticks as before");
}

#[test]
fn a_worker_writes_no_schedule() {
    let fleet = Fleet::boot();
    let script = "supervisor schedules add mine --every 1s --title x; echo status=$?; supervisor complete";
    let id = fleet.create("try", script, &[]);
    fleet.wait_for(&id, "done");
    let log = fleet.cli(["log", &id]).ok().stdout;
    assert!(log.contains("status=77"), "{log}");
    assert_eq!(fleet.json(["schedules", "list"]), json!([]));
}

#[test]
fn the_command_of_a_tick_makes_a_task_for_each_directory_and_says_why_it_fails() {
    let fleet = Fleet::boot();
    for account in ["acct-1", "acct-2"] {
        fs::create_dir_all(fleet.home().join("insta").join(account)).unwrap();
        crate::fleet::give(&fleet.home().join("insta").join(account));
    }
    crate::fleet::give(&fleet.home().join("insta"));
    let yaml = format!(
        "schedule: \"0 */4 * * *\"\ncommand: hermes kanban dispatch-fleet insta-manager {}\n",
        fleet.home().join("insta").display()
    );
    fs::write(fleet.home().join("insta-fleet.yaml"), yaml).unwrap();
    fleet.cli(["schedules", "import", "insta-fleet.yaml"]).ok();

    fleet.cli(["schedules", "run", "insta-fleet"]).ok();

    let last = |name: &str, outcome: &str| {
        fleet.eventually("the command is over", || {
            let last = fleet.json(["schedules", "show", name])["last"].clone();
            (last["outcome"] == outcome).then_some(last)
        })
    };
    last("insta-fleet", "made");
    let listed = fleet.json(["list"]);
    let mut tenants: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|task| task["tenant"].as_str()).collect();
    tenants.sort_unstable();
    assert_eq!(tenants, ["acct-1", "acct-2"], "{listed:#}");

    let nowhere =
        ["schedules", "add", "nowhere", "--every", "1d", "--command", "dispatch-fleet a /nonexistent"];
    fleet.cli(nowhere).ok();
    fleet.cli(["schedules", "run", "nowhere"]).ok();
    let failed = last("nowhere", "failed");
    assert!(failed["note"].as_str().unwrap().contains("/nonexistent"), "{failed:#}");

    fs::create_dir(fleet.home().join("insta/a b")).unwrap();
    let again = ["schedules", "add", "refused", "--every", "1d", "--command", "dispatch-fleet a ~/insta"];
    fleet.cli(again).ok();
    fleet.cli(["schedules", "run", "refused"]).ok();
    let failed = last("refused", "failed");
    assert!(failed["note"].as_str().unwrap().contains("refused: a b"), "{failed:#}");
}
