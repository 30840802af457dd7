-- The ledger: what was used on each calendar day of the host, by what pays for it. The empty text stands for none.
CREATE TABLE spend (
    day TEXT NOT NULL,
    mission TEXT NOT NULL,
    tenant TEXT NOT NULL,
    account TEXT NOT NULL,
    profile TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0 CHECK (requests >= 0),
    bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
    PRIMARY KEY (day, mission, tenant, account, profile)
) STRICT, WITHOUT ROWID;
-- What the agents of earlier runs have reported counts on the day on which their runs have ended.
INSERT INTO spend (day, mission, tenant, account, profile, tokens, cost_micros)
SELECT date(coalesce(r.ended_at, r.started_at) / 1000000, 'unixepoch', 'localtime'), coalesce(t.mission, t.id), t.tenant,
       ifnull(r.account, ''), ifnull(r.profile, ''), min(sum(u.input_tokens + u.output_tokens), 1 << 46),
       min(sum(ifnull(u.cost_micros, 0)), 1 << 46)
FROM run_usage u JOIN task_runs r ON r.id = u.run_id JOIN tasks t ON t.id = r.task_id GROUP BY 1, 2, 3, 4, 5;
