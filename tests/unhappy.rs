//! Every wrong input ends in one clear error with its code and a hint, and leaves the board as it was.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::harness::{Fleet, Output, User, skip};

/// Returns the content of the board, as far as a refused call must not change it.
fn snapshot(fleet: &Fleet) -> (Value, Value) {
    (fleet.json(["list", "--archived"]), fleet.json(["events", "--limit", "10000"]))
}

/// A title and the tasks that refusals are tried on: one ready, one done, one blocked.
fn board(fleet: &Fleet) -> [String; 3] {
    let [ready, done, blocked] = ["ready", "done", "blocked"]
        .map(|title| fleet.json(["create", title, "--assignee", "ghost"])["id"].as_str().unwrap().to_owned());
    fleet.cli(["complete", &done]).ok();
    fleet.cli(["block", &blocked, "why"]).ok();
    [ready, done, blocked]
}

/// Returns the defect of a call's refusal, on the terminal or in JSON.
fn complaint(fleet: &Fleet, args: &[&str], code: i32, text: &str) -> Option<String> {
    let plain = fleet.cli(args);
    let good = plain.code == code
        && plain.stdout.is_empty()
        && plain.stderr.starts_with("error: ")
        && plain.stderr.contains(text)
        && plain.stderr.contains("\nhint: ");
    let json = fleet.cli([args, &["--json"]].concat());
    let problem = serde_json::from_str::<Value>(&json.stdout).unwrap_or_default()["error"].clone();
    let told = json.code == code
        && problem["detail"].as_str().is_some_and(|detail| detail.contains(text))
        && problem["hint"].is_string()
        && problem["code"].is_string();
    (!good || !told).then(|| {
        format!(
            "{args:?}, expected {code} and `{text}`: {} {}{} and {}",
            plain.code, plain.stdout, plain.stderr, json.stdout
        )
    })
}

