//! All plugins: the directories with `plugins.d/*/plugin.toml`.

use std::path::{Path, PathBuf};

use kernel::PluginName;

use super::directory_check::{DirectoryUse, inspect};
use super::manifest::Plugin;
use super::parts::PluginTool;
use crate::config::definitions::{Defect, Definitions, FileDefinition, FileLimit, NamedFile, Subject};
use base::paths::Root;

/// Returns the directory of a plugin.
pub fn path_of(root: &Root, name: &PluginName) -> PathBuf {
    root.plugins_dir().join(name.as_str())
}

/// All plugins by name. They are never reloaded with a last good version: the program of a plugin whose files have
/// become defective has changed too.
pub type Plugins = Definitions<Plugin>;

/// Plugins that take events.
#[derive(Debug)]
pub struct Listening {
    /// Plugins that take at least one kind of event.
    pub listening: Vec<PluginName>,
    /// Plugins with unusable files, whose events are unknown.
    pub kept: Vec<PluginName>,
}

impl FileDefinition for Plugin {
    const SUBJECT: fn(String) -> Subject = Subject::Plugin;
    const MOST: Option<FileLimit> = Some(FileLimit { files: 100, noun: "plugins" });

    fn directory(root: &Root) -> PathBuf {
        root.plugins_dir()
    }

    fn file_of(entry: &Path) -> Option<NamedFile> {
        let name = entry.file_name()?.to_str()?.to_owned();
        let is_plugin = !name.starts_with('.') && entry.symlink_metadata().is_ok_and(|meta| !meta.is_file());
        is_plugin.then(|| NamedFile { name, path: entry.join("plugin.toml") })
    }

    fn check(_name: &str, path: &Path) -> Result<(), String> {
        inspect(directory_of(path), DirectoryUse::Installed).map_err(|unfit| unfit.to_string())
    }

    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        Plugin::parse(name, text, directory_of(path))
    }
}

/// Returns the directory of a plugin with this manifest.
fn directory_of(manifest: &Path) -> &Path {
    manifest.parent().unwrap_or(manifest)
}

impl Definitions<Plugin> {
    /// Returns the usable plugins.
    pub fn plugins(&self) -> impl Iterator<Item = &Plugin> {
        self.usable().map(|(_, plugin)| plugin)
    }

    /// Returns the tools of usable plugins.
    pub fn tools(&self) -> impl Iterator<Item = (&Plugin, &PluginTool)> {
        self.plugins().flat_map(|plugin| plugin.manifest.tools.iter().map(move |tool| (plugin, tool)))
    }

    /// Returns the plugins that take events. None if the directory cannot be listed, so that nothing is known.
    pub fn listening(&self) -> Option<Listening> {
        let of = |plugin: &&Plugin| !plugin.manifest.events.is_empty();
        let listening = self.plugins().filter(of).map(|plugin| plugin.name.clone()).collect();
        let kept = self.disabled().filter_map(|name| name.parse().ok()).collect();
        self.is_listed().then_some(Listening { listening, kept })
    }
}
