-- What each mission has used: a task that a person made, with all tasks that workers have made below it since. `more_*` say how
-- often a person has granted as much again. A row is made with the first task that a worker makes.
CREATE TABLE missions (
    name TEXT PRIMARY KEY,
    tasks INTEGER NOT NULL CHECK (tasks >= 0),
    runtime_us INTEGER NOT NULL CHECK (runtime_us >= 0),
    cost_micros INTEGER NOT NULL CHECK (cost_micros >= 0),
    more_tasks INTEGER NOT NULL DEFAULT 0 CHECK (more_tasks >= 0),
    more_runtime INTEGER NOT NULL DEFAULT 0 CHECK (more_runtime >= 0),
    more_cost INTEGER NOT NULL DEFAULT 0 CHECK (more_cost >= 0)
) STRICT, WITHOUT ROWID;

-- A mission that has used up what it may keeps its tasks from starting until a person says otherwise.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(replace(
    sql,
    '''login'')', '''login'', ''limit'')'),
    '''account'')', '''account'', ''mission'')'),
    'kind = ''manual'' OR until', 'kind IN (''manual'', ''limit'') OR until')
    WHERE type = 'table' AND name = 'holds';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
