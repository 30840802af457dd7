//! Effect of each flag of the verbs for triage.

use super::table::FlagProof::{self, Test};
use super::table::Row;

const ALL: FlagProof = Test("tests/triage.rs", "all_ideas_of_a_tenant_are_asked_about_once");
const DIVIDED: FlagProof =
    Test("tests/triage.rs", "all_ideas_of_a_tenant_are_divided_in_the_name_of_somebody");
const ASKED: FlagProof =
    Test("tests/triage.rs", "a_plan_asks_for_a_profile_that_a_person_makes_and_its_tasks_wait_for_that");
const PLAN: FlagProof =
    Test("tests/triage.rs", "a_mission_waits_for_its_plan_and_then_for_all_that_is_planned");

pub(super) const TRIAGE: &[Row] = &[
    ("decompose", "all", DIVIDED),
    ("decompose", "author", DIVIDED),
    ("decompose", "tenant", DIVIDED),
    ("mission plan", "author", PLAN),
    ("profile create", "proposed-for", ASKED),
    ("specify", "all", ALL),
    ("specify", "author", ALL),
    ("specify", "tenant", ALL),
];
