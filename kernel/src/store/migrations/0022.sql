-- Who has set the time limit of a run; null where it has none, and where an earlier release has started it.
ALTER TABLE task_runs ADD COLUMN max_runtime_from TEXT CHECK (max_runtime_from IN
    ('task', 'check', 'profile', 'lane', 'tenant', 'configuration'));
