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
