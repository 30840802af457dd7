-- The limits of a mission's own, where a person has set any: null means that of the configuration. `open_runs` counts its open
-- runs, and `open_since_ms` is the sum of the milliseconds at which they have started, so that their time so far is a difference.
ALTER TABLE missions ADD COLUMN max_tasks INTEGER CHECK (max_tasks > 0);
ALTER TABLE missions ADD COLUMN max_depth INTEGER CHECK (max_depth >= 0);
ALTER TABLE missions ADD COLUMN max_runtime_us INTEGER CHECK (max_runtime_us > 0);
ALTER TABLE missions ADD COLUMN max_cost_micros INTEGER CHECK (max_cost_micros > 0);
ALTER TABLE missions ADD COLUMN open_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE missions ADD COLUMN open_since_ms INTEGER NOT NULL DEFAULT 0;
UPDATE missions SET (open_runs, open_since_ms) = (
    SELECT count(*), ifnull(sum(r.started_at / 1000), 0) FROM task_runs r JOIN tasks t ON t.id = r.task_id
    WHERE r.ended_at IS NULL AND coalesce(t.mission, t.id) = missions.name);
CREATE INDEX missions_at_work ON missions (name) WHERE open_runs > 0;
CREATE INDEX tasks_mission ON tasks (mission, created_at, id) WHERE mission IS NOT NULL;