#[test]
fn a_wrong_call_is_refused_with_its_code_a_hint_and_an_unharmed_board() {
    for (fleet, serves) in [(Fleet::offline(), false), (Fleet::boot(), true)] {
        let [ready, done, blocked] = board(&fleet);
        if serves {
            fleet.eventually("the daemon has looked", || {
                let told = fleet.json(["events", "--task", &ready, "--kind", "skipped_nonspawnable"]);
                (!told["events"].as_array()?.is_empty()).then_some(())
            });
        }
        let child = fleet.json(["create", "child", "--parent", &ready])["id"].as_str().unwrap().to_owned();
        let before = snapshot(&fleet);
        let long = "x".repeat(501);
        let nowhere = "t_00000000";
        let cases: &[(&[&str], i32, &str)] = &[
            // Unknown ids, on every verb that takes one.
            (&["show", nowhere], 3, nowhere),
            (&["runs", nowhere], 3, nowhere),
            (&["context", nowhere], 3, nowhere),
            (&["log", nowhere], 3, nowhere),
            (&["tail", nowhere], 3, nowhere),
            (&["assign", nowhere, "ghost"], 3, nowhere),
            (&["comment", nowhere, "x"], 3, nowhere),
            (&["claim", nowhere], 3, nowhere),
            (&["heartbeat", nowhere], 3, nowhere),
            (&["complete", nowhere], 3, nowhere),
            (&["block", nowhere, "x"], 3, nowhere),
            (&["unblock", nowhere], 3, nowhere),
            (&["reclaim", nowhere], 3, nowhere),
            (&["reopen", nowhere], 3, nowhere),
            (&["unarchive", nowhere], 3, nowhere),
            (&["archive", nowhere], 3, nowhere),
            (&["link", nowhere, &ready], 3, nowhere),
            (&["link", &ready, nowhere], 3, nowhere),
            (&["unlink", nowhere, &ready], 3, nowhere),
            (&["create", "x", "--parent", nowhere], 3, nowhere),
            (&["show", "7x"], 2, "task id"),
            (&["--board", "nowhere", "list"], 3, "nowhere"),
            (&["--board", "Not A Name", "list"], 2, "board name"),
            (&["--board", "../default", "list"], 2, "board name"),
            // Wrong states.
            (&["claim", &done], 4, &done),
            (&["claim", &blocked], 4, &blocked),
            (&["complete", &done], 4, &done),
            (&["block", &done, "x"], 4, &done),
            (&["unblock", &ready], 4, &ready),
            (&["heartbeat", &ready], 4, &ready),
            (&["reclaim", &ready], 4, &ready),
            (&["reopen", &ready], 4, &ready),
            (&["unarchive", &done], 4, &done),
            (&["promote", &done], 4, &done),
            (&["log", &ready, "--run", "7"], 3, &ready),
            (&["complete", &ready, "--expected-run", "99"], 4, "99"),
            // Links that cannot be.
            (&["link", &child, &ready], 4, "cycle"),
            (&["link", &ready, &ready], 4, "itself"),
            // Places that do not exist, or mean something else elsewhere.
            (&["create", "x", "--workspace", "dir:relative"], 2, "relative"),
            (&["create", "x", "--workspace", "dir:/no/such/place"], 3, "/no/such/place"),
            (&["create", "x", "--workspace", "dir:/etc/passwd"], 2, "/etc/passwd"),
            (
                &["create", "x", "--workspace", "worktree:/no/such/repo"],
                3,
                "there is no git repository at /no/such/repo",
            ),
            (&["create", "x", "--workspace", "worktree:relative"], 2, "relative"),
            (&["create", "x", "--workspace", "moon"], 2, "moon"),
            // Texts.
            (&["create", ""], 2, "empty"),
            (&["create", "  "], 2, "empty"),
            (&["create", &long], 2, "501"),
            (&["create", "two\nlines"], 2, "control"),
            (&["create", "esc\u{1b}[31m"], 2, "control"),
            (&["create", "x", "--assignee", "two words"], 2, "profile"),
            (&["create", "x", "--tenant", "../acme"], 2, "tenant"),
            (&["create", "x", "--policy", "nothing-goes"], 2, "nothing-goes"),
            (&["create", "x", "--max-runtime", "0"], 2, "max_runtime"),
            (&["create", "x", "--max-runtime", "soon"], 2, "soon"),
            (&["create", "x", "--not-before", "someday"], 2, "someday"),
            (&["create", "x", "--not-before", "20261123"], 2, "2026-11-23"),
            (&["create", "x", "--priority", "9223372036854775808"], 2, "priority"),
            (&["create", "x", "--body-file", "/no/such/file"], 3, "/no/such/file"),
            (&["create", "x", "--body", "a", "--body-file", "b"], 2, "--body-file"),
            (&["create", "x", "--initial-status", "done"], 2, "done"),
            (&["create"], 2, "TITLE"),
            (&["comment", &ready, ""], 2, "empty"),
            (&["complete", &ready, "--metadata", "{"], 2, "JSON"),
            (&["complete", &ready, "--metadata", "[1]"], 2, "object"),
            (&["complete", &ready, &blocked, "--summary", "both"], 2, "several"),
            (&["complete"], 2, "no task"),
            (&["block", &ready, "x", "--kind", "boredom"], 2, "boredom"),
            (&["list", "--status", "lost"], 2, "lost"),
            (&["list", "--sort", "luck"], 2, "luck"),
            (&["frobnicate"], 2, "frobnicate"),
            (&["list", "--frobnicate"], 2, "frobnicate"),
        ];
        let wrong: Vec<String> =
            cases.iter().filter_map(|(args, code, text)| complaint(&fleet, args, *code, text)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(snapshot(&fleet), before, "a refusal changes nothing");
    }
}

#[test]
fn an_unknown_assignee_is_a_warning_and_its_task_waits() {
    let fleet = Fleet::boot();
    let created = fleet.json(["create", "x", "--assignee", "ghost"]);
    assert!(created["warnings"][0].as_str().unwrap().contains("ghost"), "{created}");
    let id = created["id"].as_str().unwrap();
    fleet.eventually("it is said why it waits", || {
        let shown = fleet.show(id);
        (shown["why"]["code"] == "nonspawnable").then_some(())
    });
    assert_eq!(fleet.status_of(id), "ready");
}

#[test]
fn text_that_is_too_large_or_no_utf8_is_refused_wherever_it_comes_from() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        fleet.json(["create", "stays"]);
        let before = snapshot(&fleet);
        let file = |name: &str, bytes: &[u8]| {
            let path = fleet.home().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let large = file("large", &vec![b'a'; 10_000_000]);
        fleet
            .cli([OsStr::new("create"), "x".as_ref(), "--body-file".as_ref(), large.as_ref()])
            .refused(2, "large");
        let over = file("over", &vec![b'a'; 1_048_577]);
        fleet
            .cli([OsStr::new("create"), "x".as_ref(), "--body-file".as_ref(), over.as_ref()])
            .refused(2, "1048576");
        let binary = file("binary", b"ok\xff\xfe");
        fleet
            .cli([OsStr::new("create"), "x".as_ref(), "--body-file".as_ref(), binary.as_ref()])
            .refused(2, "UTF-8");
        fleet.cli([OsStr::new("create"), OsStr::from_bytes(b"a\xffb")]).refused(2, "UTF-8");
        fleet.cli(["create", "x", "--body-file", "/dev/zero"]).refused(2, "/dev/zero");
        assert_eq!(snapshot(&fleet), before);
        let fits = file("fits", &vec![b'a'; 1_048_576]);
        fleet.cli([OsStr::new("create"), "x".as_ref(), "--body-file".as_ref(), fits.as_ref()]).ok();
    }
}

