//! `supervisor PLUGIN VERB …`: looks for an unknown first word among the plugins.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::{Error, ErrorKind};
use kernel::PluginName;

use super::arguments::{Global, global};
use super::{CommandLine, call, compat, finish};
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;
use setup::automation::plugins::path_of;
use setup::config::definitions::Lookup;
use verbs::CallPlugin;

/// A call of a plugin's verb.
#[derive(Debug)]
pub(super) struct Extension {
    global: Global,
    plugin: PluginName,
    /// The verb and its arguments, which the plugin interprets. Options of the supervisor stand before the plugin's
    /// name.
    words: Vec<String>,
}

/// Returns the plugin command of an unknown command line, if a plugin of this name is installed.
pub(super) fn meant(error: &Error, words: &[OsString]) -> Option<Extension> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let at = compat::first_verb(words);
    let plugin: PluginName = words.get(at)?.to_str()?.parse().ok()?;
    let matches = global().try_get_matches_from(words.get(..at)?).ok()?;
    let mut global = Global::from_arg_matches(&matches).ok()?;
    global.root = global.root.of_options_first(matches.value_source("root")).ok()?;
    let line = CommandLine { global, output: Output::new(false, base::terminal::Colour::Never) };
    let is_there = path_of(&line.chosen_root().ok()?, &plugin).symlink_metadata().is_ok();
    let words = words.get(at + 1..)?.iter().map(|word| word.to_str().map(str::to_owned));
    let words = words.collect::<Option<Vec<String>>>()?;
    is_there.then_some(Extension { global: line.global, plugin, words })
}

/// Calls the plugin's verb.
pub(super) fn run(asked: Extension) -> ExitCode {
    let output = Output::new(asked.global.json, asked.global.color);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    finish(runtime, output, carry_out(asked, output))
}

async fn carry_out(asked: Extension, output: Output) -> Result<u8, Failure> {
    let Extension { global, plugin, mut words } = asked;
    let line = CommandLine { global, output };
    if words.is_empty() || words[0].starts_with('-') {
        return help(&line, &plugin, output);
    }
    let verb = words.remove(0);
    call(&line.client()?, CallPlugin { plugin: plugin.to_string(), verb, arguments: words }, output).await
}

/// Lists the verbs of a plugin.
fn help(line: &CommandLine, name: &PluginName, output: Output) -> Result<u8, Failure> {
    let plugins = setup::automation::plugins::Plugins::load(&line.root()?);
    let plugin = match plugins.find(name.as_str()) {
        Lookup::Usable(plugin) => plugin,
        Lookup::Disabled(defect) => {
            return Err(Failure::new(Code::Conflict, format!("the plugin {name} is disabled: {defect}"))
                .hint(defect.hint()));
        }
        Lookup::Absent => return Err(Failure::new(Code::NotFound, format!("there is no plugin `{name}`"))),
    };
    if output.json() {
        output.value(&plugin.manifest.verbs)?;
        return Ok(0);
    }
    let mut text = format!("{}\n\n", printable(&plugin.manifest.description));
    for verb in &plugin.manifest.verbs {
        let about = printable(&verb.about);
        writeln!(text, "  supervisor {name} {:<16}  {about}", verb.name).unwrap_or_default();
    }
    if plugin.manifest.verbs.is_empty() {
        text.push_str("This plugin adds no commands.\n");
    }
    output.text(&text)?;
    Ok(0)
}
