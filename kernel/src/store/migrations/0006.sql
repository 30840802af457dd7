-- Where tasks work, one value after the other: asked for at each start of a run.
CREATE INDEX tasks_workplaces ON tasks (workspace) WHERE workspace <> 'scratch' AND status <> 'archived';
