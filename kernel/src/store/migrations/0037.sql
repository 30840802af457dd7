-- When the next external claim is over is asked after each commit. It is counted on the clock of its boot, so the index is by that.
DROP INDEX task_runs_lease;
CREATE INDEX task_runs_lease ON task_runs (boot_id, claim_expires_boottime_us)
    WHERE ended_at IS NULL AND holder = 'hand';
-- Ready tasks that nobody is assigned to are found by tasks_assignee, and this index took a page of each new one.
DROP INDEX tasks_unassigned;
