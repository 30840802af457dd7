//! Plugins that hang, flood, fork, die, lie, or want what is not theirs.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{failing, installed, line, written};
use crate::harness::{Fleet, User};

const CREATED: &str = "[[events]]\nkinds = ['created']";

#[test]
fn whatever_the_program_of_a_plugin_does_is_a_call_that_failed_and_nothing_of_it_is_left() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let secret = fleet.root().join("supervisor.toml");
        fs::write(&secret, "# secret\n").unwrap();
        let opens = format!("cat '{}' && exit 0; echo closed >&2; exit 4", secret.display());
        for (name, script, expected) in [
            ("hangs", "sleep 4242", "took longer than 2 s and was ended"),
            ("floods", "yes", "wrote more than 1048576 bytes and was ended"),
            ("whines", "yes >&2", "took longer than 2 s and was ended"),
            ("dies", "kill -9 $$", "was ended by signal 9"),
            ("exits", "echo broken >&2; exit 7", "ended with code 7: broken"),
            ("babbles", "echo hello", "its reply is not what was asked for"),
            ("lies", "echo '{\"requests\":[{\"verb\":\"cancel\",\"body\":{}}]}'", "asks for `cancel`"),
            ("complains", "echo '{\"error\":\"I will not\"}'", "I will not"),
            ("opens", &opens, "ended with code 4: closed"),
            ("writes", "echo x > \"$PLUGIN_DIR/plugin.toml\" || exit 5", "ended with code"),
            (
                "calls",
                "exec 3<>/dev/tcp/127.0.0.1/80 || exec python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'",
                "ended with code",
            ),
        ] {
            let limit = if expected.contains("longer than 2 s") { "2s" } else { "1m" };
            let dir = written(&fleet, name, &format!("timeout = '{limit}'\n{CREATED}"), script);
            let why = failing(&fleet, &dir.display().to_string());
            assert!(why.starts_with("event created: ") && why.contains(expected), "{name}: {why}");
        }
        let script = "(sleep 4242 &) ; (setsid sleep 4242 &); echo '{}'";
        let dir = written(&fleet, "leaves", CREATED, script);
        fleet.cli(["plugin", "check", &dir.display().to_string()]).ok();
        assert!(fleet.processes_with("4242").is_empty(), "nothing of it is left");
        let homes = fs::read_dir(fleet.root().join("homes/.plugins")).unwrap().count();
        assert_eq!(homes, 0, "no copy is left");
    }
}

#[test]
fn a_plugin_that_hangs_holds_up_neither_the_board_nor_other_plugins_nor_the_end_of_the_daemon() {
    let fleet = Fleet::boot();
    installed(
        &fleet,
        "hangs",
        &format!("timeout = '5m'\n{CREATED}"),
        "touch \"$PLUGIN_STATE/began\"; sleep 4242",
    );
    installed(&fleet, "works", CREATED, "touch \"$PLUGIN_STATE/began\"");
    let task = fleet.create("x", "true", &[]);
    for name in ["hangs", "works"] {
        let began = fleet.root().join("plugins.d").join(name).join("state/began");
        fleet.eventually("it has begun", || began.exists().then_some(()));
    }
    fleet.wait_for(&task, "done");
    assert!(!fleet.processes_with("4242").is_empty());
    assert!(fleet.stop(&[]).success());
    fleet.eventually("its program has ended", || fleet.processes_with("4242").is_empty().then_some(()));
}

#[test]
fn a_fork_bomb_ends_with_its_call() {
    let fleet = Fleet::offline();
    let script = "bomb() { sleep 4242 & bomb | bomb & }; bomb; bomb; sleep 4242";
    let dir = written(&fleet, "bomb", &format!("timeout = '2s'\npolicy = 'few'\n{CREATED}"), script);
    fleet.policy("few", "version = 1\nextends = 'strict'\n[limits]\npids = 40\n");
    let why = failing(&fleet, &dir.display().to_string());
    assert!(why.starts_with("event created: "), "{why}");
    fleet.eventually("all of it is gone", || fleet.processes_with("4242").is_empty().then_some(()));
}

#[test]
fn a_directory_that_leads_elsewhere_or_that_others_can_write_is_no_plugin() {
    let fleet = Fleet::boot();
    let secret = fleet.home().join("secret");
    fs::write(&secret, "secret").unwrap();
    let dir = written(&fleet, "linked", CREATED, "true");
    symlink(&secret, dir.join("data")).unwrap();
    let path = dir.display().to_string();
    fleet.cli(["plugin", "install", &path, "--yes"]).refused(2, "is a symbolic link");
    assert!(failing(&fleet, &path).contains("is a symbolic link"));
    let linked = fleet.home().join("whole");
    symlink(&dir, &linked).unwrap();
    fleet.cli(["plugin", "install", &linked.display().to_string(), "--yes"]).refused(2, "is a symbolic link");
    let left: Vec<_> = fs::read_dir(fleet.root().join("plugins.d")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    let dir = written(&fleet, "many", CREATED, "true");
    for n in 0..1001 {
        fs::write(dir.join(n.to_string()), "").unwrap();
    }
    fleet.cli(["plugin", "install", &dir.display().to_string(), "--yes"]).refused(2, "more than 1000 files");
    let dir = written(&fleet, "large", CREATED, "true");
    fs::File::create(dir.join("big")).unwrap().set_len(17 << 20).unwrap();
    fleet.cli(["plugin", "install", &dir.display().to_string(), "--yes"]).refused(2, "more than 16 MiB");
    let dir = written(&fleet, "archive", CREATED, "true");
    fleet
        .cli(["plugin", "install", &dir.display().to_string(), "--yes"])
        .refused(2, "is a command of this program");

    installed(&fleet, "open", CREATED, "true");
    let program = fleet.root().join("plugins.d/open/plugin.sh");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    fleet.cli(["service", "reload"]);
    let defect = line(&fleet, "open")["defect"].as_str().unwrap().to_owned();
    assert!(defect.contains("others than its owner can write"), "{defect}");
    symlink("/etc", fleet.root().join("plugins.d/open2")).unwrap();
    fleet.cli(["service", "reload"]);
    let defect = line(&fleet, "open2")["defect"].as_str().unwrap().to_owned();
    assert!(defect.contains("is a symbolic link"), "{defect}");
}

#[test]
fn a_plugin_that_hangs_on_one_board_gets_the_events_of_others() {
    let fleet = Fleet::boot();
    installed(
        &fleet,
        "hangs",
        &format!("timeout = '5m'\n{CREATED}"),
        "cat > \"$PLUGIN_STATE/call-$$\"; grep -q '\"board\":\"default\"' \"$PLUGIN_STATE/call-$$\" && sleep 4242",
    );
    let state = fleet.root().join("plugins.d/hangs/state");
    let has = |board: &str| {
        let of = format!("\"board\":\"{board}\"");
        let calls = fs::read_dir(&state).into_iter().flatten().flatten();
        calls.filter_map(|call| fs::read_to_string(call.path()).ok()).any(|call| call.contains(&of))
    };
    fleet.cli(["--board", "other", "init"]).ok();
    fleet.cli(["create", "x", "--assignee", "nobody-does-it"]).ok();
    fleet.eventually("it hangs", || has("default").then_some(()));

    fleet.cli(["--board", "other", "create", "x", "--assignee", "nobody-does-it"]).ok();

    fleet.eventually("the other board is heard", || has("other").then_some(()));
    assert!(fleet.stop(&[]).success());
    fleet.eventually("its program has ended", || fleet.processes_with("4242").is_empty().then_some(()));
}
