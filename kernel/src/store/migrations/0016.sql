-- How many turns toward its goal a task has taken since somebody let it go on.
ALTER TABLE tasks ADD COLUMN goal_turns INTEGER NOT NULL DEFAULT 0 CHECK (goal_turns >= 0);
