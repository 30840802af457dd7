//! People are notified about their tasks: over each kind of channel, at least once, in order, and never flooded.

mod encrypted;
mod endings;
mod outbox;
mod pauses;
pub(crate) mod played;
mod played_desktop;
mod sinks;

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::Fleet;

/// Writes a secret of the fleet's user, and returns the reference to it.
pub(crate) fn secret(fleet: &Fleet, name: &str, value: &str) -> String {
    let path = fleet.home().join(name);
    std::fs::write(&path, value).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    fleet.give(&path);
    format!("{{ file = '{}' }}", path.display())
}

/// A task that its creator completes at once.
fn done(fleet: &Fleet, title: &str, result: &str, more: &[&str]) -> String {
    let made = fleet.json([&["create", title][..], more].concat());
    let id = made["id"].as_str().unwrap().to_owned();
    fleet.cli(["complete", &id, "--result", result]).ok();
    id
}

/// The messages that wait or are dead.
fn outbox(fleet: &Fleet) -> Vec<serde_json::Value> {
    fleet.json(["notify", "outbox"]).as_array().unwrap().clone()
}

/// Lets everybody execute a file.
fn executable(fleet: &Fleet, path: &std::path::Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    fleet.give(path);
}
