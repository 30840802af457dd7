//! All plugins: the directories with `plugins.d/*/plugin.toml`.

use std::path::{Path, PathBuf};

use kernel::PluginName;

use super::directory_check::{DirectoryUse, inspect};
use super::manifest::Plugin;
use super::parts::PluginTool;
use crate::config::definitions::{self, Defect, Definitions, Lookup, Subject};
use base::paths::Root;

/// Limit on the plugins of a root.
const MOST: usize = 100;

/// Returns the directory of a plugin.
pub fn path_of(root: &Root, name: &PluginName) -> PathBuf {
    root.plugins_dir().join(name.as_str())
}

/// All plugins by name.
#[derive(Clone, Debug)]
pub struct Plugins {
    defined: Definitions<Plugin>,
    /// True if the directory could be listed.
    listed: bool,
}

/// Plugins that take events.
#[derive(Debug)]
pub struct Listening {
    /// Plugins that take at least one kind of event.
    pub listening: Vec<PluginName>,
    /// Plugins with unusable files, whose events are unknown.
    pub kept: Vec<PluginName>,
}

impl Plugins {
    /// Loads the plugins of the configuration. A plugin whose files have become defective is disabled and keeps no
    /// earlier version, because its program has changed too.
    pub fn load(root: &Root) -> Self {
        let mut defined = Definitions::builtin([]);
        let (mut count, dir) = (0, root.plugins_dir());
        let file_of = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let is_plugin =
                !name.starts_with('.') && path.symlink_metadata().is_ok_and(|meta| !meta.is_file());
            is_plugin.then(|| (name.to_owned(), path.join("plugin.toml")))
        };
        let listed = definitions::read_each(&dir, &file_of, Subject::Plugin, |name, path, text| {
            count += 1;
            let plugin_dir = dir.join(name);
            let defect = |why: String| Defect::new(Subject::Plugin(name.to_owned()), path, why);
            let read = if count > MOST {
                Err(defect(format!("there are more than {MOST} plugins")))
            } else {
                inspect(&plugin_dir, DirectoryUse::Installed)
                    .map_err(|unfit| defect(unfit.to_string()))
                    .and_then(|()| Plugin::parse(name, &text?, &plugin_dir))
            };
            defined.define(name, read);
        });
        let is_listed = listed.is_ok();
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        Plugins { defined, listed: is_listed }
    }

    pub fn find(&self, name: &str) -> Lookup<'_, Plugin> {
        self.defined.find(name)
    }

    /// Returns all names, including names of unusable plugins.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    /// Returns the usable plugins.
    pub fn usable(&self) -> impl Iterator<Item = &Plugin> {
        self.defined.usable().map(|(_, plugin)| plugin)
    }

    /// Returns the tools of usable plugins.
    pub fn tools(&self) -> impl Iterator<Item = (&Plugin, &PluginTool)> {
        self.usable().flat_map(|plugin| plugin.manifest.tools.iter().map(move |tool| (plugin, tool)))
    }

    pub fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }

    /// Returns the plugins that take events. None if the directory cannot be listed, so that nothing is known.
    pub fn listening(&self) -> Option<Listening> {
        let of = |plugin: &&Plugin| !plugin.manifest.events.is_empty();
        let listening = self.usable().filter(of).map(|plugin| plugin.name.clone()).collect();
        let disabled = self.names().filter(|name| matches!(self.find(name), Lookup::Disabled(_)));
        let disabled_names = disabled.filter_map(|name| name.parse().ok()).collect();
        self.listed.then_some(Listening { listening, kept: disabled_names })
    }
}
