//! Which variables the file of a lane may set.

/// Variables that are the supervisor's own.
const RESERVED: [&str; 3] = ["HOME", "PATH", "TMPDIR"];

/// Whether a text can be the name of a variable.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether every run has this variable from the supervisor.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with("SUPERVISOR_")
}
