-- How many questions deep the task of a question is, whose answer somebody waits for; null for any other task.
ALTER TABLE tasks ADD COLUMN consult INTEGER CHECK (consult > 0);
CREATE INDEX tasks_consults ON tasks (created_at, id) WHERE consult IS NOT NULL AND status = 'ready' AND assignee IS NOT NULL;
