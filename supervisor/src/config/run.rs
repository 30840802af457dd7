//! `[run]`: what `supervisor run` creates.

use kernel::Profile;
use serde::Deserialize;

/// What `supervisor run` creates where its flags say nothing. The command line reads it each time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunConfig {
    pub(crate) assignee: Profile,
}

impl Default for RunConfig {
    fn default() -> Self {
        let shell = "shell".parse().unwrap_or_else(|_| unreachable!("a literal name parses"));
        RunConfig { assignee: shell }
    }
}
