//! Effect of each flag of the everyday verbs.

use super::table::FlagProof::{self, Lines, Test};
use super::table::Row;

const FOLLOW: FlagProof =
    Test("tests/following.rs", "a_log_is_shown_whole_or_its_tail_and_can_be_followed_to_the_end_of_the_run");
const LOGS: FlagProof =
    Test("tests/daily.rs", "logs_of_several_tasks_say_who_wrote_each_line_and_end_as_their_runs_do");
const RUN: &str = "run -d true";
const WAIT: FlagProof = Test("tests/daily.rs", "run_detached_prints_the_id_and_wait_ends_as_the_task_does");

const KILL: FlagProof =
    Test("tests/cancelled.rs", "a_killed_worker_is_gone_at_once_with_all_that_it_has_started");
const TREE: FlagProof = Test("tests/health.rs", "status_shows_the_processes_of_a_worker_and_its_title");
const VERBOSE: FlagProof =
    Test("tests/health.rs", "the_layers_of_a_sandbox_are_shown_where_they_are_asked_for");

const FORGET: FlagProof = Test(
    "tests/logins.rs",
    "a_login_is_copied_into_each_run_of_its_profile_and_tenant_and_no_run_changes_it",
);
const PROFILE: FlagProof =
    Test("tests/profiles.rs", "a_profile_is_created_with_all_that_is_said_shown_exported_and_removed");
const UNITS: FlagProof =
    Test("tests/service.rs", "the_units_are_printed_for_anybody_and_installed_by_root_alone");
const HOST: FlagProof =
    Test("tests/breakers.rs", "a_tenant_whose_every_start_dies_starts_nothing_and_no_other_waits_for_it");
const GET: FlagProof = Test("tests/daily.rs", "an_attached_file_is_copied_out_and_replaces_none");

const ORDERED: FlagProof = Test(
    "tests/health.rs",
    "status_shows_what_workers_said_last_and_those_that_are_asked_for_in_their_order",
);
const STATIC: FlagProof = Test("tests/help.rs", "completions_and_manual_pages_cover_every_verb");
const TOP: FlagProof = Test("tests/top.rs", "the_list_is_narrow_from_the_start_where_that_is_asked_for");

const FLEET: FlagProof = Test("tests/fleet.rs", "what_is_chosen_and_said_decides_what_is_created");

const TENANT: FlagProof =
    Test("tests/tenants.rs", "a_tenant_is_created_with_all_that_is_said_shown_edited_and_removed");
const GROUND: FlagProof = Test(
    "tests/tenants.rs",
    "a_directory_that_is_a_link_or_somebody_elses_is_refused_and_no_user_is_made_unasked",
);
const EXPORT: FlagProof =
    Test("tests/tenants.rs", "a_tenant_is_exported_whole_and_alone_and_read_into_another_board");
const POOLS: FlagProof =
    Test("tests/edits.rs", "pools_of_a_task_come_and_go_and_one_that_is_not_configured_is_a_warning");

const TYPE: FlagProof =
    Test("tests/terminals.rs", "keys_are_typed_by_a_command_and_refused_where_there_is_no_terminal");

const FORK: FlagProof = Test("tests/forks.rs", "a_fork_knows_what_its_origin_knew_and_leaves_that_as_it_was");
const FORKED: FlagProof = Test("tests/forks.rs", "what_cannot_be_forked_is_refused_with_what_to_do");

