//! Plugins as the directories `plugins.d/NAME/` define them, one directory a plugin. `delivery::plugins` runs them.
//!
//! See decision 0164.

mod directory_check;
mod manifest;
mod names;
mod parts;
mod registry;
mod template;

pub use self::directory_check::{DirectoryUse, STATE, inspect, walk};
pub use self::manifest::{Manifest, Plugin, VERSION};
pub use self::parts::{PluginSection, PluginTool};
pub use self::registry::{Listening, Plugins, path_of};
pub use self::template::{Language, create};