/// Spoils a board's file, and says with which code and words every verb must then end.
type Spoiler = (&'static str, fn(&std::path::Path), i32, &'static str);

#[test]
fn a_board_file_that_is_not_what_it_was_is_named_and_never_replaced() {
    let spoilers: [Spoiler; 6] = [
        ("missing", |path| fs::remove_file(path).unwrap(), 3, "missing"),
        ("empty", |path| fs::write(path, "").unwrap(), 1, "empty"),
        (
            "truncated",
            |path| fs::File::options().write(true).open(path).unwrap().set_len(5000).unwrap(),
            1,
            "damaged",
        ),
        ("another program's", |path| mark(path, [0; 4]), 1, "is not a board"),
        ("of an older format", |path| mark(path, *b"supv"), 1, "a format older than 0.1.0"),
        ("text", |path| fs::write(path, "not a database\n".repeat(500)).unwrap(), 1, "board"),
    ];
    for (name, spoil, code, text) in spoilers {
        println!("{name}");
        let fleet = Fleet::offline();
        fleet.json(["create", "was here"]);
        let path = fleet.root().join("boards/default/board.db");
        for side in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{side}", path.display())));
        }
        spoil(&path);
        let spoiled = fs::read(&path).ok();

        for args in [["list"].as_slice(), &["create", "y"], &["init"], &["dispatch"]] {
            let output = fleet.cli(args).refused(code, text);
            assert!(output.stderr.contains("board.db"), "{}", output.stderr);
        }

        // A daemon serves the other boards, and refuses this one in the same words.
        fleet.start();
        for args in [["list"].as_slice(), &["create", "y"]] {
            fleet.cli(args).refused(code, text);
        }
        fleet.cli(["--board", "second", "init"]).ok();
        fleet.cli(["--board", "second", "create", "z"]).ok();
        assert!(fleet.log().contains("board_not_served"), "{}", fleet.log());

        assert_eq!(fs::read(&path).ok(), spoiled, "{name}: the file is as it was found");
        assert!(fleet.cli(["list", "--json"]).json()["error"]["detail"].as_str().unwrap().contains(text));
    }
}

/// Gives a good database another application id than a board's.
fn mark(path: &std::path::Path, application_id: [u8; 4]) {
    let mut bytes = fs::read(path).unwrap();
    // The application id stands at byte 68 of the header (sqlite.org/fileformat.html).
    bytes[68..72].copy_from_slice(&application_id);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_stranger_is_refused_by_the_files_and_by_the_sockets() {
    if User::current() != User::Root {
        return skip("strangers at a root: needs root");
    }
    let fleet = Fleet::boot();
    fleet.json(["create", "mine"]);
    let nobody = User::ordinary().id().unwrap();
    let before = snapshot(&fleet);
    for args in [["list"].as_slice(), &["create", "x"], &["status"], &["daemon"], &["dispatch"], &["stop"]] {
        let mut command = fleet.command(args);
        std::os::unix::process::CommandExt::uid(&mut command, nobody);
        std::os::unix::process::CommandExt::gid(&mut command, nobody);
        Output::of(&mut command).refused(77, "ermission");
    }
    assert_eq!(snapshot(&fleet), before);
}

#[test]
fn a_socket_path_that_something_else_has_is_not_taken() {
    let fleet = Fleet::offline();
    let task = fleet.json(["create", "x"])["id"].clone();
    let path = fleet.root().join("run/supervisor.sock");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "precious").unwrap();

    fleet.cli(["daemon"]).refused(4, "supervisor.sock");

    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    assert_eq!(fleet.json(["list"])[0]["id"], task);
    fleet.start();
}

