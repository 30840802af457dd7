//! Plugins that keep too much, and directories that have changed since they were read.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{installed, line};
use crate::harness::{Fleet, User};

const GO: &str = "[[verbs]]\nname = 'go'\nabout = 'goes'";

#[test]
fn a_plugin_that_keeps_too_much_is_ended_and_not_called_until_somebody_makes_room() {
    for user in User::all() {
        let fleet = Fleet::boot_as(user);
        let script = "head -c 3000000 /dev/zero > \"$PLUGIN_STATE/large\"; sleep 4242";
        installed(&fleet, "keeps", &format!("timeout = '5m'\nstate_limit = '1MiB'\n{GO}"), script);

        let ended = fleet.cli(["keeps", "go"]);

        assert!(ended.code == 1 && ended.stderr.contains("its state has more than 1.0 MiB"), "{ended:?}");
        assert!(fleet.processes_with("4242").is_empty(), "nothing of it is left");
        fleet.cli(["keeps", "go"]).refused(77, "its state has more than 1.0 MiB");
        let state = fleet.root().join("plugins.d/keeps/state");
        fs::remove_file(state.join("large")).unwrap();
        installed(&fleet, "keeps", &format!("state_limit = '1MiB'\n{GO}"), "echo '{\"text\": \"again\"}'");
        assert_eq!(fleet.cli(["keeps", "go"]).ok().stdout.trim(), "again");
        for n in 0..10_001 {
            fs::write(state.join(n.to_string()), "").unwrap();
        }
        fleet.cli(["keeps", "go"]).refused(77, "more than 10000 files");
    }
}

#[test]
fn what_has_taken_the_place_of_a_plugin_since_it_was_read_is_not_run() {
    let fleet = Fleet::boot();
    installed(&fleet, "calls", GO, "echo '{\"text\": \"its own\"}'");
    assert_eq!(fleet.cli(["calls", "go"]).ok().stdout.trim(), "its own");
    let (plugins, other) = (fleet.root().join("plugins.d"), fleet.home().join("other"));
    let dir = plugins.join("calls");

    fs::rename(&dir, &other).unwrap();
    symlink(&other, &dir).unwrap();
    fleet.cli(["calls", "go"]).refused(1, "is a symbolic link");
    fs::remove_file(&dir).unwrap();
    fs::rename(&other, &dir).unwrap();
    fs::set_permissions(&plugins, fs::Permissions::from_mode(0o777)).unwrap();
    fleet.cli(["calls", "go"]).refused(1, "others than its owner can write");
    fleet.cli(["service", "reload"]);
    let defect = line(&fleet, "calls")["defect"].as_str().unwrap().to_owned();
    assert!(defect.contains("plugins.d (mode 0777): chmod go-w"), "{defect}");

    fs::set_permissions(&plugins, fs::Permissions::from_mode(0o755)).unwrap();
    fleet.cli(["service", "reload"]).ok();
    let manifest = fs::read_to_string(dir.join("plugin.toml")).unwrap();
    fs::write(dir.join("plugin.toml"), format!("policy = 'nowhere'\n{manifest}")).unwrap();
    let doctor = fleet.cli(["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("plugin calls: "), "{doctor:?}");
    fs::write(dir.join("plugin.toml"), &manifest).unwrap();
    assert!(fleet.cli(["doctor"]).stdout.contains("plugin calls: test it with"));
    assert_eq!(fleet.cli(["calls", "go"]).ok().stdout.trim(), "its own");
}
