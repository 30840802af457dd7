//! Directories of schedules and plugins, and private directories of the programs that the daemon runs beside its
//! workers.

use std::path::PathBuf;

use super::Root;

impl Root {
    pub fn schedules_dir(&self) -> PathBuf {
        self.config.join("schedules.d")
    }

    pub fn plugins_dir(&self) -> PathBuf {
        self.config.join("plugins.d")
    }

    /// Returns the private directory of a channel that runs a program. A channel has one delivery in progress at a
    /// time.
    pub fn channel_home(&self, channel: &str) -> PathBuf {
        self.state.join("homes").join(".notify").join(channel)
    }

    /// Returns the private directory of one call of a plugin. Concurrent calls have different slots.
    pub fn plugin_home(&self, slot: &str) -> PathBuf {
        self.state.join("homes").join(".plugins").join(slot)
    }
}
