-- The events of each tenant that the log has. Whatever a worker causes leaves one, so their number bounds every table.
ALTER TABLE tenant_counts ADD COLUMN events INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER tenants_event_new AFTER INSERT ON task_events BEGIN
    INSERT INTO tenant_counts (tenant, entries, bytes, events) VALUES (new.tenant, 0, 0, 1)
        ON CONFLICT DO UPDATE SET events = events + 1;
END;
CREATE TRIGGER tenants_event_gone AFTER DELETE ON task_events BEGIN
    UPDATE tenant_counts SET events = events - 1 WHERE tenant = old.tenant;
END;

INSERT INTO tenant_counts (tenant, entries, bytes, events)
    SELECT tenant, 0, 0, count(*) FROM task_events WHERE true GROUP BY tenant
    ON CONFLICT DO UPDATE SET events = excluded.events;
