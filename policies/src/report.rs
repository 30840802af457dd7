//! Record of the enforcement, layer by layer, in a form that is stored with the run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Enforcement by the kernel for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub policy: String,
    /// Landlock ABI in use; 0 if there is none.
    pub landlock_abi: u32,
    /// Layers, in the order in which they were applied.
    pub layers: Vec<LayerReport>,
}

/// State of a layer, with the reason for a missing part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerReport {
    /// Layer that a policy can ask for.
    pub layer: Layer,
    pub state: State,
    /// Reason for a missing part, or a detail of the enforcement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Mechanism of the kernel that confines a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Membership of the run's cgroup, and the limits set on it.
    Cgroup,
    /// Own session, without an inherited signal mask or ignored signals.
    Session,
    /// Mount namespace with only the granted paths.
    Mounts,
    /// Resource limits of the process.
    Limits,
    /// A user of its own.
    Uid,
    /// No capability in any set.
    Capabilities,
    /// The worker dies with its parent.
    ParentDeath,
    /// No privilege is gained by an exec.
    NoNewPrivs,
    /// Files by path.
    Files,
    /// TCP, UDP and other networks.
    Network,
    /// Signals and abstract sockets stay inside.
    Scopes,
    /// Unix sockets of others cannot be reached by path.
    UnixSockets,
    /// No file gets a set-user-ID or set-group-ID bit.
    SetIds,
    /// No inherited file descriptor beyond the standard three.
    Descriptors,
    /// Dangerous system calls are refused.
    Syscalls,
    /// A layer of a later release.
    #[serde(other)]
    Unknown,
}

/// State of a layer's enforcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything that the policy asks of the layer is enforced.
    Enforced,
    /// A part of it is enforced.
    Partial,
    /// Nothing of it is enforced.
    Absent,
}

impl LayerReport {
    pub(crate) fn enforced(layer: Layer) -> Self {
        Self { layer, state: State::Enforced, why: None }
    }

    pub(crate) fn enforced_by(layer: Layer, why: impl Into<String>) -> Self {
        Self { layer, state: State::Enforced, why: Some(why.into()) }
    }

    pub(crate) fn partial(layer: Layer, why: impl Into<String>) -> Self {
        Self { layer, state: State::Partial, why: Some(why.into()) }
    }

    pub(crate) fn absent(layer: Layer, why: impl Into<String>) -> Self {
        Self { layer, state: State::Absent, why: Some(why.into()) }
    }

    /// Returns an enforced layer, or a partly enforced layer if there are gaps.
    pub(crate) fn unless(layer: Layer, gaps: &[String]) -> Self {
        if gaps.is_empty() { Self::enforced(layer) } else { Self::partial(layer, gaps.join("; ")) }
    }
}

impl Report {
    /// Returns the state of one layer.
    pub fn state(&self, layer: Layer) -> Option<State> {
        self.layers.iter().find(|entry| entry.layer == layer).map(|entry| entry.state)
    }

    /// Returns true if every layer that the policy asks for is enforced.
    pub fn is_whole(&self) -> bool {
        self.lacking().next().is_none()
    }

    /// Returns the layers that are not fully enforced.
    pub fn lacking(&self) -> impl Iterator<Item = &LayerReport> {
        self.layers.iter().filter(|entry| matches!(entry.state, State::Partial | State::Absent))
    }

    /// Returns a line for a status column, such as `default abi 7; partial: uid; absent: cgroup`.
    pub fn summary(&self) -> String {
        let mut line = format!("{} abi {}", self.policy, self.landlock_abi);
        for (state, word) in [(State::Partial, "partial"), (State::Absent, "absent")] {
            let names: Vec<String> = self
                .layers
                .iter()
                .filter(|entry| entry.state == state)
                .map(|entry| entry.layer.to_string())
                .collect();
            if !names.is_empty() {
                line = format!("{line}; {word}: {}", names.join(", "));
            }
        }
        line
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "policy {} (landlock abi {})", self.policy, self.landlock_abi)?;
        for entry in &self.layers {
            write!(f, "  {:<13} {}", entry.layer.to_string(), entry.state)?;
            match &entry.why {
                Some(why) => writeln!(f, " ({why})")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cgroup => "cgroup",
            Self::Session => "session",
            Self::Mounts => "mounts",
            Self::Limits => "limits",
            Self::Uid => "uid",
            Self::Capabilities => "capabilities",
            Self::ParentDeath => "parent_death",
            Self::NoNewPrivs => "no_new_privs",
            Self::Files => "files",
            Self::Network => "network",
            Self::Scopes => "scopes",
            Self::UnixSockets => "unix_sockets",
            Self::SetIds => "set_ids",
            Self::Descriptors => "descriptors",
            Self::Syscalls => "syscalls",
            Self::Unknown => "unknown",
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Enforced => "enforced",
            Self::Partial => "partial",
            Self::Absent => "absent",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            policy: "default".into(),
            landlock_abi: 7,
            layers: vec![
                LayerReport::absent(Layer::Cgroup, "none given"),
                LayerReport::enforced(Layer::Session),
                LayerReport::partial(Layer::Uid, "shared"),
            ],
        }
    }

    #[test]
    fn the_summary_names_only_what_is_missing() {
        assert_eq!(report().summary(), "default abi 7; partial: uid; absent: cgroup");
    }

    #[test]
    fn a_report_is_whole_where_nothing_is_missing() {
        assert!(!report().is_whole());
        for missing in
            [LayerReport::absent(Layer::Cgroup, "none"), LayerReport::partial(Layer::Uid, "shared")]
        {
            assert!(!Report { layers: vec![missing], ..report() }.is_whole());
        }
        let whole = Report { layers: vec![LayerReport::enforced_by(Layer::Uid, "1001")], ..report() };
        assert!(whole.is_whole());
    }

    #[test]
    fn the_page_gives_a_line_to_each_layer() {
        insta::assert_snapshot!(report().to_string(), @r"
        policy default (landlock abi 7)
          cgroup        absent (none given)
          session       enforced
          uid           partial (shared)
        ");
    }

    #[test]
    fn a_report_survives_json_and_unknown_layers() {
        let text = serde_json::to_string(&report()).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
        let later =
            r#"{"policy":"p","landlock_abi":11,"new":1,"layers":[{"layer":"telepathy","state":"enforced"}]}"#;
        assert_eq!(serde_json::from_str::<Report>(later).unwrap().layers[0].layer, Layer::Unknown);
    }

    #[test]
    fn each_layer_has_one_name_and_a_row_in_the_manual() {
        let schema = schemars::schema_for!(Layer);
        let names = schema.as_value()["oneOf"].as_array().unwrap().iter().map(|one| &one["const"]);
        let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
        assert!(names.len() > 10 && names.contains(&"syscalls"), "{names:?}");
        let manual = include_str!("../../docs/policies.md").lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<&str> = manual.filter_map(|line| line.split(" | ").next()).collect();
        for name in names {
            let layer: Layer = serde_json::from_value(name.into()).unwrap();
            assert_eq!(layer.to_string(), name);
            let quoted = format!("`{name}`");
            let is_known = layer == Layer::Unknown || rows.iter().any(|row| row.contains(&quoted));
            assert!(is_known, "the table of docs/policies.md has no row for {name}");
        }
    }
}
