//! Built-in lanes, as files.

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
