//! Setting of a profile for the homes of its workers.

use serde::{Deserialize, Serialize};

/// Part of a worker's home that later runs find again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Home {
    /// The login that a person has got; nothing that a run does is kept
    #[default]
    Login,
    /// Everything that a run leaves; the next run has it
    Kept,
}
