//! Policies that are shipped in the binary.

use std::path::Path;

use crate::policy::Policy;

/// Names of the shipped policies, the narrowest first.
pub(crate) const NAMES: &[&str] =
    &["strict", "default", "test", "orchestrate", "agent", "network", "unconfined"];

/// Returns the text of a shipped policy.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    match name {
        "strict" => Some(include_str!("presets/strict.toml")),
        "default" => Some(include_str!("presets/default.toml")),
        "test" => Some(include_str!("presets/test.toml")),
        "agent" => Some(include_str!("presets/agent.toml")),
        "network" => Some(include_str!("presets/network.toml")),
        "orchestrate" => Some(include_str!("presets/orchestrate.toml")),
        "unconfined" => Some(include_str!("presets/unconfined.toml")),
        _ => None,
    }
}

/// Returns a shipped policy.
#[expect(clippy::expect_used, reason = "the texts are part of the binary and a test reads each of them")]
pub(crate) fn get(name: &str) -> Option<Policy> {
    let origin = Path::new("builtin").join(name);
    text(name).map(|text| Policy::from_toml(text, &origin).expect("a shipped policy is valid"))
}

impl Policy {
    /// Returns a policy that is shipped in the binary.
    pub fn builtin(name: &str) -> Option<Self> {
        get(name)
    }

    /// Returns the names of the policies that are shipped in the binary.
    pub fn builtin_names() -> &'static [&'static str] {
        NAMES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shipped_policy_is_valid_and_carries_its_name() {
        for name in NAMES {
            assert_eq!(get(name).unwrap().name(), *name);
        }
        assert!(get("lax").is_none());
    }

    #[test]
    fn strict_has_no_proc_and_default_no_network() {
        assert_eq!(get("strict").unwrap().filesystem.proc, crate::Proc::None);
        let default = get("default").unwrap();
        assert_eq!(default.filesystem.proc, crate::Proc::Host);
        assert_eq!(default.network.mode, crate::Mode::None);
        assert!(!default.network.udp);
    }
}
