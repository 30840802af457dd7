CREATE TABLE meta (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    board_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    next_uid INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE tasks (
    id TEXT PRIMARY KEY CHECK (id GLOB 't_[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'),
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
    mission TEXT,
    depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
    notes TEXT,
    artifacts TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(artifacts)),
    approval TEXT CHECK (approval IN ('required', 'granted')),
    approval_class TEXT CHECK (approval_class IN ('spend', 'book', 'send_as_me', 'destructive')),
    approver TEXT,
    budget_usd_micros INTEGER,
    policy TEXT,
    not_before INTEGER,
    current_run_id INTEGER REFERENCES task_runs (id) DEFERRABLE INITIALLY DEFERRED,
    block_kind TEXT CHECK (block_kind IN
        ('needs_input', 'capability', 'transient', 'dependency', 'approval', 'budget', 'gave_up')),
    block_reason TEXT,
    question TEXT CHECK (question IS NULL OR json_valid(question)),
    last_block_kind TEXT,
    block_recurrences INTEGER NOT NULL DEFAULT 0,
    consecutive_failures INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    last_failure_error TEXT,
    worker_uid INTEGER CHECK (worker_uid > 0),
    nonspawnable TEXT,
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
CREATE INDEX tasks_ready ON tasks (tenant, assignee, priority DESC, created_at, id)
    WHERE status = 'ready' AND assignee IS NOT NULL;
CREATE INDEX tasks_review ON tasks (tenant, reviewer, priority DESC, created_at, id)
    WHERE status = 'review' AND reviewer IS NOT NULL;
CREATE INDEX tasks_due ON tasks (not_before) WHERE status = 'scheduled';
CREATE INDEX tasks_live_priority ON tasks (priority DESC, created_at, id) WHERE status <> 'archived';
CREATE INDEX tasks_live_created ON tasks (created_at, id) WHERE status <> 'archived';
CREATE INDEX tasks_live_updated ON tasks (updated_at, id) WHERE status <> 'archived';
CREATE INDEX tasks_archived_created ON tasks (created_at, id) WHERE +status = 'archived';
CREATE INDEX tasks_archived_updated ON tasks (updated_at, id) WHERE +status = 'archived';
CREATE INDEX tasks_status ON tasks (status, priority DESC, created_at, id);
CREATE INDEX tasks_live_tenant ON tasks (tenant, priority DESC, created_at, id) WHERE status <> 'archived';
CREATE INDEX tasks_live_assignee ON tasks (ifnull(assignee, ''), priority DESC, created_at, id)
    WHERE status <> 'archived';
CREATE INDEX tasks_ready_age ON tasks (updated_at) WHERE status = 'ready';
CREATE INDEX tasks_assignee ON tasks (assignee, status, priority DESC, created_at, id);
CREATE INDEX tasks_tenant ON tasks (tenant, status, priority DESC, created_at, id);
CREATE INDEX tasks_session ON tasks (session_id) WHERE session_id IS NOT NULL;
CREATE UNIQUE INDEX tasks_current_run ON tasks (current_run_id) WHERE current_run_id IS NOT NULL;
CREATE INDEX tasks_creator ON tasks (creator_run) WHERE creator_run IS NOT NULL;

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

CREATE TABLE task_ids (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE task_links (
    parent_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    child_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    PRIMARY KEY (parent_id, child_id),
    CHECK (parent_id <> child_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_links_child ON task_links (child_id, parent_id);

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
        ('completed', 'blocked', 'review_requested', 'approved', 'changes_requested', 'cancelled', 'reclaimed',
         'preempted', 'crashed', 'timed_out', 'stalled', 'out_of_memory', 'unreported', 'rate_limited', 'lost', 'spawn_failed')),
    holder TEXT NOT NULL CHECK (holder IN ('supervisor', 'hand')),
    purpose TEXT NOT NULL DEFAULT 'work' CHECK (purpose IN ('work', 'review')),
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
    worker_pid INTEGER,
    worker_uid INTEGER,
    exit_code INTEGER,
    signal INTEGER,
    log_path TEXT,
    workspace_path TEXT,
    branch_name TEXT,
    sandbox TEXT CHECK (sandbox IS NULL OR json_valid(sandbox)),
    usage TEXT CHECK (usage IS NULL OR json_valid(usage)),
    stderr_tail TEXT,
    finished TEXT CHECK (finished IS NULL OR json_valid(finished)),
    account TEXT,
    CHECK ((ended_at IS NULL) = (status IN ('running', 'ending'))),
    CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CHECK (status <> 'ending' OR ending_since IS NOT NULL),
    CHECK (holder = 'supervisor' OR claim_expires IS NOT NULL OR ended_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX task_runs_open ON task_runs (task_id) WHERE ended_at IS NULL;
CREATE INDEX task_runs_open_tenant ON task_runs (tenant) WHERE ended_at IS NULL;
CREATE INDEX task_runs_lease ON task_runs (claim_expires) WHERE ended_at IS NULL AND holder = 'hand';
CREATE INDEX task_runs_stop ON task_runs (id)
    WHERE ended_at IS NULL AND holder = 'supervisor' AND stop_reason IS NOT NULL;
CREATE UNIQUE INDEX task_runs_token ON task_runs (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX task_runs_task ON task_runs (task_id, id);

CREATE TABLE task_attachments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    filename TEXT NOT NULL CHECK (filename <> '' AND instr(filename, '/') = 0),
    content_type TEXT,
    size INTEGER NOT NULL CHECK (size >= 0),
    uploaded_by TEXT,
    -- The name of the file with its bytes, in the directory `attachments` beside the board.
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
    created_at INTEGER NOT NULL,
    run_id INTEGER,
    -- For a file that a run declared as a part of its result: the path that was declared.
    artifact TEXT
) STRICT;
CREATE INDEX task_attachments_task ON task_attachments (task_id, id);
CREATE INDEX task_attachments_content ON task_attachments (sha256);

CREATE TABLE holds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('manual', 'rate_limit')),
    scope TEXT NOT NULL CHECK (scope IN ('task', 'profile', 'tenant', 'account')),
    name TEXT NOT NULL CHECK (name <> ''),
    reason TEXT NOT NULL,
    placed_by TEXT NOT NULL,
    run_id INTEGER,
    probe_run INTEGER,
    until INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT,
    CHECK (kind <> 'rate_limit' OR until IS NOT NULL),
    CHECK (probe_run IS NULL OR kind = 'rate_limit'),
    CHECK ((ended_at IS NULL) = (ended_by IS NULL))
) STRICT;
CREATE UNIQUE INDEX holds_live ON holds (scope, name, kind) WHERE ended_at IS NULL;

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

-- With rowids: long replies go to the end of the table, and only their short ids to random places.
CREATE TABLE requests (
    id TEXT NOT NULL UNIQUE,
    caller TEXT NOT NULL,
    reply TEXT NOT NULL CHECK (json_valid(reply)),
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX requests_created ON requests (created_at);
