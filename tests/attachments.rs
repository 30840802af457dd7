//! Files of tasks: they come whole, stay, reach the workers that may read them, and lead nobody astray.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Fleet, User};
use crate::http::Http;
use crate::listeners::{idle_worker, workers_door};

/// The limit of an attachment.
const LIMIT: u64 = 25 * 1024 * 1024;

/// Writes a file that the fleet's user may read.
fn file(fleet: &Fleet, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = fleet.home().join(name);
    fs::write(&path, bytes).unwrap();
    fleet.give(&path);
    path
}

/// The names of the blobs of the default board.
fn blobs(fleet: &Fleet) -> Vec<String> {
    let Ok(entries) = fs::read_dir(fleet.root().join("boards/default/attachments")) else {
        return Vec::new();
    };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_is_attached_listed_and_removed_with_and_without_a_daemon() {
    for served in [false, true] {
        let fleet = if served { Fleet::boot() } else { Fleet::offline() };
        let task = fleet.create("a", "true", &["--triage"]);
        file(&fleet, "ä b&c.txt", "abc");

        let attached =
            fleet.json(["attach", &task, "ä b&c.txt", "--content-type", "text/plain", "--author", "ann"]);

        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let listed = fleet.json(["attachments", &task]);
        assert_eq!(listed, json!([attached]));
        let one = &listed[0];
        let stored = fleet.root().canonicalize().unwrap().join("boards/default/attachments").join(digest);
        for (key, value) in [
            ("id", json!(1)),
            ("filename", json!("ä b&c.txt")),
            ("content_type", json!("text/plain")),
            ("size", json!(3)),
            ("uploaded_by", json!("ann")),
            ("sha256", json!(digest)),
        ] {
            assert_eq!(one[key], value, "{key}");
        }
        assert!(one["created_at"].as_i64().unwrap() > 1_700_000_000);
        let path = PathBuf::from(one["stored_path"].as_str().unwrap());
        assert_eq!(path.canonicalize().unwrap(), stored);
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert!(fleet.cli(["context", &task]).ok().stdout.contains(path.to_str().unwrap()));
        // The same content is stored once, and goes with the last that has it.
        fleet.cli(["attach", &task, "ä b&c.txt", "--name", "again"]).ok();
        assert_eq!(blobs(&fleet), [digest]);
        fleet.cli(["attach-rm", "1"]).ok();
        assert_eq!(blobs(&fleet), [digest]);
        fleet.cli(["attach-rm", "2"]).ok();
        assert_eq!(blobs(&fleet), Vec::<String>::new());
        fleet.cli(["attach-rm", "2"]).refused(3, "no such attachment");
        let kinds: Vec<Value> = fleet.json(["events", "--task", &task])["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["kind"].clone())
            .collect();
        let told = ["created", "attached", "attached", "attachment_removed", "attachment_removed"];
        assert_eq!(kinds, told.map(Value::from));
    }
}

#[test]
fn a_file_of_25_mib_is_taken_and_a_byte_more_is_not() {
    let fleet = Fleet::boot();
    let task = fleet.create("a", "true", &["--triage"]);
    let big = file(&fleet, "big", "");
    let grow = |size| fs::File::options().write(true).open(&big).unwrap().set_len(size).unwrap();
    grow(LIMIT);
    assert_eq!(fleet.json(["attach", &task, "big"])["size"], LIMIT);
    grow(LIMIT + 1);
    fleet.cli(["attach", &task, "big"]).refused(2, "big has 26214401 bytes").refused(2, "26214400 (25 MiB)");
    // Who does not ask first is cut off: by the length that it tells, or on the way.
    for chunked in [false, true] {
        let mut curl = std::process::Command::new("curl");
        curl.args(["--silent", "--max-time", "60", "--unix-socket"])
            .arg(fleet.root().join("run/supervisor.sock"));
        if chunked {
            curl.args(["--header", "Transfer-Encoding: chunked"]);
        }
        curl.args(["--header", "Content-Type: application/octet-stream", "--data-binary"]);
        curl.arg(format!("@{}", big.display()));
        curl.arg(format!("http://supervisor/api/v1/tasks/{task}/attachments?filename=big"));
        if let Ok(key) = fs::read_to_string(fleet.root().join("operator.key")) {
            curl.args(["--header", &format!("X-Supervisor-Key: {key}")]);
        }
        let said = String::from_utf8(curl.output().unwrap().stdout).unwrap();
        assert!(said.contains("\"code\":\"usage\"") && said.contains("25 MiB"), "{said}");
    }
    assert_eq!(blobs(&fleet).len(), 1, "no draft is left: {:?}", blobs(&fleet));
}

#[test]
fn what_is_no_file_or_has_no_plain_name_is_refused() {
    let fleet = Fleet::boot();
    let task = fleet.create("a", "true", &["--triage"]);
    file(&fleet, "a", "abc");
    fs::create_dir(fleet.home().join("dir")).unwrap();
    nix::unistd::mkfifo(&fleet.home().join("fifo"), nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    for (path, code, why) in [
        ("dir", 2, "a directory"),
        ("fifo", 2, "a pipe"),
        ("/dev/null", 2, "a device"),
        ("none", 3, "No such file"),
    ] {
        fleet.cli(["attach", &task, path]).refused(code, why);
    }
    for name in ["", ".", "..", "a/b", "../x", "a\nb", "\u{1b}[0m", &"n".repeat(256)] {
        fleet.cli(["attach", &task, "a", "--name", name]).refused(2, "filename");
    }
    fleet.cli(["attach", "t_00000000", "a"]).refused(3, "no such task");
    assert_eq!(blobs(&fleet), Vec::<String>::new());
    fleet.cli(["attach", &task, "a", "--name", &"n".repeat(255)]).ok();
}

#[test]
fn a_worker_reads_its_files_where_its_context_says_and_cannot_change_them() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "
            touch up; while [ ! -e go ]; do sleep 0.02; done
            supervisor context > context
            sed -n 's/^- `.*bytes: `\\(.*\\)`$/\\1/p' context | while read -r path; do
                cat \"$path\" >> seen
                (echo more >> \"$path\") 2> denied && echo written >> broken
                rm -f \"$path\" 2>> denied; [ -e \"$path\" ] || echo removed >> broken
                (touch \"$(dirname \"$path\")/x\") 2>> denied && echo added >> broken
            done
            [ ! -e broken ] && supervisor attachments --json > listed && supervisor complete --summary \"$(cat seen)\"";
        let task = fleet.create("reads", script, &["--triage"]);
        file(&fleet, "first.txt", "one ");
        file(&fleet, "second.txt", "two");
        fleet.cli(["attach", &task, "first.txt"]).ok();
        fleet.cli(["promote", &task]).ok();
        let workspace = fleet.eventually("the worker is up", || {
            let path = PathBuf::from(fleet.show(&task)["runs"][0]["workspace_path"].as_str()?);
            path.join("up").exists().then_some(path)
        });
        // What comes while it works reaches it too.
        fleet.cli(["attach", &task, "second.txt"]).ok();
        fs::write(workspace.join("go"), "").unwrap();

        let done = fleet.wait_for(&task, "done");

        assert_eq!(done["latest_summary"], "one two", "{}", fleet.cli(["log", &task]).stdout);
        let listed: Value = serde_json::from_slice(&fs::read(workspace.join("listed")).unwrap()).unwrap();
        let own = listed[0]["stored_path"].as_str().unwrap();
        assert!(own.contains("/homes/default/1/files/1/first.txt"), "{own}");
        fleet.eventually("the copies are gone with the run", || (!Path::new(own).exists()).then_some(()));
        assert_eq!(
            fs::read(fleet.json(["attachments", &task])[0]["stored_path"].as_str().unwrap()).unwrap(),
            b"one "
        );
    }
}

#[test]
fn a_worker_attaches_to_its_own_task_and_to_no_other() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let other = fleet.create("other", "true", &["--triage"]);
        let script = format!(
            "echo found > report.md; ln -s /etc/hostname link
             supervisor attach report.md --author root && supervisor attach {other} report.md; echo $? > refused
             supervisor attachments {other} > others; supervisor attach-rm 1; echo $? > removed
             supervisor complete --summary ok"
        );
        let task = fleet.create("writes", &script, &[]);

        let done = fleet.wait_for(&task, "done");

        let files = fleet.json(["attachments", &task]);
        let one = &files[0];
        assert_eq!(
            (&one["filename"], &one["uploaded_by"], &one["run_id"]),
            (&json!("report.md"), &json!("shell"), &json!(1))
        );
        assert_eq!(fs::read(one["stored_path"].as_str().unwrap()).unwrap(), b"found\n");
        let workspace = PathBuf::from(done["runs"][0]["workspace_path"].as_str().unwrap());
        for name in ["refused", "removed"] {
            assert_eq!(fs::read_to_string(workspace.join(name)).unwrap(), "77\n", "{name}");
        }
        assert_eq!(fleet.json(["attachments", &other]), json!([]));
    }
}

#[test]
fn what_a_worker_hands_over_reaches_the_next_one_and_nothing_leads_out() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let secret = file(&fleet, "secret", "secret");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let script = format!(
            "mkdir -p out/deep; echo found > out/deep/report.md; echo x | tee x planted none > pipe
             supervisor complete --artifact ../../etc/passwd; echo $? > up
             supervisor complete --artifact /etc/passwd; echo $? > absolute
             cd out; supervisor complete --summary handed --metadata '{{\"artifacts\": [\"x\"]}}' \
                --artifact deep/report.md --artifact ../planted --artifact ../none --artifact ../pipe
             cd ..; rm planted none pipe; ln -s {} planted; mkfifo pipe",
            secret.display()
        );
        let parent = fleet.create("makes", &script, &[]);
        let read = "supervisor context > context
            path=$(sed -n 's/^artifact `out.deep.report.md`.*: `\\(.*\\)`$/\\1/p' context)
            supervisor complete --summary \"$(cat \"$path\")\"";
        let child = fleet.create("reads", read, &["--parent", &parent]);

        let done = fleet.wait_for(&child, "done");

        assert_eq!(done["latest_summary"], "found", "{}", fleet.cli(["log", &child]).stdout);
        let parent = fleet.show(&parent);
        let id = parent["task"]["id"].as_str().unwrap();
        let workspace = PathBuf::from(parent["runs"][0]["workspace_path"].as_str().unwrap());
        for name in ["up", "absolute"] {
            assert_eq!(fs::read_to_string(workspace.join(name)).unwrap(), "2\n", "{name}");
        }
        let files = fleet.json(["attachments", id]);
        let kept: Vec<_> = files.as_array().unwrap().iter().map(|file| file["artifact"].clone()).collect();
        assert_eq!(kept, ["out/deep/report.md", "x"]);
        let lost = fleet.json(["events", "--task", id, "--kind", "artifact_lost"]);
        let lost: Vec<_> =
            lost["events"].as_array().unwrap().iter().map(|event| event["payload"].clone()).collect();
        assert_eq!(
            lost,
            [
                json!({"artifact": "out/../planted", "reason": "it leads out of the workspace"}),
                json!({"artifact": "out/../none", "reason": "there is no such file"}),
                json!({"artifact": "out/../pipe", "reason": "it is not a file"}),
            ]
        );
        let comment = parent["comments"][0]["body"].as_str().unwrap();
        assert!(comment.contains("`out/../none`: there is no such file"), "{comment}");
        let kinds: Vec<_> =
            parent["events"].as_array().unwrap().iter().map(|event| event["kind"].clone()).collect();
        let at = |kind: &str| kinds.iter().rposition(|found| found == kind).unwrap();
        assert!(at("attached") < at("completed") && at("artifact_lost") < at("completed"), "{kinds:?}");
    }
}

