-- Schema of a board, in the order of its nouns.
--
-- Times are microseconds since the epoch. A column with the suffix `_boottime_us` has microseconds of CLOCK_BOOTTIME in the boot that
-- `boot_id` names. The empty text in a column `tenant` stands for no tenant (decision 0072).
--
-- The export, a backup and a restore compare each definition with this file, without its comments (objects.rs).

-- The board itself: one row.

CREATE TABLE meta (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    board_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    next_uid INTEGER NOT NULL DEFAULT 0,
    -- Times that were recomputed after the latest correction of a clock that was ahead.
    clock_set TEXT CHECK (clock_set IS NULL OR json_valid(clock_set))
) STRICT;

-- Tasks.

CREATE TABLE tasks (
    -- Another program may have drawn the id, so the check is wider than the ids of this program.
    id TEXT PRIMARY KEY CHECK (id GLOB 't_[0-9A-Za-z]*' AND id NOT GLOB '*[^0-9A-Za-z_-]*' AND length(id) <= 64),
    title TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 500),
    body TEXT,
    assignee TEXT,
    reviewer TEXT,
    work_by TEXT,
    status TEXT NOT NULL CHECK (status IN
        ('triage', 'todo', 'scheduled', 'ready', 'running', 'review', 'blocked', 'done', 'archived')),
    priority INTEGER NOT NULL DEFAULT 0,
    tenant TEXT NOT NULL DEFAULT '',
    workspace TEXT NOT NULL DEFAULT 'scratch',
    workspace_path TEXT,
    branch_name TEXT,
    project_id TEXT,
    created_by TEXT,
    creator_uid INTEGER,
    creator_task TEXT,
    creator_run INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    started_at INTEGER,
    completed_at INTEGER,
    result TEXT,
    skills TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(skills)),
    max_retries INTEGER CHECK (max_retries >= 0),
    max_runtime_us INTEGER CHECK (max_runtime_us > 0),
    session_id TEXT,
    workflow_template_id TEXT,
    current_step_key TEXT,
    model_override TEXT,
    idempotency_key TEXT,
    goal_mode INTEGER NOT NULL DEFAULT 0 CHECK (goal_mode IN (0, 1)),
    goal_max_turns INTEGER,
    -- Turns toward the goal since a person last let the task go on.
    goal_turns INTEGER NOT NULL DEFAULT 0 CHECK (goal_turns >= 0),
    mission TEXT,
    depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
    -- Depth of the question that the task answers, while its asker waits; null for any other task.
    consult INTEGER CHECK (consult > 0),
    notes TEXT,
    artifacts TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(artifacts)),
    approval TEXT CHECK (approval IN ('required', 'granted')),
    -- Operators define classes of their own, so no check lists them.
    approval_class TEXT,
    approver TEXT,
    -- Time at which the request is denied if no person has decided.
    approval_until INTEGER,
    budget_usd_micros INTEGER,
    policy TEXT,
    -- Command that proves the work, its limit on failures, the failures in a row, and the run whose work waits for it.
    check_command TEXT,
    max_checks INTEGER CHECK (max_checks > 0),
    failed_checks INTEGER NOT NULL DEFAULT 0 CHECK (failed_checks >= 0),
    unchecked_run INTEGER,
    not_before INTEGER,
    current_run_id INTEGER REFERENCES task_runs (id) DEFERRABLE INITIALLY DEFERRED,
    block_kind TEXT CHECK (block_kind IN
        ('needs_input', 'capability', 'transient', 'dependency', 'approval', 'budget', 'gave_up')),
    block_reason TEXT,
    question TEXT CHECK (question IS NULL OR json_valid(question)),
    -- Set by a cancel. The reason of a block cannot tell it: a worker writes reasons as well.
    cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1)),
    last_block_kind TEXT,
    block_recurrences INTEGER NOT NULL DEFAULT 0,
    consecutive_failures INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    last_failure_error TEXT,
    worker_uid INTEGER CHECK (worker_uid > 0),
    nonspawnable TEXT,
    -- Pools of which each run of the task takes a place.
    pools TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(pools)),
    -- A line has the tasks of one tenant and assignee that need one directory, one repository or the same pools. The obstacle of its first
    -- task may be the obstacle of all, so only the first task is offered. The empty text means that the task is in no line.
    line TEXT GENERATED ALWAYS AS
        (CASE WHEN workspace GLOB 'dir:*' OR workspace GLOB 'worktree:*' THEN workspace ELSE '' END
            || CASE pools WHEN '[]' THEN '' ELSE ' ' || pools END) VIRTUAL,
    -- Schedule that made the task, and the tick.
    schedule TEXT,
    tick INTEGER,
    channel TEXT,
    -- Session from which the first run begins: its task, its run and its name.
    forked_from TEXT,
    forked_run INTEGER,
    forked_session TEXT,
    -- Handling of uncommitted changes in the worktree; null for the default of the lane.
    commit_mode TEXT CHECK (commit_mode IN ('auto', 'require', 'no')),
    -- Commits and uncommitted changes of the latest handed-over work, in words, with the command that merges it.
    branch_note TEXT,
    CHECK ((status = 'running') = (current_run_id IS NOT NULL)),
    CHECK ((status = 'blocked') = (block_kind IS NOT NULL)),
    CHECK (status <> 'review' OR work_by IS NOT NULL),
    CHECK (status NOT IN ('ready', 'running', 'scheduled') OR approval IS NOT 'required'),
    CHECK (approval IS NOT NULL OR (approver IS NULL AND approval_class IS NULL)),
    CHECK (status <> 'scheduled' OR not_before IS NOT NULL),
    CHECK (status <> 'done' OR completed_at IS NOT NULL),
    CHECK (completed_at IS NULL OR status IN ('done', 'archived'))
) STRICT;

