//! `[run]`: defaults of `supervisor run`.

use kernel::Profile;
use serde::Deserialize;

/// Defaults of tasks that `supervisor run` creates. The command line reads them on each start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    pub assignee: Profile,
}

impl Default for RunConfig {
    fn default() -> Self {
        let shell = "shell".parse().unwrap_or_else(|_| unreachable!("a literal name parses"));
        RunConfig { assignee: shell }
    }
}