#[test]
fn a_daemon_that_dies_between_a_verdict_and_the_end_keeps_each_artifact_once() {
    for point in ["after-exit", "after-artifacts", "before-finish", "after-finish"] {
        let fleet = Fleet::offline();
        let task = fleet.create(
            "makes",
            "echo found | tee out > none; supervisor complete --artifact out --artifact none; rm none",
            &[],
        );
        let mut daemon = fleet.command(["daemon"]);
        let log = fs::File::create(fleet.log_file()).unwrap();
        daemon.stderr(log).env("SUPERVISOR_FAIL_POINT", point);
        fleet.adopt(daemon.spawn().unwrap());
        fleet.reap_daemon();
        fleet.start();

        fleet.wait_for(&task, "done");

        let files = fleet.json(["attachments", &task]);
        assert_eq!(files.as_array().unwrap().len(), 1, "{point}: {files}");
        assert_eq!(fs::read(files[0]["stored_path"].as_str().unwrap()).unwrap(), b"found\n");
        let lost = fleet.json(["events", "--task", &task, "--kind", "artifact_lost"]);
        assert_eq!(lost["events"].as_array().unwrap().len(), 1, "{point}");
        assert_eq!(fleet.show(&task)["comments"].as_array().unwrap().len(), 1, "{point}");
        assert_eq!(blobs(&fleet).len(), 1, "{point}");
    }
}

