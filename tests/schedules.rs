//! Schedules: their files, the commands that keep them, and ticks that come once over the death of the daemon.

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
    fleet.cli(["schedules", "import", "rm.yaml"]).refused(2, "no command of a schedule");
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
        let defects = fleet.cli(["status", "--json"]).json()["defects"].to_string();
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
