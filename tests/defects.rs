//! A file of the configuration that cannot be used disables what it defines and nothing else, and every surface shows that.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use serde_json::Value;

use crate::harness::{Fleet, User, skip};

const GOOD: &str =
    "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\non_clean_exit = \"complete\"\n";

/// Defective files: path, text, and the message with the place of the defect.
const CASES: [(&str, &str, &str); 7] = [
    ("lanes.d/mine.toml", "argv = []\n", "lanes.d/mine.toml:1 (argv): it is empty"),
    (
        "lanes.d/mine.toml",
        "argv = [\"x\"]\nprompt = \"telepathy\"\n",
        "lanes.d/mine.toml:2 (prompt): unknown variant",
    ),
    (
        "lanes.d/mine.toml",
        "prompt = \"file\"\nargv = [\"x\", \"{prompt}\"]\n",
        "lanes.d/mine.toml:2 (argv): `{prompt}` is not a placeholder; the known ones are {prompt_file}, {prompt_text}, {workspace}, {task}",
    ),
    ("lanes.d/two words.toml", "argv = [\"x\"]\n", "two words"),
    (
        "policies.d/mine.toml",
        "version = 1\nname = \"mine\"\nfrobnicate = 1\n",
        "policies.d/mine.toml:3 (frobnicate): unknown field",
    ),
    (
        "schedules.d/mine.toml",
        "cron = \"0 9 * *\"\ntask = { title = \"x\" }\n",
        "schedules.d/mine.toml:1 (cron): \"0 9 * *\":",
    ),
    (
        "tenants.d/mine.toml",
        "max_running = 1\nmax_runtime = \"soon\"\n",
        "tenants.d/mine.toml:2 (max_runtime):",
    ),
];

fn defects(report: &Value) -> String {
    report["problems"].to_string()
}