#[test]
fn a_file_is_downloaded_as_it_came_and_a_browser_runs_nothing_of_it() {
    let fleet = Fleet::boot();
    let task = fleet.create("a", "true", &["--triage"]);
    file(&fleet, "page.html", "<script>");
    fleet.cli(["attach", &task, "page.html", "--content-type", "text/html"]).ok();
    let mut door = Http::at(fleet.root().join("run/supervisor.sock"));
    if let Ok(key) = fs::read_to_string(fleet.root().join("operator.key")) {
        door = door.with("x-supervisor-key", &key);
    }
    let answer = door.get("/api/v1/attachments/1");
    assert_eq!((answer.status, answer.body.as_str()), (200, "<script>"));
    idle_worker(&fleet, &[]);
    let door = workers_door(&fleet);
    assert_eq!(door.get("/api/v1/attachments/1").status, 403);
}

#[test]
fn an_attached_file_outlives_a_daemon_that_is_killed() {
    let fleet = Fleet::boot();
    let task = fleet.create("a", "true", &["--triage"]);
    file(&fleet, "a", "abc");
    fleet.cli(["attach", &task, "a"]).ok();
    fleet.kill_daemon();
    // A draft that was cut short with it.
    fs::write(fleet.root().join("boards/default/attachments/.new-dead"), "ha").unwrap();
    fs::write(fleet.root().join("boards/default/attachments").join("0".repeat(64)), "nobody's").unwrap();
    fleet.start();
    let path = fleet.json(["attachments", &task])[0]["stored_path"].as_str().unwrap().to_owned();
    assert_eq!(fs::read(&path).unwrap(), b"abc");
    assert_eq!(blobs(&fleet).len(), 3);
    fleet.cli(["gc"]).ok();
    assert_eq!(blobs(&fleet).len(), 1);
    assert_eq!(fs::read(&path).unwrap(), b"abc");
    assert_eq!(fleet.cli(["doctor"]).code, 0);
    fs::write(&path, "xyz").unwrap();
    let sick = fleet.cli(["doctor"]);
    assert_eq!(sick.code, 1, "{}", sick.stdout);
    assert!(sick.stdout.contains("not those that were attached"), "{}", sick.stdout);
    file(&fleet, "a", "abc");
    fleet.cli(["attach", &task, "a"]).ok();
    assert_eq!(fleet.cli(["doctor"]).code, 0, "the same file attached again mends it");
    fleet.cli(["archive", &task]).ok();
    fleet.cli(["archive", "--rm", &task]).ok();
    assert_eq!(blobs(&fleet), Vec::<String>::new());
}

