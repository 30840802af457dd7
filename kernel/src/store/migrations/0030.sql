-- The latest message about a task at an address, as the service names it, so that a reply to it is known to be about the task.
CREATE TABLE chat_messages (
    task_id    TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    channel    TEXT NOT NULL,
    chat_id    TEXT NOT NULL,
    thread_id  TEXT NOT NULL,
    message_id TEXT NOT NULL,
    event_id   INTEGER NOT NULL,
    PRIMARY KEY (task_id, channel, chat_id, thread_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_messages_named ON chat_messages (channel, message_id);
-- The directory in which the tasks of a thread of a chat work.
CREATE TABLE chat_places (
    channel   TEXT NOT NULL,
    chat_id   TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    path      TEXT NOT NULL,
    bound_by  TEXT NOT NULL,
    bound_at  INTEGER NOT NULL,
    PRIMARY KEY (channel, chat_id, thread_id)
) STRICT, WITHOUT ROWID;
