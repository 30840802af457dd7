-- What people send to the agents of live runs, and what becomes of it; and whether a run takes messages at all.
ALTER TABLE task_runs ADD COLUMN takes_messages INTEGER NOT NULL DEFAULT 0 CHECK (takes_messages IN (0, 1));
CREATE TABLE run_messages (
    run_id INTEGER NOT NULL REFERENCES task_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number > 0),
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    comment_id INTEGER,
    state TEXT NOT NULL CHECK (state IN ('queued', 'written', 'delivered', 'not_delivered')),
    reason TEXT CHECK ((reason IS NOT NULL) = (state = 'not_delivered')),
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_messages_task ON run_messages (task_id, run_id, number);
