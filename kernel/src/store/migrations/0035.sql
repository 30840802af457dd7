-- The names that no proposed profile may have, because a profile or a lane has them, and the profiles that were proposed, as JSON.
ALTER TABLE proposals ADD COLUMN taken TEXT NOT NULL DEFAULT '[]';
ALTER TABLE proposals ADD COLUMN profiles TEXT NOT NULL DEFAULT '[]';
-- How deep below its first task a worker wanted to make one where its mission goes less deep, until a person lets the mission go on.
ALTER TABLE missions ADD COLUMN wanted_depth INTEGER NOT NULL DEFAULT 0 CHECK (wanted_depth >= 0);
