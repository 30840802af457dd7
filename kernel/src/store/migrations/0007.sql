-- A line: the tasks of one tenant and assignee that need one directory, or one repository. Whatever keeps the first of
-- them from starting may keep all of them, so only the first is on offer until it is taken. Empty for the others.
ALTER TABLE tasks ADD COLUMN line TEXT GENERATED ALWAYS AS
    (CASE WHEN workspace GLOB 'dir:*' OR workspace GLOB 'worktree:*' THEN workspace ELSE '' END) VIRTUAL;

DROP INDEX tasks_ready;
CREATE INDEX tasks_ready ON tasks (tenant, assignee, line, priority DESC, created_at, id)
    WHERE status = 'ready' AND assignee IS NOT NULL;

-- The first ready task of each line, kept by triggers.
CREATE TABLE line_heads (
    tenant TEXT NOT NULL,
    assignee TEXT NOT NULL,
    line TEXT NOT NULL CHECK (line <> ''),
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    task TEXT NOT NULL,
    PRIMARY KEY (tenant, assignee, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX line_heads_order ON line_heads (tenant, assignee, priority DESC, created_at, task);

CREATE TRIGGER tasks_line_new AFTER INSERT ON tasks
    WHEN new.line <> '' AND new.status = 'ready' AND new.assignee IS NOT NULL BEGIN
    INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task)
        VALUES (new.tenant, new.assignee, new.line, new.priority, new.created_at, new.id)
        ON CONFLICT DO UPDATE SET
            priority = excluded.priority, created_at = excluded.created_at, task = excluded.task
        WHERE (-excluded.priority, excluded.created_at, excluded.task) < (-priority, created_at, task);
END;
CREATE TRIGGER tasks_line_moved AFTER UPDATE OF status, assignee, tenant, workspace, priority, created_at ON tasks
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
CREATE TRIGGER tasks_line_gone AFTER DELETE ON tasks
    WHEN old.line <> '' AND old.status = 'ready' AND old.assignee IS NOT NULL BEGIN
    DELETE FROM line_heads WHERE tenant = old.tenant AND assignee = old.assignee AND line = old.line;
    INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task)
        SELECT tenant, assignee, line, priority, created_at, id FROM tasks
        WHERE status = 'ready' AND assignee IS NOT NULL AND tenant = old.tenant AND assignee = old.assignee
            AND line = old.line AND line <> ''
        ORDER BY priority DESC, created_at, id LIMIT 1;
END;

INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task)
    SELECT tenant, assignee, line, priority, created_at, id FROM (
        SELECT tenant, assignee, line, priority, created_at, id, row_number() OVER (
            PARTITION BY tenant, assignee, line ORDER BY priority DESC, created_at, id) AS place
        FROM tasks WHERE status = 'ready' AND assignee IS NOT NULL AND line <> '')
    WHERE place = 1;