#[test]
fn a_dead_daemons_sockets_do_not_stand_in_the_way() {
    let fleet = Fleet::boot();
    fleet.kill_daemon();
    assert!(fleet.root().join("run/supervisor.sock").exists());
    let task = fleet.create("offline", "true", &[]);
    fleet.start();
    fleet.wait_for(&task, "done");
}

#[test]
fn a_second_daemon_names_the_first_and_leaves_it_alone() {
    let fleet = Fleet::boot();
    let pid = fleet.daemon_pid();
    let output = fleet.cli(["daemon"]).refused(4, &format!("pid {pid}"));
    assert!(output.stderr.contains(&fleet.root().display().to_string()));
    let task = fleet.create("x", "true", &[]);
    fleet.wait_for(&task, "done");
}

#[test]
fn verbs_that_need_a_daemon_say_so_where_there_is_none() {
    let fleet = Fleet::offline();
    fleet.json(["create", "x"]);
    fleet.cli(["stop"]).refused(69, "no daemon");
}

#[test]
fn a_root_that_cannot_be_served_is_refused_with_its_reason() {
    let fleet = Fleet::offline();
    let deep = fleet.home().join("d".repeat(100));
    fs::create_dir(&deep).unwrap();
    let daemon = |root: &std::path::Path| {
        let mut command = std::process::Command::new(crate::harness::binary());
        fleet.dress(&mut command);
        Output::of(command.arg("daemon").arg("--root").arg(root))
    };
    daemon(&deep).refused(2, "107");
    let file = fleet.home().join("file");
    fs::write(&file, "").unwrap();
    let output = daemon(&file);
    output.clone().refused(output.code, &file.display().to_string());
    if User::current() == User::Root {
        let closed = fleet.home().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        daemon(&closed.join("r")).refused(2, &format!("{} is closed", closed.display()));
        // The mode of a root is its owner's choice: it is neither widened nor taken for one that works.
        let mut pass = std::process::Command::new(crate::harness::binary());
        fleet.dress(&mut pass);
        let pass = Output::of(pass.arg("dispatch").arg("--root").arg(&closed));
        pass.refused(2, &format!("{} is closed", closed.display()));
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&closed).unwrap());
        assert_eq!(mode & 0o777, 0o700);
    } else {
        skip("a root that worker uids cannot reach: needs root");
    }
}

