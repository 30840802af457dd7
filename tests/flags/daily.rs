//! What each flag of the verbs of every day changes.

use super::table::Proof::{self, Lines, Test};
use super::table::Row;

const FOLLOW: Proof =
    Test("tests/following.rs", "a_log_is_shown_whole_or_its_tail_and_can_be_followed_to_the_end_of_the_run");
const LOGS: Proof =
    Test("tests/daily.rs", "logs_of_several_tasks_say_who_wrote_each_line_and_end_as_their_runs_do");
const RUN: &str = "run -d true";
const WAIT: Proof = Test("tests/daily.rs", "run_detached_prints_the_id_and_wait_ends_as_the_task_does");

pub(super) const DAILY: &[Row] = &[
    ("logs", "follow", FOLLOW),
    ("logs", "run", FOLLOW),
    ("logs", "tail", FOLLOW),
    ("logs", "lines", LOGS),
    ("logs", "since", LOGS),
    ("run", "assignee", Lines(RUN, "run -d --assignee bob true")),
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
