-- What the agent of a run says that it has used. `session_*` are the counters of its session as the agent reported them,
-- where it reports no others: the next run in that session is charged the difference.
CREATE TABLE run_usage (
    run_id INTEGER PRIMARY KEY REFERENCES task_runs (id) ON DELETE CASCADE,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    session TEXT,
    model TEXT,
    input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
    cached_tokens INTEGER NOT NULL CHECK (cached_tokens >= 0),
    output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
    cost_micros INTEGER CHECK (cost_micros >= 0),
    turns INTEGER CHECK (turns >= 0),
    denials INTEGER NOT NULL CHECK (denials >= 0),
    session_input INTEGER,
    session_cached INTEGER,
    session_output INTEGER
) STRICT;
CREATE INDEX run_usage_task ON run_usage (task_id, run_id);

-- A service that refuses a login keeps the tasks of its account from starting, as one that refuses more for a while does.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(replace(
    sql,
    'kind IN (''manual'', ''rate_limit'')', 'kind IN (''manual'', ''rate_limit'', ''login'')'),
    'kind <> ''rate_limit'' OR until IS NOT NULL', 'kind = ''manual'' OR until IS NOT NULL'),
    'probe_run IS NULL OR kind = ''rate_limit''', 'probe_run IS NULL OR kind <> ''manual''')
    WHERE type = 'table' AND name = 'holds';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
