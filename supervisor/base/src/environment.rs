//! Environment variables of this process. An empty variable counts as unset.

use std::ffi::OsString;

/// Returns the value of a variable that is set and not empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the value of a variable that is set, not empty and valid UTF-8.
pub fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// Replaces a leading `~` of a path by the caller's home, as a shell does at the start of a word. The prefixes `dir:`
/// and `worktree:` are kept.
pub fn with_home(path: &str) -> String {
    let Some(home) = text("HOME") else { return path.to_owned() };
    for kind in ["dir:", "worktree:", ""] {
        if let Some(rest) = path.strip_prefix(kind)
            && (rest == "~" || rest.starts_with("~/"))
        {
            return format!("{kind}{home}{}", &rest[1..]);
        }
    }
    path.to_owned()
}
