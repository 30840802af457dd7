//! `plugin check`: calls a plugin with sample input and reports the result of each step.

use std::path::PathBuf;
use std::time::Duration;

use kernel::PluginName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unknown;
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, printable};
use delivery::plugins::{CheckedPlugin, check};
use setup::automation::plugins::{DirectoryUse, path_of};

/// Test a plugin with sample input, in a temporary copy
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckPlugin {
    /// A plugin that is installed.
    pub name: Option<PluginName>,
    /// The directory of a plugin that is not installed.
    pub path: Option<PathBuf>,
}

impl Verb for CheckPlugin {
    verb! {
        "check-plugin": Operator, Read,
        on(None),
        // The request names a directory of the host.
        no_sessions
        => CheckedPlugin
    }

    fn answered_within(&self) -> Duration {
        Duration::from_hours(1)
    }

    async fn run(self, call: Call) -> Result<CheckedPlugin, Failure> {
        let (dir, directory_use) = match (&self.name, self.path) {
            (Some(name), None) => (path_of(call.service.root(), name), DirectoryUse::Installed),
            (None, Some(path)) if path.is_absolute() => (path, DirectoryUse::Offered),
            (_, _) => {
                return Err(Failure::usage(
                    "name a plugin that is installed, or the whole path of a directory",
                )
                .hint("give either `name` or `path`"));
            }
        };
        if let Some(name) = self.name.filter(|_| dir.symlink_metadata().is_err()) {
            return Err(unknown(&call.service, &name));
        }
        Ok(check(&call.service, &dir, directory_use).await)
    }
}

impl Command for CheckPlugin {
    fn show(reply: &CheckedPlugin, screen: &mut Screen) {
        for step in &reply.steps {
            let mark = if step.ok { "ok    " } else { "failed" };
            screen.line(format!("{mark}  {:<17}  {}", printable(&step.name), printable(&step.detail)));
        }
        let end = if reply.ok { "works" } else { "does not work" };
        screen.line(format!("The plugin {} {end}.", printable(&reply.plugin)));
    }

    fn verdict(reply: &CheckedPlugin) -> u8 {
        if reply.ok { 0 } else { Code::Failed.exit() }
    }
}
