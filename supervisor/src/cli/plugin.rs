//! `plugin` at the command line: manages plugins. This process writes their directories with the rights of its user.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use kernel::PluginName;
use serde::Serialize;

use super::call;
use crate::client::Client;
use crate::output::Output;
use api::blocking;
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::choose::confirm;
use base::terminal::printable;
use delivery::plugins::{Staged, uninstall};
use setup::automation::plugins::{Language, Plugin, create, path_of};
use setup::config::settings;
use verbs::{CheckPlugin, ListPlugins, Reload, ResumePlugin};

/// Write a working example plugin, and a test for it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor plugin create diary
  supervisor plugin create diary --language python --directory ~/src")]
pub(super) struct Create {
    /// Its name
    name: PluginName,
    /// The language it is written in
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t)]
    language: Language,
    /// The directory above its own [default: the current directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Test a plugin step by step with sample input, in a temporary copy
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code: 0 if each step worked, else 1. What a reply asks for is looked at and
not done.

Examples:
  supervisor plugin check ./diary
  supervisor plugin check diary --json")]
pub(super) struct Check {
    /// A plugin that is installed, or a path such as ./diary
    plugin: String,
}

/// Install a plugin from a directory, after showing what it may do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor plugin install ./diary
  supervisor plugin install ./diary --yes --force")]
pub(super) struct Install {
    /// Its directory
    path: PathBuf,
    /// Its name [default: the name of the directory]
    #[arg(long, value_name = "NAME")]
    name: Option<PluginName>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Replace a plugin of that name; its state stays
    #[arg(long)]
    force: bool,
}

/// Remove a plugin with its state
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor plugin uninstall diary")]
pub(super) struct Uninstall {
    /// The plugin
    name: PluginName,
}

/// Result of a change of a plugin's directory.
#[derive(Debug, Serialize)]
struct ChangedPlugin {
    name: PluginName,
    path: PathBuf,
}

pub(super) fn create_new(_: &Client, new: Create, output: Output) -> Result<u8, Failure> {
    let Create { name, language, directory } = new;
    let parent = directory.unwrap_or_else(|| PathBuf::from("."));
    let path = create(&parent, &name, language)?;
    let next = format!("check it with: supervisor plugin check {}", shown(&path));
    print_change(output, "Created", &ChangedPlugin { name, path }, Some(&cli_context::repeated(&next)))
}

pub(super) async fn check(client: &Client, Check { plugin }: Check, output: Output) -> Result<u8, Failure> {
    call(client, to_check(&plugin)?, output).await.map_err(|refusal| beside(refusal, &plugin))
}

pub(super) async fn install(client: &Client, install: Install, output: Output) -> Result<u8, Failure> {
    let Install { path, name, yes, force } = install;
    let name = named(&path, name)?;
    refuse_present(client, &name, force)?;
    let (root, copied, from) = (client.root().clone(), name.clone(), path.clone());
    let stage = move || Staged::copy(&root, &copied, &from);
    let staged = blocking("the plugin was not copied", stage).await??;
    let read = read(&staged, &name, &path)?;
    let read = Plugin { dir: path_of(client.root(), &name), ..read };
    if !yes && !agreed(&read, output)? {
        return Err(Failure::usage("nothing was installed"));
    }
    let path = blocking("the plugin was not installed", move || staged.install()).await??;
    require_used(client, &name).await?;
    print_change(output, "Installed", &ChangedPlugin { name, path }, None)
}

pub(super) async fn resume(
    client: &Client,
    ResumePlugin { name, skip }: ResumePlugin,
    output: Output,
) -> Result<u8, Failure> {
    let cursor = client.call(&ResumePlugin { name, skip }).await?;
    if output.json() {
        output.value(&cursor)?;
    } else {
        output.text(&format!("Resumed {}  after event {}\n", cursor.plugin, cursor.event))?;
    }
    Ok(0)
}

pub(super) async fn remove(
    client: &Client,
    Uninstall { name }: Uninstall,
    output: Output,
) -> Result<u8, Failure> {
    let (root, removed) = (client.root().clone(), name.clone());
    let path = blocking("the plugin was not removed", move || uninstall(&root, &removed)).await??;
    client.call(&Reload::default()).await?;
    print_change(output, "Uninstalled", &ChangedPlugin { name, path }, None)
}

/// Adds a hint to an error about a plugin that is not installed, if its name looks like a directory.
fn beside(refusal: Failure, plugin: &str) -> Failure {
    if refusal.code != Code::NotFound || plugin.contains('/') || !Path::new(plugin).is_dir() {
        return refusal;
    }
    refusal.hint(format!("for the directory: supervisor plugin check ./{plugin}"))
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string()).clone()
}

