-- When the request for an approval of a task is denied, where nobody has decided by then; and classes of one's own.
ALTER TABLE tasks ADD COLUMN approval_until INTEGER;
CREATE INDEX tasks_approval_until ON tasks (approval_until)
    WHERE status = 'blocked' AND block_kind = 'approval' AND approval_until IS NOT NULL;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
    sql, ' CHECK (approval_class IN (''spend'', ''book'', ''send_as_me'', ''destructive''))', '')
    WHERE type = 'table' AND name = 'tasks';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
