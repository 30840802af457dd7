-- The pauses before another try, on the clock since boot beside the moment that the task has.
CREATE TABLE delays (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    not_before INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    due_boottime_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX delays_due ON delays (boot_id, due_boottime_us);