CREATE UNIQUE INDEX tasks_idempotency ON tasks (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX tasks_worker_uid ON tasks (worker_uid) WHERE worker_uid IS NOT NULL;
CREATE UNIQUE INDEX tasks_current_run ON tasks (current_run_id) WHERE current_run_id IS NOT NULL;
-- Work of the dispatcher.
CREATE INDEX tasks_ready ON tasks (tenant, assignee, line, priority DESC, created_at, id)
    WHERE status = 'ready' AND assignee IS NOT NULL;
CREATE INDEX tasks_consults ON tasks (created_at, id) WHERE consult IS NOT NULL AND status = 'ready' AND assignee IS NOT NULL;
CREATE INDEX tasks_review ON tasks (tenant, reviewer, priority DESC, created_at, id)
    WHERE status = 'review' AND reviewer IS NOT NULL;
CREATE INDEX tasks_check ON tasks (tenant, priority DESC, created_at, id)
    WHERE status = 'review' AND unchecked_run IS NOT NULL;
CREATE INDEX tasks_due ON tasks (not_before) WHERE status = 'scheduled';
CREATE INDEX tasks_approval_until ON tasks (approval_until)
    WHERE status = 'blocked' AND block_kind = 'approval' AND approval_until IS NOT NULL;
-- Tasks that the diagnosis examines, beside those that are ready, blocked or due.
CREATE INDEX tasks_troubled ON tasks (consecutive_failures, status, id)
    WHERE status NOT IN ('done', 'archived') AND (consecutive_failures > 0 OR last_block_kind IS NOT NULL);
-- Worktrees that the garbage collection examines.
CREATE INDEX tasks_archived_worktrees ON tasks (id) WHERE status = 'archived' AND workspace GLOB 'worktree:*';
-- Each start of a run reads the distinct places of work.
CREATE INDEX tasks_workplaces ON tasks (workspace) WHERE workspace <> 'scratch' AND status <> 'archived';
-- Pages of lists. A page of several statuses is merged from the pages of each. An index with the status in its columns or in its condition is
-- written at each change of a status.
CREATE INDEX tasks_created ON tasks (status, created_at, id);
CREATE INDEX tasks_updated ON tasks (status, updated_at, id);
CREATE INDEX tasks_status ON tasks (status, priority DESC, created_at, id);
CREATE INDEX tasks_assignee ON tasks (assignee, status, priority DESC, created_at, id);
CREATE INDEX tasks_tenant ON tasks (tenant, status, priority DESC, created_at, id);
CREATE INDEX tasks_title ON tasks (title, id);
CREATE INDEX tasks_session ON tasks (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX tasks_workflow ON tasks (workflow_template_id) WHERE workflow_template_id IS NOT NULL;
CREATE INDEX tasks_step ON tasks (current_step_key) WHERE current_step_key IS NOT NULL;
CREATE INDEX tasks_creator ON tasks (creator_run) WHERE creator_run IS NOT NULL;
CREATE INDEX tasks_mission ON tasks (mission, created_at, id) WHERE mission IS NOT NULL;
CREATE INDEX tasks_schedule ON tasks (schedule, tick) WHERE schedule IS NOT NULL AND status NOT IN ('done', 'archived');

-- Ids that were ever given out. A deleted task does not free its id.
CREATE TABLE task_ids (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Number of tasks of each assignee and status. The triggers keep it.
CREATE TABLE task_counts (
    assignee TEXT NOT NULL,
    status TEXT NOT NULL,
    tasks INTEGER NOT NULL CHECK (tasks >= 0),
    PRIMARY KEY (assignee, status)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tasks_count_new AFTER INSERT ON tasks BEGIN
    INSERT INTO task_counts (assignee, status, tasks) VALUES (ifnull(new.assignee, ''), new.status, 1)
        ON CONFLICT DO UPDATE SET tasks = tasks + 1;
END;
CREATE TRIGGER tasks_count_moved AFTER UPDATE OF status, assignee ON tasks
    WHEN old.status <> new.status OR old.assignee IS NOT new.assignee BEGIN
    UPDATE task_counts SET tasks = tasks - 1
        WHERE assignee = ifnull(old.assignee, '') AND status = old.status;
    INSERT INTO task_counts (assignee, status, tasks) VALUES (ifnull(new.assignee, ''), new.status, 1)
        ON CONFLICT DO UPDATE SET tasks = tasks + 1;
END;
CREATE TRIGGER tasks_count_gone AFTER DELETE ON tasks BEGIN
    UPDATE task_counts SET tasks = tasks - 1
        WHERE assignee = ifnull(old.assignee, '') AND status = old.status;
END;

-- First ready task of each line. The triggers keep it.
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
-- The directory and the pools of a waiting task can change, so the heads of its old line and of its new line are searched again.
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
CREATE TRIGGER tasks_line_gone AFTER DELETE ON tasks
    WHEN old.line <> '' AND old.status = 'ready' AND old.assignee IS NOT NULL BEGIN
    DELETE FROM line_heads WHERE tenant = old.tenant AND assignee = old.assignee AND line = old.line;
    INSERT INTO line_heads (tenant, assignee, line, priority, created_at, task)
        SELECT tenant, assignee, line, priority, created_at, id FROM tasks
        WHERE status = 'ready' AND assignee IS NOT NULL AND tenant = old.tenant AND assignee = old.assignee
            AND line = old.line AND line <> ''
        ORDER BY priority DESC, created_at, id LIMIT 1;
END;

CREATE TABLE task_links (
    parent_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    child_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    PRIMARY KEY (parent_id, child_id),
    CHECK (parent_id <> child_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_links_child ON task_links (child_id, parent_id);

-- Pauses before the next attempt, on the clock since boot; `not_before` is the wall time that the task has.
CREATE TABLE delays (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    not_before INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    due_boottime_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX delays_due ON delays (boot_id, due_boottime_us);

-- Tasks whose results are proposals for another task.
CREATE TABLE proposals (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- JSON lists: profiles that it may name; names of profiles and lanes that no proposed profile may have; proposed profiles.
    staff TEXT NOT NULL,
    taken TEXT NOT NULL DEFAULT '[]',
    profiles TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;
CREATE INDEX proposals_subject ON proposals (subject);

-- Comments and attachments.

CREATE TABLE task_comments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    author_kind TEXT NOT NULL CHECK (author_kind IN ('person', 'worker', 'system')),
    body TEXT NOT NULL,
    run_id INTEGER,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX task_comments_task ON task_comments (task_id, id);

-- Task that was made for a profile that a comment mentions. A comment makes at most one for each profile.
CREATE TABLE mentions (
    comment_id INTEGER NOT NULL REFERENCES task_comments (id) ON DELETE CASCADE,
    profile TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (comment_id, profile)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_attachments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    filename TEXT NOT NULL CHECK (filename <> '' AND instr(filename, '/') = 0),
    content_type TEXT,
    size INTEGER NOT NULL CHECK (size >= 0),
    uploaded_by TEXT,
    -- Name of the file with the bytes, in the directory `attachments` beside the board.
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
    created_at INTEGER NOT NULL,
    run_id INTEGER,
    -- Path that a run declared, for a file that is a part of its result.
    artifact TEXT
) STRICT;
CREATE INDEX task_attachments_task ON task_attachments (task_id, id);
CREATE INDEX task_attachments_content ON task_attachments (sha256);

-- The log of events, and its start.

CREATE TABLE task_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT,
    run_id INTEGER,
    tenant TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL CHECK (kind <> ''),
    payload TEXT CHECK (payload IS NULL OR json_valid(payload)),
    change TEXT CHECK (change IS NULL OR json_valid(change)),
    actor TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX task_events_task ON task_events (task_id, id);
CREATE INDEX task_events_tenant ON task_events (tenant, id);

CREATE TABLE folded_states (
    task_id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (json_valid(state))
) STRICT, WITHOUT ROWID;

CREATE TABLE event_horizon (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    event_id INTEGER NOT NULL,
    folded_at INTEGER NOT NULL
) STRICT;

-- Runs.

CREATE TABLE task_runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    tenant TEXT NOT NULL DEFAULT '',
    profile TEXT,
    step_key TEXT,
    status TEXT NOT NULL CHECK (status IN
        ('running', 'ending', 'done', 'blocked', 'review', 'cancelled', 'reclaimed', 'preempted', 'crashed',
         'timed_out', 'stalled', 'out_of_memory', 'unreported', 'rate_limited', 'lost', 'spawn_failed')),
    outcome TEXT CHECK (outcome IN
        ('completed', 'blocked', 'review_requested', 'approved', 'changes_requested', 'check_passed', 'check_failed',
         'cancelled', 'reclaimed', 'preempted', 'crashed', 'timed_out', 'stalled', 'out_of_memory', 'unreported',
         'rate_limited', 'lost', 'spawn_failed')),
    holder TEXT NOT NULL CHECK (holder IN ('supervisor', 'hand')),
    purpose TEXT NOT NULL DEFAULT 'work' CHECK (purpose IN ('work', 'review', 'check')),
    -- Starts in a row that came to nothing for a reason outside of the task. Their last run stands for all of them.
    tries INTEGER CHECK (tries > 0),
    summary TEXT,
    error TEXT,
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    verdict TEXT CHECK (verdict IS NULL OR json_valid(verdict)),
    verdict_by TEXT,
    stop_reason TEXT CHECK (stop_reason IN
        ('verdict', 'reclaimed', 'cancelled', 'preempted', 'kill', 'stalled')),
    ending_since INTEGER,
    claim_lock TEXT,
    claim_expires_boottime_us INTEGER,
    claim_expires INTEGER,
    claim_ttl_us INTEGER,
    boot_id TEXT,
    deadline_boottime_us INTEGER,
    token_hash BLOB CHECK (token_hash IS NULL OR length(token_hash) = 32),
    nonce TEXT,
    policy TEXT,
    started_at INTEGER NOT NULL,
    spawned_at INTEGER,
    ended_at INTEGER,
    last_heartbeat_at INTEGER,
    max_runtime_us INTEGER,
    -- Source of the time limit; null for a run without one.
    max_runtime_from TEXT CHECK (max_runtime_from IN
        ('task', 'check', 'profile', 'lane', 'tenant', 'configuration')),
    worker_pid INTEGER,
    worker_uid INTEGER,
    exit_code INTEGER,
    signal INTEGER,
    -- True if the signal that ended the worker dumped its core; null where that is not known.
    core_dumped INTEGER CHECK (core_dumped IN (0, 1)),
    log_path TEXT,
    workspace_path TEXT,
    branch_name TEXT,
    sandbox TEXT CHECK (sandbox IS NULL OR json_valid(sandbox)),
    usage TEXT CHECK (usage IS NULL OR json_valid(usage)),
    stderr_tail TEXT,
    finished TEXT CHECK (finished IS NULL OR json_valid(finished)),
    account TEXT,
    -- Changes that the run made in git, as the supervisor found them.
    evidence TEXT CHECK (evidence IS NULL OR json_valid(evidence)),
    -- True if the agent of the run takes messages.
    takes_messages INTEGER NOT NULL DEFAULT 0 CHECK (takes_messages IN (0, 1)),
    CHECK ((ended_at IS NULL) = (status IN ('running', 'ending'))),
    CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CHECK (status <> 'ending' OR ending_since IS NOT NULL),
    CHECK (holder = 'supervisor' OR claim_expires IS NOT NULL OR ended_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX task_runs_open ON task_runs (task_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX task_runs_token ON task_runs (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX task_runs_open_tenant ON task_runs (tenant) WHERE ended_at IS NULL;
-- Each commit asks for the end of the next external claim, which is counted on the clock of its boot.
CREATE INDEX task_runs_lease ON task_runs (boot_id, claim_expires_boottime_us)
    WHERE ended_at IS NULL AND holder = 'hand';
CREATE INDEX task_runs_stop ON task_runs (id)
    WHERE ended_at IS NULL AND holder = 'supervisor' AND stop_reason IS NOT NULL;
CREATE INDEX task_runs_task ON task_runs (task_id, id);

-- Amounts that an open run has written so far, by the name of their bound.
CREATE TABLE run_counts (
    run_id INTEGER NOT NULL,
    bound TEXT NOT NULL,
    used INTEGER NOT NULL CHECK (used >= 0),
    PRIMARY KEY (run_id, bound)
) STRICT, WITHOUT ROWID;

-- Messages of people to the agents of live runs, and their fate.
CREATE TABLE run_messages (
    run_id INTEGER NOT NULL REFERENCES task_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL CHECK (number > 0),
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    comment_id INTEGER,
    state TEXT NOT NULL CHECK (state IN ('queued', 'written', 'delivered', 'not_delivered')),
    reason TEXT CHECK ((reason IS NOT NULL) = (state = 'not_delivered')),
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_messages_task ON run_messages (task_id, run_id, number);

-- Usage that the agent of a run reports.
CREATE TABLE run_usage (
    run_id INTEGER PRIMARY KEY REFERENCES task_runs (id) ON DELETE CASCADE,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    session TEXT,
    model TEXT,
    input_tokens INTEGER NOT NULL CHECK (input_tokens >= 0),
    cached_tokens INTEGER NOT NULL CHECK (cached_tokens >= 0),
    output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
    cost_micros INTEGER CHECK (cost_micros >= 0),
    turns INTEGER CHECK (turns >= 0),
    denials INTEGER NOT NULL CHECK (denials >= 0),
    -- Counters of the session, for an agent that reports no others. The next run in the session is charged the difference.
    session_input INTEGER,
    session_cached INTEGER,
    session_output INTEGER
) STRICT;
CREATE INDEX run_usage_task ON run_usage (task_id, run_id);

-- Traffic through the proxy of a run so far, with the hosts.
CREATE TABLE run_egress (
    run_id INTEGER PRIMARY KEY REFERENCES task_runs (id) ON DELETE CASCADE,
    egress TEXT NOT NULL CHECK (json_valid(egress))
) STRICT;

-- Holds: reasons that keep tasks from starting.

CREATE TABLE holds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- `rate_limit` and `login`: the service of an account refuses more, or refuses the login. `limit`: a mission is at a limit of its own.
    -- `budget`: a tenant or an account has spent its budget of the day. `breaker`: several starts in a row have failed.
    kind TEXT NOT NULL CHECK (kind IN ('manual', 'rate_limit', 'login', 'limit', 'budget', 'breaker')),
    scope TEXT NOT NULL CHECK (scope IN ('task', 'profile', 'tenant', 'account', 'mission', 'environment', 'host')),
    name TEXT NOT NULL CHECK (name <> ''),
    -- Tenant whose tasks it holds: `*` for every tenant, the empty text for tasks without one.
    within TEXT NOT NULL DEFAULT '*',
    reason TEXT NOT NULL,
    placed_by TEXT NOT NULL,
    run_id INTEGER,
    probe_run INTEGER,
    -- Task and tenant that met the limit.
    met_by_task TEXT,
    met_by_tenant TEXT,
    until INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT,
    CHECK (kind IN ('manual', 'limit', 'budget', 'breaker') OR until IS NOT NULL),
    CHECK (probe_run IS NULL OR kind <> 'manual'),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL))
) STRICT;
CREATE UNIQUE INDEX holds_live ON holds (scope, name, kind, within) WHERE ended_at IS NULL;

-- Missions: usage of a task that a person made, with all tasks that workers made below it. The first task of a worker makes the row.

CREATE TABLE missions (
    name TEXT PRIMARY KEY,
    tasks INTEGER NOT NULL CHECK (tasks >= 0),
    runtime_us INTEGER NOT NULL CHECK (runtime_us >= 0),
    cost_micros INTEGER NOT NULL CHECK (cost_micros >= 0),
    -- Number of times that a person has granted the same amount again.
    more_tasks INTEGER NOT NULL DEFAULT 0 CHECK (more_tasks >= 0),
    more_runtime INTEGER NOT NULL DEFAULT 0 CHECK (more_runtime >= 0),
    more_cost INTEGER NOT NULL DEFAULT 0 CHECK (more_cost >= 0),
    -- Limits that a person has set; null for the limit of the configuration.
    max_tasks INTEGER CHECK (max_tasks > 0),
    max_depth INTEGER CHECK (max_depth >= 0),
    max_runtime_us INTEGER CHECK (max_runtime_us > 0),
    max_cost_micros INTEGER CHECK (max_cost_micros > 0),
    -- Tasks and depth that were wanted beyond the limit, until a person lets the mission go on.
    wanted_tasks INTEGER NOT NULL DEFAULT 0 CHECK (wanted_tasks >= 0),
    wanted_depth INTEGER NOT NULL DEFAULT 0 CHECK (wanted_depth >= 0),
    -- Number of open runs, and the sum of the milliseconds at which they started: their time so far is a difference.
    open_runs INTEGER NOT NULL DEFAULT 0,
    open_since_ms INTEGER NOT NULL DEFAULT 0,
    -- Moves of its tasks, moves at the latest review of progress, and time of the latest move. The time is null where no review is due:
    -- nothing has moved since the latest one, or the mission is over.
    moves INTEGER NOT NULL DEFAULT 0,
    reviewed_moves INTEGER NOT NULL DEFAULT 0,
    moved_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX missions_at_work ON missions (name) WHERE open_runs > 0;
CREATE INDEX missions_moved ON missions (moved_at) WHERE moved_at IS NOT NULL;

-- Tenants: the tasks, comments and attachments of each, their bytes, and its events in the log. The triggers keep the counts. Each act of
-- a worker leaves an event, so the number of events bounds every table.

CREATE TABLE tenant_counts (
    tenant TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    events INTEGER NOT NULL DEFAULT 0
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
-- Before the delete cascades: afterwards no row tells the tenant of the comments and attachments.
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
-- An attachment that is removed alone. With its task, `tenants_task_gone` has subtracted it, and no task has the tenant.
CREATE TRIGGER tenants_file_gone AFTER DELETE ON task_attachments BEGIN
    UPDATE tenant_counts SET entries = entries - 1, bytes = bytes - old.size
        WHERE tenant = (SELECT tenant FROM tasks WHERE id = old.task_id);
END;
CREATE TRIGGER tenants_event_new AFTER INSERT ON task_events BEGIN
    INSERT INTO tenant_counts (tenant, entries, bytes, events) VALUES (new.tenant, 0, 0, 1)
        ON CONFLICT DO UPDATE SET events = events + 1;
END;
CREATE TRIGGER tenants_event_gone AFTER DELETE ON task_events BEGIN
    UPDATE tenant_counts SET events = events - 1 WHERE tenant = old.tenant;
END;

-- Spending, by calendar days of the host.

-- Usage of a day against its budgets. `more` is the number of times that a person has granted the same amount again on that day.
CREATE TABLE day_usage (
    scope TEXT NOT NULL CHECK (scope IN ('tenant', 'profile', 'account')),
    name TEXT NOT NULL CHECK (name <> ''),
    day TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0 CHECK (requests >= 0),
    bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
    more INTEGER NOT NULL DEFAULT 0 CHECK (more >= 0),
    PRIMARY KEY (scope, name, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX day_usage_day ON day_usage (day);

-- Ledger: usage of a day by its payers. The empty text stands for none.
CREATE TABLE spend (
    day TEXT NOT NULL,
    mission TEXT NOT NULL,
    tenant TEXT NOT NULL,
    account TEXT NOT NULL,
    profile TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0 CHECK (requests >= 0),
    bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    cost_micros INTEGER NOT NULL DEFAULT 0 CHECK (cost_micros >= 0),
    PRIMARY KEY (day, mission, tenant, account, profile)
) STRICT, WITHOUT ROWID;

-- Schedules.

-- Definitions of the files, and the time up to which the ticks are decided.
CREATE TABLE schedules (
    name TEXT PRIMARY KEY CHECK (name <> ''),
    spec TEXT NOT NULL CHECK (json_valid(spec)),
    decided INTEGER NOT NULL,
    -- Time up to which ticks were decided before the clock was corrected backward, so that no tick is made twice.
    ahead INTEGER,
    -- Next tick; null if no tick is to come, or if the schedule is paused.
    next INTEGER,
    defined_at INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_next ON schedules (next) WHERE next IS NOT NULL;

-- Outcomes of ticks. The newest of each schedule are kept, and all that wait.
CREATE TABLE schedule_ticks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    schedule TEXT NOT NULL,
    tick INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('made', 'due', 'queued', 'skipped', 'missed', 'failed')),
    -- Number of missed ticks before this one; `more` is 1 if there were more than were counted.
    missed INTEGER NOT NULL DEFAULT 0,
    more INTEGER NOT NULL DEFAULT 0 CHECK (more IN (0, 1)),
    tasks TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tasks)),
    note TEXT,
    decided_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX schedule_ticks_once ON schedule_ticks (schedule, tick);
CREATE INDEX schedule_ticks_queued ON schedule_ticks (schedule, tick) WHERE outcome = 'queued';
CREATE INDEX schedule_ticks_due ON schedule_ticks (tick) WHERE outcome = 'due';

-- Messages to people.

CREATE TABLE notify_subs (
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    platform TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL DEFAULT '',
    user_id TEXT,
    notifier_profile TEXT,
    created_at INTEGER NOT NULL,
    last_event_id INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, platform, chat_id, thread_id)
) STRICT, WITHOUT ROWID;

-- Messages from the transaction of their event until they are delivered or dropped. A number is never used again, because receivers
-- recognize a repeated message by it. A message outlives its task, so it has no reference to it.
CREATE TABLE notify_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    tenant TEXT NOT NULL DEFAULT '',
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL DEFAULT '',
    thread_id TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    notice TEXT NOT NULL CHECK (json_valid(notice)),
    -- Number of events that it stands for: an event that finds the queue of its task or tenant full is counted here.
    events INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead')),
    -- First message of the digest with which it is sent.
    digest INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    failing_since INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX notify_outbox_groups ON notify_outbox (state, channel, chat_id, thread_id, tenant, id);
-- Each look at a board asks for the channels in trouble, also while many messages wait.
CREATE INDEX notify_outbox_failing ON notify_outbox (channel, state, failing_since)
    WHERE state = 'dead' OR failing_since IS NOT NULL;

-- Latest message about a task at an address, by its name at the service: a reply to it is about the task.
CREATE TABLE chat_messages (
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    PRIMARY KEY (task_id, channel, chat_id, thread_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_messages_named ON chat_messages (channel, message_id);

-- Directory in which the tasks of a thread of a chat work.
CREATE TABLE chat_places (
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    path TEXT NOT NULL,
    bound_by TEXT NOT NULL,
    bound_at INTEGER NOT NULL,
    PRIMARY KEY (channel, chat_id, thread_id)
) STRICT, WITHOUT ROWID;

-- Last event that each plugin has taken, and the result of its latest attempt.
CREATE TABLE plugin_cursors (
    plugin TEXT NOT NULL PRIMARY KEY,
    event_id INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    paused_at INTEGER,
    last_error TEXT
) STRICT;

-- Stored replies, by caller, verb and id of the request. With rowids: long replies go to the end of the table, and only their short keys
-- to random places.
CREATE TABLE requests (
    id TEXT NOT NULL,
    caller TEXT NOT NULL,
    verb TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL CHECK (json_valid(reply)),
    created_at INTEGER NOT NULL,
    UNIQUE (caller, verb, id)
) STRICT;
CREATE INDEX requests_created ON requests (created_at);
