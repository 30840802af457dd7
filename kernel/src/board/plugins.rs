//! The events of plugins: each plugin has a cursor in the log of the board, so what waits for it is the log itself.

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

/// How many characters of an error are kept.
const ERROR: usize = 500;

impl View<'_> {
    /// Returns how far the plugins have taken the events of the board, by name.
    pub fn plugin_cursors(&self) -> Result<Vec<PluginCursor>, Error> {
        self.tx.plugin_cursors()
    }
}

impl Board<'_> {
    /// Says which plugins take events: those of one that is new begin now, and the others that are not in `kept` are forgotten.
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

    /// Notes that a plugin has taken every event up to this one.
    pub fn plugin_handled(&mut self, plugin: &PluginName, through: EventId) -> Result<(), Error> {
        self.tx.advance_plugin(plugin, through).map(drop)
    }

    /// Keeps that a plugin did not take an event, and when it is tried next; without a time the plugin is paused.
    pub fn plugin_failed(
        &mut self,
        plugin: &PluginName,
        error: &str,
        next: Option<Timestamp>,
    ) -> Result<(), Error> {
        let error: String = error.chars().filter(|c| !c.is_control()).take(ERROR).collect();
        self.tx.fail_plugin(plugin, &error, next, self.now())
    }

    /// Lets a plugin that fails or is paused try at once, after leaving out what stands up to `past` where that is named.
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
