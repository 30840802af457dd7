//! A policy: its text form, its defaults and its name.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::broker::Broker;
use crate::environment::Environment;
use crate::files::Files;
use crate::hosts::Target;
use crate::limits::Limits;
use crate::network::{Mode, Network};
use crate::process::Process;

/// Access of a run. Everything that is not granted is denied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Version of the format: 1.
    pub version: u32,
    /// Name that reports show.
    #[serde(default)]
    pub name: String,
    /// Policy that is the base of this policy: tables are merged, other values are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Reaction to a layer that the host cannot enforce.
    #[serde(default)]
    pub compatibility: Compatibility,
    /// Lowest Landlock ABI that `hard_requirement` accepts.
    #[serde(default = "lowest_abi")]
    pub min_abi: u32,
    // Decision 0025.
    /// Layers that a `best_effort` policy may lack on a host that cannot enforce them. Any other gap is refused.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub accept: BTreeSet<Accepted>,
    /// Extent of the confinement.
    #[serde(default)]
    pub confinement: Confinement,
    /// Files and devices.
    #[serde(default)]
    pub filesystem: Files,
    /// Networks and sockets.
    #[serde(default)]
    pub network: Network,
    /// Privileges, namespaces and system calls.
    #[serde(default)]
    pub process: Process,
    /// The environment.
    #[serde(default)]
    pub env: Environment,
    #[serde(default)]
    pub limits: Limits,
    /// Hosts to which the proxy adds a secret that the run never has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broker: Vec<Broker>,
}

/// Reaction to a layer that the host cannot enforce.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compatibility {
    /// The run is refused.
    #[default]
    HardRequirement,
    /// The run starts and the report lists the missing layers.
    BestEffort,
}

/// Layers that may be missing on a host that cannot enforce them. Without them, little of a policy is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// The files of the run's user.
    Files,
    Network,
}

/// Extent of the confinement of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// Files, networks and system calls are confined.
    #[default]
    Full,
    /// Only the user, the privileges, the session and the limits are confined.
    Off,
}

/// Returns the default of `min_abi`. ABI 6 added the scopes. Without them, a worker can signal every process of its
/// user.
const fn lowest_abi() -> u32 {
    6
}

impl Policy {
    /// Returns the name that reports show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the files, networks and system calls of a run are confined.
    pub fn is_confined(&self) -> bool {
        self.confinement == Confinement::Full
    }

    /// Returns true if a run reaches the network only through a proxy.
    pub fn has_proxy(&self) -> bool {
        self.is_confined() && self.network.mode == Mode::Proxy
    }

    /// Returns the brokers of a host.
    pub fn brokers_of<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a Broker> {
        let all = if self.has_proxy() { self.broker.as_slice() } else { &[] };
        all.iter().filter(move |broker| broker.host.target() == target)
    }

    pub(crate) fn is_hard(&self) -> bool {
        self.compatibility == Compatibility::HardRequirement
    }

    /// Returns true if the run may start without this layer.
    pub(crate) fn accepts(&self, open: Accepted) -> bool {
        !self.is_hard() && self.accept.contains(&open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn error(text: &str) -> String {
        Policy::from_toml(text, Path::new("/etc/p.toml")).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file_and_line() {
        let text = error("version = 1\n[filesystem]\nreadonly = ['/usr']\n");
        assert!(text.starts_with("read policy /etc/p.toml:3 (readonly): unknown field `readonly`"), "{text}");
    }

    #[test]
    fn a_duplicate_key_is_an_error() {
        let text = error("version = 1\nversion = 1\n");
        assert!(text.starts_with("read policy /etc/p.toml:2 (version): duplicate key"), "{text}");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line() {
        let text = error("version = 1\n[limits]\nfile_size = '2 parsecs'\n");
        assert!(text.starts_with("read policy /etc/p.toml:3 (file_size): "), "{text}");
        let text = error("version = 1\n[filesystem]\nro = ['etc']\n");
        assert!(text.starts_with("read policy /etc/p.toml:3 (ro): "), "{text}");
        assert!(text.contains("absolute"), "{text}");
    }

    #[test]
    fn another_version_is_refused() {
        assert!(error("version = 2\n").contains("version 2 is not known"));
        let text = error("name = 'p'\n");
        assert_eq!(
            text,
            "read policy /etc/p.toml:1 (version): the version of the format is missing; add `version = 1`"
        );
    }

    #[test]
    fn an_unknown_base_lists_the_known_ones() {
        let text = error("version = 1\nextends = 'lax'\n");
        assert!(text.contains("p.toml:2 (extends)") && text.contains("default"), "{text}");
    }

    #[test]
    fn a_policy_that_extends_keeps_what_it_does_not_name() {
        let text = "version = 1\nextends = 'builtin:default'\n[limits]\npids = 7\n";
        let policy = Policy::from_toml(text, Path::new("/etc/tiny.toml")).unwrap();
        let base = Policy::builtin("default").unwrap();
        assert_eq!(policy.name(), "tiny");
        assert_eq!(policy.limits.pids, Some(7));
        assert_eq!(policy.limits.files, base.limits.files);
        assert_eq!(policy.filesystem, base.filesystem);
    }

    #[test]
    fn a_policy_survives_json() {
        for name in Policy::builtin_names() {
            let policy = Policy::builtin(name).unwrap();
            let text = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
        }
    }

    #[test]
    fn a_policy_survives_its_own_toml() {
        for name in Policy::builtin_names() {
            let policy = Policy::builtin(name).unwrap();
            let origin = format!("{name}.toml");
            assert_eq!(
                Policy::from_toml(&toml::to_string(&policy).unwrap(), Path::new(&origin)).unwrap(),
                policy
            );
        }
    }

    #[test]
    fn the_policy_of_the_manual_is_valid() {
        let manual = include_str!("../../docs/policies.md");
        let text = manual.split("```").find_map(|block| block.strip_prefix("toml\n")).unwrap();
        assert_eq!(Policy::from_toml(text, Path::new("api-agent.toml")).unwrap().name(), "api-agent");
    }

    #[test]
    fn an_empty_policy_grants_nothing() {
        let policy = Policy::from_toml("version = 1", Path::new("none.toml")).unwrap();
        assert_eq!(policy.filesystem, Files::default());
        assert!(policy.is_hard() && policy.is_confined());
        assert_eq!(policy.network.mode, Mode::None);
    }
}
