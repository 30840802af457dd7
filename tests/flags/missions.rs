//! Effect of each flag of the verbs for missions.

use super::table::FlagProof::{self, Lines, Test};
use super::table::Row;

const LIMITS: FlagProof = Test(
    "tests/missions.rs",
    "a_runaway_stops_at_the_limit_of_its_own_mission_with_a_question_that_a_number_answers",
);
const PAUSE: FlagProof =
    Test("tests/missions.rs", "a_paused_mission_starts_nothing_and_a_cancelled_one_leaves_no_process");
const SPEND: FlagProof =
    Test("tests/missions.rs", "a_mission_stops_at_the_cent_and_the_ledger_says_who_has_spent_it");
const APPROVAL: FlagProof = Test(
    "tests/missions.rs",
    "a_worker_that_asks_for_an_approval_waits_for_it_and_its_next_run_reads_who_gave_it",
);
const NEW: &str = "mission create x";

pub(super) const MISSIONS: &[Row] = &[
    ("ask", "class", APPROVAL),
    ("create", "mission", Lines("create x", "create x --mission {ready}")),
    ("mission cancel", "reason", Lines("mission cancel {ready}", "mission cancel {ready} --reason r")),
    ("mission create", "assignee", Lines(NEW, "mission create x --assignee bob")),
    ("mission create", "body", Lines(NEW, "mission create x --body b")),
    ("mission create", "body-file", Lines(NEW, "mission create x --body-file {dir}/a.txt")),
    ("mission create", "idempotency-key", Lines(NEW, "mission create x --idempotency-key k")),
    ("mission create", "max-cost", LIMITS),
    ("mission create", "max-depth", LIMITS),
    ("mission create", "max-runtime", LIMITS),
    ("mission create", "max-tasks", LIMITS),
    ("mission create", "quiet", Lines(NEW, "mission create x --quiet")),
    ("mission create", "tenant", Lines(NEW, "mission create x --tenant acme")),
    ("mission create", "workspace", Lines(NEW, "mission create x --workspace dir:{dir}")),
    (
        "mission list",
        "all",
        Lines(
            "create y --mission {ready} ; mission cancel {ready} ; mission list",
            "create y --mission {ready} ; mission cancel {ready} ; mission list --all",
        ),
    ),
    (
        "mission list",
        "tenant",
        Lines("mission create x ; mission list", "mission create x ; mission list --tenant acme"),
    ),
    ("mission pause", "now", PAUSE),
    ("mission pause", "reason", Lines("mission pause {ready}", "mission pause {ready} --reason r")),
    (
        "mission resume",
        "reason",
        Lines(
            "mission pause {ready} ; mission resume {ready}",
            "mission pause {ready} ; mission resume {ready} --reason r",
        ),
    ),
    (
        "gc",
        "spend-retention-days",
        Test("tests/missions/ledger.rs", "the_ledger_has_its_days_until_they_are_collected"),
    ),
    ("spend", "by", Lines("spend --json", "spend --json --by day")),
    ("spend", "since", Lines("spend --json", "spend --json --since 1d")),
    ("spend", "tenant", SPEND),
];
