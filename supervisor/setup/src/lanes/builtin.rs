//! Built-in lanes, as files.
//!
//! Codex keeps an index of its sessions with absolute paths, which are wrong in a fork. Its lane puts the index into
//! the home of the run; without it Codex finds a session by the name of its file. A session of `opencode` works in the
//! directory in which it began, so its lane has no `fork`.
//!
//! For an orchestrator, all tools are denied and the servers allowed where the program can, so that a tool of a later
//! release is denied too. Gemini CLI prefers the settings of its working directory to the settings of its home, so an
//! orchestrator there starts outside of the workspace.

/// Names and texts of the built-in lanes.
pub(super) const ALL: [(&str, &str); 9] = [
    ("shell", include_str!("builtin/shell.toml")),
    ("exec", include_str!("builtin/exec.toml")),
    ("claude", include_str!("builtin/claude.toml")),
    ("codex", include_str!("builtin/codex.toml")),
    ("gemini", include_str!("builtin/gemini.toml")),
    ("http", include_str!("builtin/http.toml")),
    ("a2a", include_str!("builtin/a2a.toml")),
    ("hermes", include_str!("builtin/hermes.toml")),
    ("opencode", include_str!("builtin/opencode.toml")),
];