#[test]
fn who_completes_by_hand_is_told_that_artifacts_stay_where_they_are() {
    let fleet = Fleet::offline();
    let task = fleet.create("a", "true", &[]);
    let claimed = fleet.create("b", "true", &[]);
    fleet.cli(["claim", &claimed]).ok();
    for (task, words) in [
        (&task, ["--artifact", "out/report.md"]),
        (&claimed, ["--metadata", "{\"artifacts\": [\"out/report.md\"]}"]),
    ] {
        let said = fleet.cli([&["complete", task], &words[..]].concat()).ok().stdout;
        assert!(said.contains("(done)") && said.contains("its files stay where they are"), "{said}");
        assert_eq!(fleet.json(["attachments", task]), json!([]));
    }
    let plain = fleet.create("c", "true", &[]);
    let said = fleet.json(["complete", &plain, "--summary", "no files"]);
    assert_eq!(said["results"][0].get("note"), None, "{said}");
}

#[test]
fn a_run_that_declares_more_than_can_be_kept_or_told_ends_and_says_what_is_lost() {
    let fleet = Fleet::boot();
    // They are gone when the run has ended.
    let long = "part=$(printf '%0200d' 0); deep=$part; n=1; set --
        while [ $n -lt 19 ]; do deep=$deep/$part; n=$((n + 1)); done
        mkdir -p $deep; n=0
        while [ $n -lt 100 ]; do
            : > $deep/$n
            set -- \"$@\" --artifact \"$deep/$n\"
            n=$((n + 1))
        done
        supervisor complete --summary over \"$@\"; rm -rf $part";
    let task = fleet.create("declares", long, &[]);

    let done = fleet.wait_for(&task, "done");

    let lost = fleet.json(["events", "--task", &task, "--kind", "artifact_lost", "--limit", "200"]);
    assert_eq!(lost["events"].as_array().unwrap().len(), 100);
    let comment = done["comments"][0]["body"].as_str().unwrap();
    assert!(comment.contains("and 80 more: see the events `artifact_lost`"), "{comment}");
    assert_eq!(done["runs"][0]["outcome"], "completed");
}

