//! Hints about files that a daemon has not read yet: it reads its configuration at its start and at a reload.

use std::path::Path;

use kernel::Profile;

use base::paths::Root;

/// Returns a hint if an unknown name has a file that was not read yet.
pub fn unread(root: &Root, name: &Profile) -> Option<String> {
    unread_profile(root, name).or_else(|| unread_lane(root, name))
}

/// Does the same for a lane alone.
pub fn unread_lane(root: &Root, name: &Profile) -> Option<String> {
    of_file(&root.lanes_dir().join(format!("{name}.toml")))
}

/// Does the same for a profile alone.
pub fn unread_profile(root: &Root, name: &Profile) -> Option<String> {
    of_file(&root.profiles_dir().join(format!("{name}.md")))
}

fn of_file(path: &Path) -> Option<String> {
    path.is_file().then(|| format!("{} is not read yet: supervisor service reload", path.display()))
}

/// Returns the hint that a file differs from the version in use.
pub fn changed(path: &Path) -> String {
    let what =
        if path.is_file() { "is not in use yet as it is now" } else { "is gone, and what it said is in use" };
    format!("{} {what}: supervisor service reload", path.display())
}
