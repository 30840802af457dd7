//! The plugins that there are: those of `plugins.d/*/plugin.toml`.

use std::path::{Path, PathBuf};

use kernel::PluginName;

use super::ground::{Ground, inspect};
use super::manifest::Plugin;
use super::parts::PluginTool;
use crate::config::definitions::{self, Defect, Definitions, Found, Subject};
use crate::paths::Root;

/// How many plugins a root may have.
const MOST: usize = 100;

/// The directory of a plugin.
pub(crate) fn path_of(root: &Root, name: &PluginName) -> PathBuf {
    root.plugins_dir().join(name.as_str())
}

/// All plugins, by name.
#[derive(Clone, Debug)]
pub(crate) struct Plugins {
    defined: Definitions<Plugin>,
    /// Whether the directory could be listed.
    listed: bool,
}

/// Which plugins take events.
pub(crate) struct Listening {
    /// Those that take some.
    pub(crate) listening: Vec<PluginName>,
    /// Those of which it is not known, because their files cannot be used.
    pub(crate) kept: Vec<PluginName>,
}

impl Plugins {
    /// Reads those of the configuration. One whose files have become defective is disabled, and none is kept as it was: its program is
    /// not what was read before either.
    pub(crate) fn load(root: &Root) -> Self {
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
            let own = dir.join(name);
            let defect = |why: String| Defect::new(Subject::Plugin(name.to_owned()), path, why);
            let read = if count > MOST {
                Err(defect(format!("there are more than {MOST} plugins")))
            } else {
                inspect(&own, Ground::Installed)
                    .map_err(|unfit| defect(unfit.to_string()))
                    .and_then(|()| Plugin::parse(name, &text?, &own))
            };
            defined.define(name, read);
        });
        let is_listed = listed.is_ok();
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        Plugins { defined, listed: is_listed }
    }

    pub(crate) fn find(&self, name: &str) -> Found<'_, Plugin> {
        self.defined.find(name)
    }

    /// The names of all, also of those that cannot be used.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    /// Those that can be used.
    pub(crate) fn usable(&self) -> impl Iterator<Item = &Plugin> {
        self.defined.usable().map(|(_, plugin)| plugin)
    }

    /// The tools of those that can be used.
    pub(crate) fn tools(&self) -> impl Iterator<Item = (&Plugin, &PluginTool)> {
        self.usable().flat_map(|plugin| plugin.manifest.tools.iter().map(move |tool| (plugin, tool)))
    }

    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }

    /// Which of them take events. None where the directory cannot be listed, so that nothing is known.
    pub(crate) fn listening(&self) -> Option<Listening> {
        let of = |plugin: &&Plugin| !plugin.manifest.events.is_empty();
        let listening = self.usable().filter(of).map(|plugin| plugin.name.clone()).collect();
        let disabled = self.names().filter(|name| matches!(self.find(name), Found::Disabled(_)));
        let kept = disabled.filter_map(|name| name.parse().ok()).collect();
        self.listed.then_some(Listening { listening, kept })
    }
}
