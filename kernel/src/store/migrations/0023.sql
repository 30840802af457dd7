-- Messages to people, from the transaction of their event until they are delivered or dropped. Their numbers are never given out twice:
-- receivers know a message that comes twice by its number. No reference to the task: a message outlives it.
CREATE TABLE notify_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    tenant TEXT NOT NULL DEFAULT '',
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL DEFAULT '',
    thread_id TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    notice TEXT NOT NULL CHECK (json_valid(notice)),
    -- How many events it stands for: those that found the queue of their task or their tenant full are counted here.
    events INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead')),
    -- The first of those that are sent as one digest.
    digest INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    failing_since INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX notify_outbox_groups ON notify_outbox (state, channel, chat_id, thread_id, tenant, id);
