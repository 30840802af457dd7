//! The flags of what the supervisor does by itself.

use super::table::Proof::{self, Test};
use super::table::Row;

const CREATOR: Proof = Test(
    "tests/notify/outbox.rs",
    "a_question_of_a_worker_comes_with_numbered_choices_and_nobody_is_told_where_none_is_named",
);
const DEAD: Proof = Test(
    "tests/notify/outbox.rs",
    "a_message_that_nobody_takes_is_dead_and_shown_and_can_be_retried_and_dropped",
);

pub(super) const AUTOMATION: &[Row] = &[
    ("create", "notify", CREATOR),
    ("run", "notify", CREATOR),
    ("notify outbox", "channel", DEAD),
    ("notify outbox", "dead", DEAD),
    ("notify retry", "channel", DEAD),
    ("notify drop", "channel", DEAD),
];
