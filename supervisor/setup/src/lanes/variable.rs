//! Rules for the variables that a lane's file may set.

/// Variables that the supervisor sets.
const RESERVED: [&str; 3] = ["HOME", "PATH", "TMPDIR"];

/// Returns true if a text can be the name of a variable.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns true if the supervisor sets this variable for every run.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with("SUPERVISOR_")
}
