-- Whose tasks a hold is on: `*` for those of every tenant, else a tenant, empty for tasks without one. Who met the limit.
ALTER TABLE holds ADD COLUMN within TEXT NOT NULL DEFAULT '*';
ALTER TABLE holds ADD COLUMN met_by_task TEXT;
ALTER TABLE holds ADD COLUMN met_by_tenant TEXT;
DROP INDEX holds_live;
CREATE UNIQUE INDEX holds_live ON holds (scope, name, kind, within) WHERE ended_at IS NULL;

-- What each open run has written so far, in the words of its bounds.
CREATE TABLE run_counts (
    run_id INTEGER NOT NULL,
    bound TEXT NOT NULL,
    used INTEGER NOT NULL CHECK (used >= 0),
    PRIMARY KEY (run_id, bound)
) STRICT, WITHOUT ROWID;

-- What each tenant keeps: tasks, comments and attached files, and their bytes. Triggers keep it.
CREATE TABLE tenant_counts (
    tenant TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tenants_task_new AFTER INSERT ON tasks BEGIN
    INSERT INTO tenant_counts (tenant, entries, bytes)
        VALUES (new.tenant, 1, octet_length(new.title) + ifnull(octet_length(new.body), 0))
        ON CONFLICT DO UPDATE SET entries = entries + excluded.entries, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER tenants_task_text AFTER UPDATE OF title, body ON tasks BEGIN
    UPDATE tenant_counts SET bytes = bytes
            + octet_length(new.title) + ifnull(octet_length(new.body), 0)
            - octet_length(old.title) - ifnull(octet_length(old.body), 0)
        WHERE tenant = old.tenant;
END;
-- Before the rows that belong to it go: afterwards nothing says whose they were.
CREATE TRIGGER tenants_task_gone BEFORE DELETE ON tasks BEGIN
    UPDATE tenant_counts SET
        entries = entries - 1
            - (SELECT count(*) FROM task_comments WHERE task_id = old.id)
            - (SELECT count(*) FROM task_attachments WHERE task_id = old.id),
        bytes = bytes - octet_length(old.title) - ifnull(octet_length(old.body), 0)
            - (SELECT ifnull(sum(octet_length(body)), 0) FROM task_comments WHERE task_id = old.id)
            - (SELECT ifnull(sum(size), 0) FROM task_attachments WHERE task_id = old.id)
        WHERE tenant = old.tenant;
END;
CREATE TRIGGER tenants_task_moved AFTER UPDATE OF tenant ON tasks WHEN old.tenant <> new.tenant BEGIN
    INSERT INTO tenant_counts (tenant, entries, bytes) VALUES (
            new.tenant,
            1 + (SELECT count(*) FROM task_comments WHERE task_id = new.id)
              + (SELECT count(*) FROM task_attachments WHERE task_id = new.id),
            octet_length(new.title) + ifnull(octet_length(new.body), 0)
              + (SELECT ifnull(sum(octet_length(body)), 0) FROM task_comments WHERE task_id = new.id)
              + (SELECT ifnull(sum(size), 0) FROM task_attachments WHERE task_id = new.id))
        ON CONFLICT DO UPDATE SET entries = entries + excluded.entries, bytes = bytes + excluded.bytes;
    UPDATE tenant_counts SET
        entries = entries - 1
            - (SELECT count(*) FROM task_comments WHERE task_id = new.id)
            - (SELECT count(*) FROM task_attachments WHERE task_id = new.id),
        bytes = bytes - octet_length(new.title) - ifnull(octet_length(new.body), 0)
            - (SELECT ifnull(sum(octet_length(body)), 0) FROM task_comments WHERE task_id = new.id)
            - (SELECT ifnull(sum(size), 0) FROM task_attachments WHERE task_id = new.id)
        WHERE tenant = old.tenant;
END;
CREATE TRIGGER tenants_comment_new AFTER INSERT ON task_comments BEGIN
    UPDATE tenant_counts SET entries = entries + 1, bytes = bytes + octet_length(new.body)
        WHERE tenant = (SELECT tenant FROM tasks WHERE id = new.task_id);
END;
CREATE TRIGGER tenants_file_new AFTER INSERT ON task_attachments BEGIN
    UPDATE tenant_counts SET entries = entries + 1, bytes = bytes + new.size
        WHERE tenant = (SELECT tenant FROM tasks WHERE id = new.task_id);
END;
-- A file that is taken off a task; with its task, all is counted off above.
CREATE TRIGGER tenants_file_gone AFTER DELETE ON task_attachments BEGIN
    UPDATE tenant_counts SET entries = entries - 1, bytes = bytes - old.size
        WHERE tenant = (SELECT tenant FROM tasks WHERE id = old.task_id);
END;

INSERT INTO tenant_counts (tenant, entries, bytes)
    SELECT tenant, count(*), sum(bytes) FROM (
        SELECT tenant, octet_length(title) + ifnull(octet_length(body), 0) AS bytes FROM tasks
        UNION ALL SELECT t.tenant, octet_length(c.body) FROM task_comments c JOIN tasks t ON t.id = c.task_id
        UNION ALL SELECT t.tenant, a.size FROM task_attachments a JOIN tasks t ON t.id = a.task_id)
    GROUP BY tenant;
