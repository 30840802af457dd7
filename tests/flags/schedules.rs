//! Effect of each flag of `schedules`.

use super::table::FlagProof::{self, Test};
use super::table::Row;

const ADDED: FlagProof =
    Test("tests/schedules.rs", "a_schedule_is_added_with_all_that_is_said_and_shown_paused_run_and_removed");
const FILES: FlagProof = Test("tests/schedules.rs", "a_schedule_is_added_changed_and_imported_from_files");

pub(super) const SCHEDULES: &[Row] = &[
    ("schedules add", "assignee", ADDED),
    ("schedules add", "at", ADDED),
    ("schedules add", "body", ADDED),
    ("schedules add", "body-file", FILES),
    ("schedules add", "channel", ADDED),
    ("schedules add", "check", ADDED),
    (
        "schedules add",
        "commit",
        Test("tests/commits.rs", "the_handling_of_uncommitted_changes_is_kept_wherever_a_task_is_described"),
    ),
    ("schedules add", "command", FILES),
    ("schedules add", "cron", ADDED),
    ("schedules add", "description", ADDED),
    ("schedules add", "end", ADDED),
    ("schedules add", "every", ADDED),
    ("schedules add", "file", FILES),
    ("schedules add", "force", FILES),
    ("schedules add", "jitter", ADDED),
    ("schedules add", "max-retries", ADDED),
    ("schedules add", "max-runtime", ADDED),
    ("schedules add", "missed", ADDED),
    ("schedules add", "overlap", ADDED),
    ("schedules add", "paused", ADDED),
    ("schedules add", "policy", ADDED),
    ("schedules add", "pool", ADDED),
    ("schedules add", "priority", ADDED),
    ("schedules add", "skill", ADDED),
    ("schedules add", "start", ADDED),
    ("schedules add", "tenant", ADDED),
    ("schedules add", "time-zone", ADDED),
    ("schedules add", "title", ADDED),
    ("schedules add", "workspace", ADDED),
    ("schedules edit", "file", FILES),
    ("schedules import", "force", FILES),
    ("schedules import", "name", FILES),
];
