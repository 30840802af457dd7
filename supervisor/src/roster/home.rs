//! What a profile says of the homes of its workers.

use serde::{Deserialize, Serialize};

/// What is kept of the homes of a profile's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Home {
    /// The login that a person has got; nothing that a run does is kept
    #[default]
    Login,
    /// What a run leaves as well: the next one has it
    Kept,
}
