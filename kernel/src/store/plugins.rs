//! Queries of the cursors of plugins: their positions in the event log, and their failures.

use rusqlite::{Row, params};

use super::statement::Statement as _;
use super::tx::Tx;
use super::unread::unread;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::id::{EventId, PluginName};
use crate::model::plugin::PluginCursor;

const COLUMNS: &str = "plugin, event_id, attempts, due_at, failing_since, paused_at, last_error";

fn read(row: &Row<'_>) -> rusqlite::Result<PluginCursor> {
    Ok(PluginCursor {
        plugin: row.get("plugin")?,
        event: row.get("event_id")?,
        attempts: row.get("attempts")?,
        due_at: row.get("due_at")?,
        failing_since: row.get("failing_since")?,
        paused_at: row.get("paused_at")?,
        last_error: row.get("last_error")?,
    })
}

impl Tx<'_> {
    pub(crate) fn plugin_cursors(&self) -> Result<Vec<PluginCursor>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM plugin_cursors ORDER BY plugin");
        self.conn.list("list the cursors of the plugins", &sql, [], read)
    }

    pub(super) fn unread_cursors(&self) -> Result<Vec<String>, Error> {
        unread(self.conn, "plugin_cursors", &format!("SELECT {COLUMNS} FROM plugin_cursors"), read)
    }

    pub(crate) fn plugin_cursor(&self, plugin: &PluginName) -> Result<Option<PluginCursor>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM plugin_cursors WHERE plugin = ?1");
        self.conn.find("read the cursor of the plugin", &sql, [plugin], read)
    }

    /// Inserts the cursor of a plugin at an event, after which its events start. Keeps an existing cursor.
    pub(crate) fn begin_plugin(&self, plugin: &PluginName, after: EventId) -> Result<(), Error> {
        let sql = "INSERT INTO plugin_cursors (plugin, event_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.conn.run("begin the events of the plugin", sql, params![plugin, after])
    }

    /// Moves the cursor of a plugin, never backward, and resets its failures. Returns false if the plugin has no
    /// cursor.
    pub(crate) fn advance_plugin(&self, plugin: &PluginName, through: EventId) -> Result<bool, Error> {
        let sql = "UPDATE plugin_cursors SET event_id = max(event_id, ?2), attempts = 0, due_at = 0, \
                   failing_since = NULL, paused_at = NULL, last_error = NULL WHERE plugin = ?1";
        self.conn.alter("move the cursor of the plugin", sql, params![plugin, through])
    }

    /// Stores a failed try. `next` is the time of the next try; without it, the plugin is paused.
    pub(crate) fn fail_plugin(
        &self,
        plugin: &PluginName,
        error: &str,
        next: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let sql = "UPDATE plugin_cursors SET attempts = attempts + 1, due_at = ?3, last_error = ?2, \
                   failing_since = ifnull(failing_since, ?4), \
                   paused_at = CASE WHEN ?5 THEN ifnull(paused_at, ?4) END WHERE plugin = ?1";
        let due = next.unwrap_or(now);
        self.conn.run("keep the failure of the plugin", sql, params![plugin, error, due, now, next.is_none()])
    }

    pub(crate) fn forget_plugin(&self, plugin: &PluginName) -> Result<(), Error> {
        self.conn.run("forget the plugin", "DELETE FROM plugin_cursors WHERE plugin = ?1", [plugin])
    }
}
