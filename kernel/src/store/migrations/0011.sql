-- What proves the work on a task done; how often in a row it did not; and the run whose work waits for it.
ALTER TABLE tasks ADD COLUMN check_command TEXT;
ALTER TABLE tasks ADD COLUMN max_checks INTEGER CHECK (max_checks > 0);
ALTER TABLE tasks ADD COLUMN failed_checks INTEGER NOT NULL DEFAULT 0 CHECK (failed_checks >= 0);
ALTER TABLE tasks ADD COLUMN unchecked_run INTEGER;
CREATE INDEX tasks_check ON tasks (tenant, priority DESC, created_at, id)
    WHERE status = 'review' AND unchecked_run IS NOT NULL;

-- A check is a run, with two outcomes of its own.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(
    sql,
    'purpose IN (''work'', ''review'')', 'purpose IN (''work'', ''review'', ''check'')'),
    '''approved'', ''changes_requested'', ''cancelled''',
    '''approved'', ''changes_requested'', ''check_passed'', ''check_failed'', ''cancelled''')
    WHERE type = 'table' AND name = 'task_runs';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
