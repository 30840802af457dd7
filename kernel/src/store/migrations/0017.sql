-- What went through the proxy of a run so far, with the hosts.
CREATE TABLE run_egress (
    run_id INTEGER PRIMARY KEY REFERENCES task_runs (id) ON DELETE CASCADE,
    egress TEXT NOT NULL CHECK (json_valid(egress))
) STRICT;

-- What the runs of a tenant, a profile and an account have used on each calendar day of the host. `more` says how often a person has
-- granted as much again on that day.
CREATE TABLE day_usage (
    scope TEXT NOT NULL CHECK (scope IN ('tenant', 'profile', 'account')),
    name TEXT NOT NULL CHECK (name <> ''),
    day TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0 CHECK (requests >= 0),
    bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
    more INTEGER NOT NULL DEFAULT 0 CHECK (more >= 0),
    PRIMARY KEY (scope, name, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX day_usage_day ON day_usage (day);

-- A tenant or an account that has used up its budget of a day keeps its tasks from starting until the next one.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''limit'')', '''limit'', ''budget'')')
    WHERE type = 'table' AND name = 'holds';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