#[test]
fn a_broken_configuration_is_refused_with_file_line_and_key() {
    let cases = [
        ("supervisor.toml", "[limits]\nmax_runing = 3\n", "supervisor.toml:2 (max_runing): unknown field"),
        ("supervisor.toml", "[limits]\nmax_running = 0\n", "max_running"),
        ("supervisor.toml", "[worker]\ngrace = \"soon\"\n", "soon"),
        ("supervisor.toml", "not toml", "supervisor.toml:1: "),
    ];
    for (file, text, word) in cases {
        let fleet = Fleet::offline();
        fleet.json(["create", "x"]);
        fleet.write_config(file, text);
        println!("{file}: {text}");
        let output = fleet.cli(["daemon"]).refused(2, word);
        assert!(output.stderr.contains(file), "{}", output.stderr);
        fs::remove_file(fleet.root().join(file)).unwrap();
        assert_eq!(fleet.json(["list"]).as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_lane_that_cannot_be_started_fails_its_own_tasks_and_no_others() {
    let fleet = Fleet::offline();
    fleet.lane("broken", "argv = [\"/no/such/program\"]\n");
    fleet.start();
    let broken = fleet.json(["create", "x", "--assignee", "broken", "--max-retries", "1"]);
    let broken = broken["id"].as_str().unwrap();
    let well = fleet.create("y", "true", &[]);
    fleet.wait_for(&well, "done");
    let shown = fleet.eventually("the start has failed", || {
        let shown = fleet.show(broken);
        (shown["runs"][0]["outcome"] == "spawn_failed").then_some(shown)
    });
    assert!(shown["runs"][0]["error"].as_str().unwrap().contains("/no/such/program"), "{shown:#}");
}

#[test]
fn a_shell_task_without_a_script_fails_with_the_reason() {
    let fleet = Fleet::boot();
    let created = fleet.json(["create", "x", "--assignee", "shell", "--max-retries", "5"]);
    let id = created["id"].as_str().unwrap();
    let remedy = format!("supervisor edit {id} --body '…'");
    let warning = created["warnings"][0].as_str().unwrap();
    assert!(warning.contains("no body") && warning.ends_with(&remedy), "{created:#}");
    // No try of it can succeed, so there is one.
    let shown = fleet.wait_for(id, "blocked");
    let reason = shown["task"]["block_reason"].as_str().unwrap();
    assert!(reason.contains("no body") && reason.ends_with(&remedy), "{shown:#}");
    assert_eq!(shown["runs"].as_array().unwrap().len(), 1, "{shown:#}");
    fleet.cli(["edit", id, "--body", "true"]).ok();
    fleet.cli(["retry", id]).ok();
    fleet.wait_for(id, "done");
}

#[test]
fn a_directory_of_root_is_worked_in_by_nobody() {
    if User::current() != User::Root {
        return skip("directories of root: needs root");
    }
    let fleet = Fleet::boot();
    let place = fleet.home().join("place");
    fs::create_dir(&place).unwrap();
    let workspace = format!("dir:{}", place.display());
    fleet.cli(["create", "x", "--workspace", &workspace]).refused(77, "belongs to root");
    let nobody = User::ordinary().id();
    std::os::unix::fs::chown(&place, nobody, nobody).unwrap();
    let parent = fleet.json(["create", "first"])["id"].as_str().unwrap().to_owned();
    let more = ["--workspace", &workspace, "--max-retries", "1", "--parent", &parent];
    let id = fleet.create("x", "touch owned", &more);
    std::os::unix::fs::chown(&place, Some(0), Some(0)).unwrap();
    fleet.cli(["complete", &parent]).ok();
    let why = fleet.eventually("it waits for its directory", || {
        let why = fleet.show(&id)["why"].clone();
        (why["code"] == "environment").then(|| why["text"].as_str().unwrap().to_owned())
    });
    assert!(why.contains("belongs to root") && why.contains("chown"), "{why}");
    assert!(!place.join("owned").exists());
    std::os::unix::fs::chown(&place, nobody, nobody).unwrap();
    fleet.wait_for(&id, "done");
    assert!(place.join("owned").exists());
}

#[test]
fn replies_and_refusals_are_never_mixed_up_on_the_two_outputs() {
    let fleet = Fleet::offline();
    let refused = fleet.cli(["show", "t_00000000"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""));
    let created = fleet.cli(["create", "x", "--json"]).ok();
    assert_eq!((created.stderr.as_str(), &created.json()["title"]), ("", &json!("x")));
}

#[test]
fn a_named_file_that_does_not_exist_is_one_refusal_for_every_command_and_a_directory_another() {
    for fleet in [Fleet::offline(), Fleet::boot()] {
        let task = fleet.create("a", "true", &["--triage"]);
        let lines = [
            vec!["create", "x", "--body-file", "{}"],
            vec!["edit", &task, "--body-file", "{}"],
            vec!["attach", &task, "{}"],
            vec!["--board", "other", "import", "{}"],
            vec!["--board", "other", "import", "--from-hermes", "{}"],
            vec!["backup", "{}/board.db"],
            vec!["export", "--file", "{}/board.jsonl"],
        ];
        let named = |line: &[&str], path: &str| -> Vec<String> {
            line.iter().map(|word| word.replace("{}", path)).collect()
        };
        for line in &lines {
            fleet.cli(named(line, "none")).refused(3, "none");
        }
        for line in &lines[..5] {
            fleet.cli(named(line, ".")).refused(2, "");
        }
        if fleet.cli(["status"]).code == 3 {
            fleet.cli(["restore", "none"]).refused(3, "none");
            fleet.cli(["restore", "."]).refused(2, "");
        }
    }
}
