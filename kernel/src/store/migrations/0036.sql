-- Whose session the first run of a task begins from: the task, its run, and the name of the session.
ALTER TABLE tasks ADD COLUMN forked_from TEXT;
ALTER TABLE tasks ADD COLUMN forked_run INTEGER;
ALTER TABLE tasks ADD COLUMN forked_session TEXT;
