-- How far each plugin has taken the events of the board, and what became of its latest try.
CREATE TABLE plugin_cursors (
    plugin TEXT NOT NULL PRIMARY KEY,
    event_id INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    paused_at INTEGER,
    last_error TEXT
) STRICT;
