-- Handling of the changes that a run leaves uncommitted in its worktree; none for the default of its lane.
ALTER TABLE tasks ADD COLUMN commit_mode TEXT CHECK (commit_mode IN ('auto', 'require', 'no'));
-- Commits and uncommitted changes of the latest handed-over work in a worktree, in words, with the command that merges it.
ALTER TABLE tasks ADD COLUMN branch_note TEXT;
