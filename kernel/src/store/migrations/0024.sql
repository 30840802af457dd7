-- The schedules as their files define them, and up to which time their ticks are decided.
CREATE TABLE schedules (
    name TEXT PRIMARY KEY CHECK (name <> ''),
    spec TEXT NOT NULL CHECK (json_valid(spec)),
    decided INTEGER NOT NULL,
    -- The next tick; null where none is to come, or where it is paused.
    next INTEGER,
    defined_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_next ON schedules (next) WHERE next IS NOT NULL;
-- What became of each tick. The newest of each schedule are kept, and those that wait.
CREATE TABLE schedule_ticks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule TEXT NOT NULL,
    tick INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('made', 'due', 'queued', 'skipped', 'missed', 'failed')),
    -- How many ticks before it were missed, and whether there were more than were counted.
    missed INTEGER NOT NULL DEFAULT 0,
    more INTEGER NOT NULL DEFAULT 0 CHECK (more IN (0, 1)),
    tasks TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tasks)),
    note TEXT,
    decided_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedule_ticks_once ON schedule_ticks (schedule, tick);
CREATE INDEX schedule_ticks_queued ON schedule_ticks (schedule, tick) WHERE outcome = 'queued';
CREATE INDEX schedule_ticks_due ON schedule_ticks (tick) WHERE outcome = 'due';
ALTER TABLE tasks ADD COLUMN schedule TEXT;
ALTER TABLE tasks ADD COLUMN tick INTEGER;
ALTER TABLE tasks ADD COLUMN channel TEXT;
CREATE INDEX tasks_schedule ON tasks (schedule, tick) WHERE schedule IS NOT NULL AND status NOT IN ('done', 'archived');