pub(super) const DAILY: &[Row] = &[
    ("type", "enter", TYPE),
    ("fork", "run", FORKED),
    ("fork", "title", FORK),
    ("tenant create", "assignee", TENANT),
    ("tenant create", "budget", TENANT),
    ("tenant create", "dir", TENANT),
    ("tenant create", "group", TENANT),
    ("tenant create", "max-running", TENANT),
    ("tenant edit", "max-running", TENANT),
    ("tenant create", "max-runtime", TENANT),
    ("tenant create", "member", TENANT),
    ("tenant create", "on-board", TENANT),
    ("tenant create", "policy", TENANT),
    ("tenant create", "pool", TENANT),
    ("tenant create", "quota", TENANT),
    ("tenant create", "unix-user", TENANT),
    ("tenant edit", "unix-user", TENANT),
    ("tenant create", "create-user", GROUND),
    ("tenant edit", "unset", TENANT),
    ("tenant rm", "cancel", TENANT),
    ("export", "tenant", EXPORT),
    ("dispatch-fleet", "body", FLEET),
    ("dispatch-fleet", "body-file", FLEET),
    (
        "dispatch-fleet",
        "creator",
        Test("tests/schedules/creators.rs", "the_command_of_a_schedule_acts_for_the_user_who_saved_it"),
    ),
    ("dispatch-fleet", "dry-run", FLEET),
    ("dispatch-fleet", "jitter", FLEET),
    ("dispatch-fleet", "limit", FLEET),
    ("dispatch-fleet", "match", FLEET),
    ("dispatch-fleet", "max-runtime", FLEET),
    ("dispatch-fleet", "policy", FLEET),
    ("dispatch-fleet", "priority", FLEET),
    ("dispatch-fleet", "tenant", FLEET),
    ("dispatch-fleet", "tenant-from-directory", FLEET),
    ("dispatch-fleet", "tick", FLEET),
    ("dispatch-fleet", "title", FLEET),
    ("attach-get", "output", GET),
    ("edit", "clear-pools", POOLS),
    ("edit", "pool", Lines("edit {ready} --title a", "edit {ready} --title a --pool gpu")),
    ("edit", "remove-pool", POOLS),
    ("cancel", "reason", Lines("cancel {ready}", "cancel {ready} --reason r")),
    (
        "daemon",
        "log-format",
        Test("tests/service.rs", "the_log_is_one_json_object_a_line_where_that_is_asked_for"),
    ),
    ("kill", "reason", KILL),
    ("kill", "signal", KILL),
    ("completions", "static", STATIC),
    ("list", "columns", Lines("list", "list --columns id,age")),
    ("list", "format", Lines("list", "list --format tsv")),
    ("list", "search", Lines("list", "list --search done")),
    ("list", "since", Lines("list", "list --since 2100-01-01")),
    ("login", "forget", FORGET),
    ("login", "tenant", FORGET),
    ("profile create", "home", PROFILE),
    ("profile create", "host", PROFILE),
    ("release", "host", HOST),
    ("release", "host-of", HOST),
    ("retry", "reason", Lines("retry {done}", "retry {done} --reason r")),
    ("service install", "no-start", UNITS),
    ("service install", "print", UNITS),
    ("show", "verbose", VERBOSE),
    ("status", "assignee", ORDERED),
    ("status", "sort", ORDERED),
    ("status", "tree", TREE),
    ("top", "search", TOP),
    ("top", "tenant", TOP),
    ("logs", "follow", FOLLOW),
    ("logs", "run", FOLLOW),
    ("logs", "bytes", FOLLOW),
    ("logs", "lines", LOGS),
    ("logs", "since", LOGS),
    ("run", "assignee", Lines(RUN, "run -d --assignee bob true")),
    (
        "run",
        "commit",
        Test("tests/commits.rs", "the_handling_of_uncommitted_changes_is_kept_wherever_a_task_is_described"),
    ),
    ("run", "detach", WAIT),
    ("run", "here", Lines(RUN, "run -d --here true")),
    ("run", "max-retries", Lines(RUN, "run -d --max-retries 7 true")),
    ("run", "max-runtime", Lines(RUN, "run -d --max-runtime 7m true")),
    ("run", "policy", Lines(RUN, "run -d --policy strict true")),
    ("run", "priority", Lines(RUN, "run -d --priority 7 true")),
    ("run", "tenant", Lines(RUN, "run -d --tenant acme true")),
    ("run", "title", Lines(RUN, "run -d --title t true")),
    ("run", "workspace", Lines(RUN, "run -d --workspace dir:/tmp true")),
    ("wait", "any", WAIT),
    ("wait", "timeout", WAIT),
];
