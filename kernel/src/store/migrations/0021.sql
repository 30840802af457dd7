-- Whether the signal that ended a worker dumped its core; null where that is not known.
ALTER TABLE task_runs ADD COLUMN core_dumped INTEGER CHECK (core_dumped IN (0, 1));
