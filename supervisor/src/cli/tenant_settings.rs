//! The settings of a tenant as flags of `tenant create` and `tenant edit`.

use std::path::PathBuf;

use kernel::{BoardName, Profile};

/// Settings in the file of a tenant.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct TenantSettings {
    /// The directory that its tasks may work in, beside scratch ones: `root` in its file
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    /// The Unix user that its directories belong to, and whom its workers in them are
    #[arg(long, value_name = "USER")]
    pub(super) unix_user: Option<String>,
    /// A Unix user who may see and direct its tasks (repeatable)
    #[arg(long = "member", value_name = "USER")]
    pub(super) members: Vec<String>,
    /// A Unix group whose members may do so (repeatable)
    #[arg(long = "group", value_name = "GROUP")]
    pub(super) groups: Vec<String>,
    /// A board that those users reach (repeatable) [default: default]
    #[arg(long = "on-board", value_name = "NAME")]
    pub(super) boards: Vec<BoardName>,
    /// At most this many of its workers at once
    #[arg(long, value_name = "N")]
    pub(super) max_running: Option<u32>,
    /// At most this many places of a pool: NAME=N (repeatable)
    #[arg(long = "pool", value_name = "NAME=N", value_parser = pair)]
    pub(super) pools: Vec<(String, String)>,
    /// End each of its runs after this time: seconds, or 30s, 5m, 2h, 1d
    #[arg(long, value_name = "DURATION")]
    pub(super) max_runtime: Option<String>,
    /// The policy of its tasks that name none
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<String>,
    /// The assignee of its tasks that name none: a profile or a lane
    #[arg(long, value_name = "NAME")]
    pub(super) assignee: Option<Profile>,
    /// A limit of its own: BOUND=N (repeatable)
    #[arg(long = "quota", value_name = "BOUND=N", value_parser = pair)]
    pub(super) quotas: Vec<(String, String)>,
    /// Budget of a day: AMOUNT=N (repeatable)
    #[arg(long = "budget", value_name = "AMOUNT=N", value_parser = pair)]
    pub(super) budget: Vec<(String, String)>,
}

/// Splits a text at `=` into a name and a value.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        Some(_) | None => Err("write NAME=VALUE".to_owned()),
    }
}
