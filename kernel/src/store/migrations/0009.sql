-- How many starts of a task in a row came to nothing for a reason outside of it: their last run stands for all of them.
ALTER TABLE task_runs ADD COLUMN tries INTEGER CHECK (tries > 0);
