-- Tasks whose results are proposals for another task: the kind, the task that it is for, and the profiles that it may name, as JSON.
CREATE TABLE proposals (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    staff TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX proposals_subject ON proposals (subject);
-- Those that nobody is assigned to are looked for whenever something has changed.
CREATE INDEX tasks_unassigned ON tasks (created_at) WHERE status = 'ready' AND assignee IS NULL;
