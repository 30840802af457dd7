-- What a run did in git, as the supervisor found it.
ALTER TABLE task_runs ADD COLUMN evidence TEXT CHECK (evidence IS NULL OR json_valid(evidence));
