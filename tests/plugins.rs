//! Plugins: installed, checked, given their events at least once, and harmless whatever they do.

mod asked;
mod attacks;
mod events;
mod ground;
mod parts;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::Fleet;

/// Writes a plugin of the shell into the home of the fleet's user. `more` is the rest of its `plugin.toml`.
fn written(fleet: &Fleet, name: &str, more: &str, script: &str) -> PathBuf {
    let dir = fleet.home().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let toml = format!("version = 1\nrun = ['plugin.sh']\nretry_first = '0s'\n{more}");
    for (file, text) in [("plugin.toml", toml), ("plugin.sh", format!("#!/bin/sh\n{script}\n"))] {
        let path = dir.join(file);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        fleet.give(&path);
    }
    fleet.give(&dir);
    dir
}

/// Installs a plugin of the shell.
pub(crate) fn installed(fleet: &Fleet, name: &str, more: &str, script: &str) {
    let dir = written(fleet, name, more, script);
    fleet.cli(["plugin", "install", &dir.display().to_string(), "--yes", "--force"]).ok();
}

/// Returns the content of a file in a plugin's state.
fn kept(fleet: &Fleet, name: &str, file: &str) -> String {
    let path = fleet.root().join("plugins.d").join(name).join("state").join(file);
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns the entry of a plugin in the list.
fn line(fleet: &Fleet, name: &str) -> Value {
    let listed = fleet.json(["plugin", "list"]);
    listed.as_array().unwrap().iter().find(|line| line["name"] == name).unwrap().clone()
}

/// The steps of a check that is not `ok`, or all of them.
fn checked(fleet: &Fleet, plugin: &str) -> (bool, Vec<Value>) {
    let said = fleet.cli(["plugin", "check", plugin, "--json"]);
    let said: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    (said["ok"].as_bool().unwrap(), said["steps"].as_array().unwrap().clone())
}

/// Returns the message of the failed step.
fn failing(fleet: &Fleet, plugin: &str) -> String {
    let (ok, steps) = checked(fleet, plugin);
    let last = steps.last().unwrap();
    assert!(!ok && last["ok"] == false, "{steps:?}");
    format!("{}: {}", last["name"].as_str().unwrap(), last["detail"].as_str().unwrap())
}
