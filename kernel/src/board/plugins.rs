//! Events for plugins: each plugin has a cursor in the log of the board, and the log itself is its queue.
//!
//! See decision 0164.

use std::collections::BTreeSet;

use super::Board;
use crate::board::view::View;
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{EventId, PluginName};
use crate::model::missing::Missing;
use crate::model::plugin::PluginCursor;
use crate::rules::authority;

/// Longest stored error, in characters.
const ERROR: usize = 500;

impl View<'_> {
    /// Returns the positions of all plugins in the events of the board, by name.
    pub fn plugin_cursors(&self) -> Result<Vec<PluginCursor>, Error> {
        self.tx.plugin_cursors()
    }
}

impl Board<'_> {
    /// Sets the plugins that take events. A new plugin starts at the end of the log. Plugins that neither listen nor are
    /// in `kept` are forgotten.
    pub fn define_plugins(
        &mut self,
        listening: &BTreeSet<PluginName>,
        kept: &BTreeSet<PluginName>,
    ) -> Result<(), Error> {
        for gone in self.tx.plugin_cursors()? {
            if !listening.contains(&gone.plugin) && !kept.contains(&gone.plugin) {
                self.tx.forget_plugin(&gone.plugin)?;
            }
        }
        let last = self.tx.last_event()?;
        listening.iter().try_for_each(|plugin| self.tx.begin_plugin(plugin, last))
    }

    /// Records that a plugin has handled all events up to this one.
    pub fn plugin_handled(&mut self, plugin: &PluginName, through: EventId) -> Result<(), Error> {
        self.tx.advance_plugin(plugin, through).map(drop)
    }

    /// Records a failed try of a plugin, with the time of the next try; none pauses the plugin.
    pub fn plugin_failed(
        &mut self,
        plugin: &PluginName,
        error: &str,
        next: Option<Timestamp>,
    ) -> Result<(), Error> {
        let error: String = error.chars().filter(|c| !c.is_control()).take(ERROR).collect();
        self.tx.fail_plugin(plugin, &error, next, self.now())
    }

    /// Lets a failing or paused plugin try at once. If `past` is given, the events up to it are skipped.
    pub fn resume_plugin(
        &mut self,
        plugin: &PluginName,
        past: Option<EventId>,
        actor: &Actor,
    ) -> Result<PluginCursor, Error> {
        authority::person(actor, "resume a plugin")?;
        let cursor = self.tx.plugin_cursor(plugin)?;
        let cursor = cursor.ok_or_else(|| Error::missing(Missing::PluginEvents, plugin))?;
        let last = self.tx.last_event()?;
        self.tx.advance_plugin(plugin, past.unwrap_or(cursor.event).min(last))?;
        self.tx.plugin_cursor(plugin)?.ok_or_else(|| Error::missing(Missing::PluginEvents, plugin))
    }
}
