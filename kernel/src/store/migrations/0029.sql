-- The line of a task follows from the pools that it names, which can be changed while it waits: the first of its old and of its new line are
-- found again then, as for its directory.
DROP TRIGGER tasks_line_moved;
CREATE TRIGGER tasks_line_moved AFTER UPDATE OF status, assignee, tenant, workspace, pools, priority, created_at ON tasks
    WHEN (old.line <> '' AND old.status = 'ready' AND old.assignee IS NOT NULL)
      OR (new.line <> '' AND new.status = 'ready' AND new.assignee IS NOT NULL) BEGIN
    DELETE FROM line_heads WHERE tenant = old.tenant AND assignee = old.assignee AND line = old.line;
    INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task)
        SELECT tenant, assignee, line, priority, created_at, id FROM tasks
        WHERE status = 'ready' AND assignee IS NOT NULL AND tenant = old.tenant AND assignee = old.assignee
            AND line = old.line AND line <> ''
        ORDER BY priority DESC, created_at, id LIMIT 1;
    DELETE FROM line_heads WHERE tenant = new.tenant AND assignee = new.assignee AND line = new.line;
    INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task)
        SELECT tenant, assignee, line, priority, created_at, id FROM tasks
        WHERE status = 'ready' AND assignee IS NOT NULL AND tenant = new.tenant AND assignee = new.assignee
            AND line = new.line AND line <> ''
        ORDER BY priority DESC, created_at, id LIMIT 1;
END;