/// Checks that everything says what is wrong with a file.
fn all_say(fleet: &Fleet, file: &str, words: &str) {
    let status = fleet.cli(["status"]);
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined(&status.stdout).contains(words), "status: {}", status.stdout);
    let json = fleet.cli(["status", "--json"]).json();
    assert!(defects(&json).contains(file), "{json:#}");
    let doctor = fleet.cli(["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(joined(&doctor.stdout).contains(words), "doctor: {}", doctor.stdout);
    // No task waits for it.
    let diagnostics = fleet.cli(["diagnostics"]).ok();
    assert!(joined(&diagnostics.stdout).contains(words), "diagnostics: {}", diagnostics.stdout);
    let found = fleet.json(["diagnostics", "--severity", "error"]);
    let row = found.as_array().unwrap().iter().find(|row| row["task_id"].is_null()).unwrap();
    assert_eq!(row["diagnostics"][0]["kind"], "configuration_defect", "{row:#}");
    assert!(row["diagnostics"][0]["data"]["path"].as_str().unwrap().ends_with(file), "{row:#}");
}

#[test]
fn a_bad_file_is_told_with_its_place_and_disables_nothing_else_with_and_without_a_daemon() {
    for (file, text, words) in CASES {
        let fleet = Fleet::offline();
        fleet.write_config(file, text);
        let task = fleet.create("well", "echo fine", &[]);
        all_say(&fleet, file, words);
        for verb in ["list", "show", "runs", "events", "assignees", "diagnostics"] {
            let more = if verb == "show" || verb == "runs" { Some(task.as_str()) } else { None };
            fleet.cli([verb].into_iter().chain(more)).ok();
        }

        fleet.start();
        fleet.wait_for(&task, "done");
        all_say(&fleet, file, words);
    }
}

#[test]
fn a_task_waits_for_a_bad_lane_or_policy_and_runs_once_the_file_is_good() {
    let fleet = Fleet::offline();
    fleet.lane("mine", "argv = [\"agent\", \"{prompt}\"]\n");
    fleet.policy("tight", "version = 1\nextends = \"nothing\"\n");
    let created = fleet.json(["create", "x", "--assignee", "mine", "--body", "true", "--max-retries", "1"]);
    assert!(created["warnings"].to_string().contains("{prompt}"), "{created:#}");
    let by_lane = created["id"].as_str().unwrap().to_owned();
    let lane = format!("{GOOD}policy = \"tight\"\n");
    fleet.lane("tightly", &lane);
    let by_policy =
        fleet.json(["create", "x", "--assignee", "tightly", "--body", "true", "--max-retries", "1"]);
    let by_policy = by_policy["id"].as_str().unwrap().to_owned();
    let tells = || {
        for (task, words) in
            [(&by_lane, "lanes.d/mine.toml:1 (argv)"), (&by_policy, "policies.d/tight.toml:2 (extends)")]
        {
            let shown = fleet.show(task);
            assert_eq!(shown["why"]["code"], "environment", "{shown:#}");
            assert!(shown["why"]["text"].as_str().unwrap().contains(words), "{shown:#}");
            let found = fleet.json(["diagnostics", "--task", task]).to_string();
            assert!(found.contains("environment_broken") && found.contains(words), "{found}");
        }
    };
    tells();
    fleet.start();
    let other = fleet.create("other", "true", &[]);
    fleet.wait_for(&other, "done");
    tells();
    assert_eq!(fleet.show(&by_lane)["runs"].as_array().unwrap().len(), 0);

    fleet.lane("mine", GOOD);
    fleet.policy("tight", "version = 1\nextends = \"default\"\n");
    fleet.signal(Signal::SIGHUP);

    fleet.wait_for(&by_lane, "done");
    fleet.wait_for(&by_policy, "done");
    assert_eq!(defects(&fleet.cli(["status", "--json"]).json()), "[]");
}

#[test]
fn the_tasks_of_a_tenant_with_a_bad_file_wait_and_nobody_elses() {
    let fleet = Fleet::offline();
    fleet.write_config("tenants.d/acme.toml", "assignee = \"shell\"\n");
    let theirs = fleet.create("theirs", "true", &["--tenant", "acme"]);
    fleet.write_config("tenants.d/acme.toml", "assignee = \"shell\"\nmax_runing = 1\n");
    let words = "tenants.d/acme.toml:2 (max_runing): unknown field";
    let tells = || {
        let shown = fleet.show(&theirs);
        assert_eq!(shown["why"]["code"], "environment", "{shown:#}");
        assert!(shown["why"]["text"].as_str().unwrap().contains(words), "{shown:#}");
        let found = fleet.json(["diagnostics", "--task", &theirs]).to_string();
        assert!(found.contains("environment_broken") && found.contains(words), "{found}");
        // What a new one would be given is not known.
        fleet.cli(["create", "x", "--tenant", "acme"]).refused(75, words);
    };
    tells();
    fleet.start();
    for tenant in [&["--tenant", "globex"][..], &[]] {
        let other = fleet.create("other", "true", tenant);
        fleet.wait_for(&other, "done");
    }
    tells();
    assert_eq!(fleet.show(&theirs)["runs"].as_array().unwrap().len(), 0);

    fleet.write_config("tenants.d/acme.toml", "assignee = \"shell\"\n");
    fleet.signal(Signal::SIGHUP);

    fleet.wait_for(&theirs, "done");
    // A file that was good before stays in use as it was.
    fleet.write_config("tenants.d/acme.toml", "max_runing = 1\n");
    fleet.write_config("tenants.d/globex.toml", "policy = \"strict\"\n");
    fleet.signal(Signal::SIGHUP);
    fleet.eventually("the other file is read", || {
        (fleet.json(["tenant", "show", "globex"])["policy"] == "strict").then_some(())
    });
    assert!(
        defects(&fleet.cli(["status", "--json"]).json())
            .contains("the tenant acme stays as it was last read")
    );
    let created = fleet.json(["create", "x", "--tenant", "acme", "--body", "true"]);
    fleet.wait_for(created["id"].as_str().unwrap(), "done");
}

#[test]
fn a_file_that_is_no_text_disables_what_it_defines_in_every_directory() {
    type Plant = (&'static str, fn(&Path));
    let plants: [Plant; 6] = [
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a dangling link", |path| symlink("nowhere", path).unwrap()),
        ("a link to itself", |path| symlink(path.file_name().unwrap(), path).unwrap()),
        ("a FIFO", |path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap()),
        ("no UTF-8", |path| fs::write(path, b"x = \"\xff\xfe\"\n").unwrap()),
        ("100 MB", |path| File::create(path).unwrap().set_len(100_000_000).unwrap()),
    ];
    let places = [
        "lanes.d/bad.toml",
        "policies.d/bad.toml",
        "profiles.d/bad.md",
        "tenants.d/bad.toml",
        "schedules.d/bad.toml",
        "chat.d/bad.toml",
        "plugins.d/bad/plugin.toml",
    ];
    for (what, plant) in plants {
        let fleet = Fleet::offline();
        for place in places {
            let path = fleet.root().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            plant(&path);
        }
        let tells = || {
            let told = defects(&fleet.cli(["status", "--json"]).json());
            let doctor = fleet.cli(["doctor", "--json"]).stdout;
            for place in places {
                assert!(told.contains(place), "{what}: {place}: {told}");
                assert!(doctor.contains(place), "{what}: {place}: {doctor}");
            }
        };
        tells();
        fleet.start();
        fleet.wait_for(&fleet.create("well", "echo fine", &[]), "done");
        tells();
        fleet.signal(Signal::SIGHUP);
        fleet.wait_for(&fleet.create("well", "echo fine", &[]), "done");
        tells();
    }
}

#[test]
fn a_spoilt_ledger_of_uids_is_told_with_a_way_out_that_works() {
    if User::current() != User::Root {
        return skip("a spoilt ledger of uids: needs root");
    }
    let fleet = Fleet::boot();
    fleet.wait_for(&fleet.create("before", "true", &[]), "done");
    let ledger = fleet.root().parent().unwrap().join("uids/ranges.json");
    fs::write(&ledger, "{").unwrap();
    fleet.restart();
    let task = fleet.create("x", "true", &["--max-retries", "1"]);

    fleet.eventually("status and diagnostics tell it", || {
        let told = ["status", "diagnostics"].map(|verb| {
            let said = fleet.cli([verb]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            said.contains("ranges.json cannot be understood") && said.contains("rm /")
        });
        (told == [true, true]).then_some(())
    });
    fs::remove_file(&ledger).unwrap();
    assert_eq!(fleet.wait_for(&task, "done")["task"]["consecutive_failures"], 0);
}

#[test]
fn a_reload_of_a_bad_file_keeps_the_last_good_version_and_says_so() {
    let fleet = Fleet::offline();
    fleet.lane("mine", GOOD);
    fleet.start();
    let create = || {
        let created = fleet.json(["create", "x", "--assignee", "mine", "--body", "echo as before"]);
        created["id"].as_str().unwrap().to_owned()
    };
    fleet.wait_for(&create(), "done");
    fleet.lane("mine", "argv = []\n");
    fleet.configure("");
    let settings = fs::read_to_string(fleet.root().join("supervisor.toml")).unwrap();
    fleet.write_config("supervisor.toml", &format!("{settings}\n[limits]\nmax_runing = 1\n"));

    fleet.signal(Signal::SIGHUP);

    let status = fleet.eventually("status says both", || {
        let status = fleet.cli(["status", "--json"]).json();
        (fleet.problems("configuration_defect").len() == 2).then_some(status)
    });
    assert!(
        defects(&status).contains("stays as it was last read") && defects(&status).contains("max_runing"),
        "{status:#}"
    );
    let text = fleet.cli(["status"]).stdout;
    assert!(text.contains("the lane mine stays as it was last read"), "{text}");
    let defects = fleet.problems("configuration_defect");
    let settings = &defects.iter().find(|defect| defect["subject"] == "the configuration").unwrap()["data"];
    assert!(settings["key"] == "max_runing" && settings["line"].is_u64(), "{status:#}");
    assert!(text.contains(" (max_runing): unknown field"), "{text}");
    assert_eq!(fleet.wait_for(&create(), "done")["latest_summary"], "as before");
}