#[test]
fn what_a_run_hands_over_beyond_a_bound_is_lost_and_its_bytes_do_not_stay() {
    let fleet = Fleet::offline();
    fleet.configure("[quotas]\nattachment_bytes = 10\n");
    fleet.start();
    let script = "echo one > one; echo another > two; supervisor complete --artifact one --artifact two";
    let task = fleet.create("declares", script, &[]);

    let done = fleet.wait_for(&task, "done");

    let kept = fleet.json(["attachments", &task]);
    assert_eq!((kept.as_array().unwrap().len(), &kept[0]["filename"]), (1, &json!("one")), "{kept}");
    let comment = done["comments"][0]["body"].as_str().unwrap();
    assert!(comment.contains("- `two`: attachment_bytes: "), "{comment}");
    fleet.eventually("the bytes of the other are gone", || (blobs(&fleet).len() == 1).then_some(()));
}

#[test]
fn a_run_whose_artifacts_nothing_can_keep_is_told_and_ends_without_them_when_it_is_taken_back() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "echo x > made; touch up; until [ -e go ]; do sleep 0.02; done
            supervisor complete --summary over --artifact made";
        let task = fleet.create("declares", script, &[]);
        let workspace = fleet.eventually("it works", || {
            let path = PathBuf::from(fleet.show(&task)["runs"][0]["workspace_path"].as_str()?);
            path.join("up").exists().then_some(path)
        });
        let kept = fleet.root().join("boards/default/attachments");
        drop(fs::remove_dir_all(&kept));
        fs::write(&kept, "in the way").unwrap();
        fs::write(workspace.join("go"), "").unwrap();
        let remedy = format!("supervisor reclaim {task}");
        fleet.eventually("its end is shown to wait", || {
            let told = fleet.cli(["diagnostics", "--json"]).stdout;
            (told.contains("run_not_ended") && told.contains(&remedy)).then_some(())
        });

        fleet.cli(["reclaim", &task]).ok();

        let done = fleet.wait_for(&task, "done");
        let comment = done["comments"][0]["body"].as_str().unwrap();
        assert!(comment.contains("- `made`: "), "{comment}");
    }
}
