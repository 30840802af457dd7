//! Where the files are of what comes by itself, and where the programs work that the daemon runs beside its workers.

use std::path::PathBuf;

use super::Root;

impl Root {
    /// The directory of schedules.
    pub(crate) fn schedules_dir(&self) -> PathBuf {
        self.config.join("schedules.d")
    }

    /// The directory of plugins.
    pub(crate) fn plugins_dir(&self) -> PathBuf {
        self.config.join("plugins.d")
    }

    /// The private directory of a channel that runs a program. One delivery of a channel is under way at a time.
    pub(crate) fn channel_home(&self, channel: &str) -> PathBuf {
        self.state.join("homes").join(".notify").join(channel)
    }

    /// The private directory of one call of a plugin. Calls that are under way at the same time have different slots.
    pub(crate) fn plugin_home(&self, slot: &str) -> PathBuf {
        self.state.join("homes").join(".plugins").join(slot)
    }
}
