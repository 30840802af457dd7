-- The pools of which each run of a task takes a place, as a JSON list. Tasks that name the same pools are a line of their own: what keeps
-- the first of them from starting may keep all of them. The line of no task changes here, so its index and its heads stay as they are.
ALTER TABLE tasks ADD COLUMN pools TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(pools));
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
    sql,
    'THEN workspace ELSE '''' END)',
    'THEN workspace ELSE '''' END || CASE pools WHEN ''[]'' THEN '''' ELSE '' '' || pools END)')
    WHERE type = 'table' AND name = 'tasks';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
