//! The flags of what the supervisor does by itself.

use super::table::FlagProof::{self, Test};
use super::table::Row;

const CREATOR: FlagProof = Test(
    "tests/notify/outbox.rs",
    "a_question_of_a_worker_comes_with_numbered_choices_and_nobody_is_told_where_none_is_named",
);
const DEAD: FlagProof = Test(
    "tests/notify/outbox.rs",
    "a_message_that_nobody_takes_is_dead_and_shown_and_can_be_retried_and_dropped",
);

const MADE: FlagProof = Test(
    "tests/notify/outbox.rs",
    "who_has_a_schedule_a_mission_a_fleet_or_a_swarm_make_tasks_hears_of_them",
);
const WRITTEN: FlagProof =
    Test("tests/plugins/events.rs", "the_plugin_that_is_written_works_in_both_languages_and_for_each_user");
const INSTALLED: FlagProof = Test(
    "tests/plugins/events.rs",
    "an_installation_asks_first_refuses_a_second_one_and_keeps_the_state_of_one_that_is_replaced",
);
const RESUMED: FlagProof = Test(
    "tests/plugins/events.rs",
    "a_plugin_that_fails_waits_is_paused_and_named_and_goes_on_when_it_is_resumed",
);

const OPENED: FlagProof =
    Test("tests/dashboard/session.rs", "open_starts_the_browser_that_is_named_with_a_link_for_its_user");
const OF_TENANT: FlagProof =
    Test("tests/dashboard/session.rs", "the_session_of_a_tenant_sees_that_tenant_alone");
const REVOKED: FlagProof = Test(
    "tests/dashboard/session.rs",
    "a_session_that_is_revoked_ends_with_its_streams_and_makes_no_links_itself",
);

pub(super) const AUTOMATION: &[Row] = &[
    ("dashboard", "open", OPENED),
    ("dashboard", "tenant", OF_TENANT),
    ("dashboard revoke", "all", REVOKED),
    ("plugin create", "language", WRITTEN),
    ("plugin create", "directory", WRITTEN),
    ("plugin install", "yes", INSTALLED),
    ("plugin install", "name", INSTALLED),
    ("plugin install", "force", INSTALLED),
    ("plugin resume", "skip", RESUMED),
    ("create", "notify", CREATOR),
    ("run", "notify", CREATOR),
    ("mission create", "notify", MADE),
    ("swarm", "notify", MADE),
    ("dispatch-fleet", "notify", MADE),
    ("notify outbox", "channel", DEAD),
    ("notify outbox", "dead", DEAD),
    ("notify retry", "channel", DEAD),
    ("notify drop", "channel", DEAD),
];
