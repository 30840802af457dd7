-- How many tasks more a proposal wants than its mission has room for, until a person lets the mission go on.
ALTER TABLE missions ADD COLUMN wanted_tasks INTEGER NOT NULL DEFAULT 0 CHECK (wanted_tasks >= 0);
