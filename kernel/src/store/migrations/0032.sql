-- How often the tasks of a mission have moved, when the latest one has, and how often they had at the last review of its progress. The
-- time is null where a review has nothing to wait for: nothing has moved since the last one, or the mission is over.
ALTER TABLE missions ADD COLUMN moves INTEGER NOT NULL DEFAULT 0;
ALTER TABLE missions ADD COLUMN reviewed_moves INTEGER NOT NULL DEFAULT 0;
ALTER TABLE missions ADD COLUMN moved_at INTEGER;
CREATE INDEX missions_moved ON missions (moved_at) WHERE moved_at IS NOT NULL;
