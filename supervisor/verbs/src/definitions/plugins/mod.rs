//! `plugins`: lists the plugins, their rights and their positions in the event log. `supervisor plugin` sends it.

mod call;
mod check;
mod resume;

use std::path::PathBuf;

use kernel::{PluginCursor, PluginName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::call::{CallPlugin, CallPluginTool};
pub use self::check::CheckPlugin;
pub use self::resume::ResumePlugin;
use api::command::Command;
use api::{Call, Verb, verb};
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Cell, Screen, printable};
use base::time::timestamp;
use service::Service;
use setup::automation::plugins::Manifest;
use setup::config::definitions::Lookup;

/// List the plugins: their events, what they may request, and the state of delivery
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List the plugins, and the state of their events",
    after_help = "\
Examples:
  supervisor plugin list
  supervisor plugin list --json"
)]
pub struct ListPlugins {
    /// Only this one.
    #[arg(skip)]
    pub name: Option<PluginName>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PluginLine {
    pub name: String,
    pub path: PathBuf,
    /// Reason why the plugin is disabled; none if it is not.
    pub defect: Option<String>,
    /// Contents of its `plugin.toml`.
    pub manifest: Option<Manifest>,
    /// The last event of the board that it has handled, with its state.
    pub cursor: Option<PluginCursor>,
}

impl Verb for ListPlugins {
    verb! { "plugins": Operator, Read => Vec<PluginLine> }

    async fn run(self, call: Call) -> Result<Vec<PluginLine>, Failure> {
        let cursors = call.read(|view| view.plugin_cursors()).await?;
        let (service, plugins) = (&call.service, call.service.plugins());
        if let Some(name) = self.name.as_ref().filter(|name| plugins.names().all(|one| one != name.as_str()))
        {
            return Err(unknown(service, name));
        }
        let asked = |name: &&str| self.name.as_ref().is_none_or(|only| only.as_str() == *name);
        let line = |name: &str| {
            let cursor = cursors.iter().find(|cursor| cursor.plugin.as_str() == name).cloned();
            let (manifest, defect) = match plugins.find(name) {
                Lookup::Usable(plugin) => (Some(plugin.manifest.clone()), None),
                Lookup::Disabled(defect) => (None, Some(defect.to_string())),
                Lookup::Absent => (None, None),
            };
            let path = service.root().plugins_dir().join(name);
            PluginLine { name: name.to_owned(), path, defect, manifest, cursor }
        };
        Ok(plugins.names().filter(asked).map(line).collect())
    }
}

/// The error for a name that no plugin has.
pub(super) fn unknown(service: &Service, name: &PluginName) -> Failure {
    let plugins = service.plugins();
    let known: Vec<&str> = plugins.names().collect();
    let hint = if known.is_empty() {
        "no plugin is installed: supervisor plugin install DIRECTORY".to_owned()
    } else {
        format!("the plugins are: {}", known.join(", "))
    };
    Failure::new(Code::NotFound, format!("there is no plugin `{name}`")).hint(hint)
}

impl Command for ListPlugins {
    fn show(reply: &Vec<PluginLine>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line(cli_context::repeated("No plugins. Begin one with: supervisor plugin create NAME"));
            return;
        }
        let rows = reply.iter().map(|line| {
            let manifest = line.manifest.as_ref();
            let kinds = manifest.map(|manifest| manifest.kinds().into_iter().collect::<Vec<_>>().join(", "));
            let description = manifest.map(|manifest| printable(&manifest.description).clone());
            [
                Cell::from(line.name.clone()),
                Cell::from(state(line)),
                Cell::or_dash(kinds.filter(|kinds| !kinds.is_empty())),
                Cell::or_dash(description.filter(|text| !text.is_empty())),
            ]
        });
        screen.table(["NAME", "STATE", "EVENTS", "FOR"], rows);
        for line in reply {
            let why = line.cursor.as_ref().and_then(|cursor| cursor.last_error.as_ref());
            for text in line.defect.iter().chain(why) {
                screen.hanging(&format!("{}: ", printable(&line.name)), &printable(text));
            }
        }
    }
}

/// State of the plugin, in a few words.
fn state(line: &PluginLine) -> String {
    match &line.cursor {
        _ if line.defect.is_some() => "disabled".to_owned(),
        Some(PluginCursor { paused_at: Some(since), .. }) => {
            format!("paused since {}", timestamp::local(*since))
        }
        Some(PluginCursor { attempts, .. }) if *attempts > 0 => format!("failed {attempts} times"),
        Some(_) | None => "ok".to_owned(),
    }
}
