//! `plugin resume`: sends events again to a plugin that is paused or failed.

use kernel::{EventFilter, PluginCursor, PluginName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unknown;
use api::{Call, Verb, verb};
use base::failure::Failure;
use setup::config::definitions::Lookup;

/// Resume the events of a plugin
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(
    about = "Resume a plugin that was paused after repeated failures",
    after_help = "\
Examples:
  supervisor plugin resume diary
  supervisor plugin resume diary --skip"
)]
pub struct ResumePlugin {
    /// The plugin.
    pub name: PluginName,
    /// True if the event that it could not take is left out.
    #[arg(long, help = "Skip the event that it failed to handle")]
    #[serde(default)]
    pub skip: bool,
}

impl Verb for ResumePlugin {
    verb! { "resume-plugin": Operator, Write => PluginCursor }

    async fn run(self, call: Call) -> Result<PluginCursor, Failure> {
        let plugins = call.service.plugins();
        let kinds: Vec<String> = match plugins.find(self.name.as_str()) {
            Lookup::Usable(plugin) => plugin.manifest.kinds().into_iter().collect(),
            Lookup::Disabled(_) => Vec::new(),
            Lookup::Absent => return Err(unknown(&call.service, &self.name)),
        };
        let resumed = call
            .write(move |board, actor| {
                let cursors = board.plugin_cursors()?;
                let cursor = cursors.iter().find(|cursor| cursor.plugin == self.name);
                let past = match cursor.filter(|cursor| self.skip && cursor.attempts > 0) {
                    Some(cursor) => {
                        let filter =
                            EventFilter { since: cursor.event, limit: 1, kinds, ..EventFilter::default() };
                        board.events(&filter)?.first().map(|event| event.id)
                    }
                    None => None,
                };
                board.resume_plugin(&self.name, past, actor)
            })
            .await?;
        call.service.news().notify_one();
        Ok(resumed)
    }
}
