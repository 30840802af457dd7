//! Plugins as the directories `plugins.d/NAME/` define them, one directory a plugin. `crate::plugins` runs them.

mod ground;
mod manifest;
mod names;
mod parts;
mod registry;
mod template;

pub(crate) use self::ground::{Ground, STATE, inspect, walk};
pub(crate) use self::manifest::{Manifest, Plugin, VERSION};
pub(crate) use self::parts::{PluginSection, PluginTool};
pub(crate) use self::registry::{Listening, Plugins, path_of};
pub(crate) use self::template::{Language, create};