fn print_change(
    output: Output,
    done: &str,
    changed: &ChangedPlugin,
    next: Option<&str>,
) -> Result<u8, Failure> {
    if output.json() {
        output.value(changed)?;
        return Ok(0);
    }
    let next = next.map(|next| format!("{next}\n")).unwrap_or_default();
    output.text(&format!("{done} {}  {}\n{next}", changed.name, shown(&changed.path)))?;
    Ok(0)
}

/// Returns the source that a word names: a word with a slash is a path.
fn to_check(plugin: &str) -> Result<CheckPlugin, Failure> {
    if plugin.contains('/') || plugin.starts_with('.') {
        let path =
            std::path::absolute(plugin).map_err(|e| Failure::file("resolve", Path::new(plugin), &e))?;
        return Ok(CheckPlugin { name: None, path: Some(path) });
    }
    let name: PluginName = plugin.parse().map_err(|e| Failure::usage(format!("{e}")))?;
    Ok(CheckPlugin { name: Some(name), path: None })
}

/// Returns the name of a plugin to install.
fn named(dir: &Path, name: Option<PluginName>) -> Result<PluginName, Failure> {
    let whole = std::path::absolute(dir).map_err(|e| Failure::file("resolve", dir, &e))?;
    let of_dir = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.map_or_else(|| of_dir.parse(), Ok).map_err(|e: kernel::ParseError| {
        Failure::usage(format!("the name of the plugin: {e}")).hint("give it another one with --name")
    })
}

/// Reads the `plugin.toml` of the copy of a directory.
fn read(staged: &Staged, name: &PluginName, from: &Path) -> Result<Plugin, Failure> {
    let text = settings::read(&staged.place().join("plugin.toml"));
    let text = text.map_err(|e| Failure::file("read", &from.join("plugin.toml"), &e))?;
    Plugin::parse(name.as_str(), &text, from).map_err(|defect| {
        Failure::usage(defect.to_string())
            .hint("`supervisor help docs/plugins.md` describes the file; nothing was installed")
    })
}

fn refuse_present(client: &Client, name: &PluginName, force: bool) -> Result<(), Failure> {
    let path = path_of(client.root(), name);
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::new(Code::Conflict, format!("{} exists already", path.display()))
        .hint("replace it with --force; its state stays"))
}

/// Shows the rights of a plugin, and asks for confirmation.
fn agreed(plugin: &Plugin, output: Output) -> Result<bool, Failure> {
    if output.json() || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::usage("`plugin install` asks first, and this is not a terminal")
            .hint("look at its plugin.toml, and give --yes"));
    }
    let failed = |e: std::io::Error| Failure::failed(format!("failed to ask: {e}"));
    confirm(&format!("{}Install it?", rights(plugin))).map_err(failed)
}

/// Returns the rights of a plugin.
fn rights(plugin: &Plugin) -> String {
    let manifest = &plugin.manifest;
    let listed = |words: Vec<String>| if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    let lines = [
        ("for", manifest.description.clone()),
        ("runs", plugin.command().join(" ")),
        ("policy", manifest.policy.clone()),
        ("gets", listed(manifest.kinds().into_iter().collect())),
        ("adds", listed(adds(plugin))),
        ("may ask for", listed(manifest.requests.iter().cloned().collect())),
    ];
    let line = |(name, text): &(&str, String)| format!("  {name:<12}{}\n", printable(text));
    format!("The plugin {}\n{}", plugin.name, lines.iter().map(line).collect::<String>())
}

/// Returns the commands and tools that a plugin adds.
fn adds(plugin: &Plugin) -> Vec<String> {
    let verbs = plugin.manifest.verbs.iter().map(|verb| format!("supervisor {} {}", plugin.name, verb.name));
    let tools = plugin.manifest.tools.iter().map(|tool| {
        let callers = if tool.workers { "of workers" } else { "of operators" };
        format!("{} {callers}", plugin.tool_name(tool))
    });
    let sections =
        plugin.manifest.prompt.iter().map(|section| format!("the section `{}` of workers", section.title));
    let sinks = plugin.manifest.sinks.iter().map(|sink| format!("the sink {}.{}", plugin.name, sink.name));
    verbs.chain(tools).chain(sections).chain(sinks).collect()
}

/// Makes the daemon read the plugins again. Fails with the reason if the daemon does not run a new plugin.
async fn require_used(client: &Client, name: &PluginName) -> Result<(), Failure> {
    client.call(&Reload::default()).await?;
    let listed = client.call(&ListPlugins { name: Some(name.clone()) }).await?;
    match listed.into_iter().find_map(|line| line.defect) {
        None => Ok(()),
        Some(defect) => {
            Err(Failure::new(Code::Conflict, format!("it is installed, and cannot be run: {defect}"))
                .hint(format!("supervisor plugin check {name}")))
        }
    }
}
