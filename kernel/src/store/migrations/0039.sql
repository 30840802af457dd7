-- Whether a person cancelled a task was read from the reason of its block, which a worker writes as well.
ALTER TABLE tasks ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1));
UPDATE tasks SET cancelled = 1 WHERE status = 'blocked' AND substr(block_reason, 1, 13) = 'cancelled by ';
