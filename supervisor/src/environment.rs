//! The environment of a command: a variable that is empty counts as one that is not set.

use std::ffi::OsString;

/// Returns the value of a variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the value of such a variable, where it is text.
pub(crate) fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// A path, also as `dir:` or `worktree:` names it, with the caller's home for a leading `~`, as a shell has it at the start of a word.
pub(crate) fn with_home(path: &str) -> String {
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
