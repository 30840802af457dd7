//! Texts that stand twice and must agree: the table of verbs and the kinds of events in `docs/api.md`, which
//! `WRITE_DOCS=1` rewrites, and the arguments that a scheduled task has beside those of `create`.

use std::collections::BTreeSet;

use super::{Create, groups};
use api::{Audience, Effect, VerbEntry};
use setup::automation::schedules::TaskText;

/// Markers before and after the table in the page.
const FENCES: (&str, &str) =
    ("<!-- verbs: written from supervisor/base/src/table.rs -->\n", "<!-- end of verbs -->\n");

fn row(entry: &VerbEntry) -> String {
    let request = (entry.request)();
    let about = request.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    // The first sentence, in one line and without the full stop that a command's help has none of.
    let about = about.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let about = about.split(". ").next().unwrap_or_default().trim_end_matches('.').replace('|', "\\|");
    let callers = match entry.audience {
        Audience::Operator => "operators",
        Audience::Orchestrator => "operators and orchestrators",
        Audience::Worker => "operators and workers",
    };
    let callers = if entry.members { format!("{callers}, users of tenants") } else { callers.to_owned() };
    let needs = match entry.effect {
        Effect::Read => "reads",
        Effect::Write => "writes",
        Effect::Daemon => "a daemon does it",
    };
    format!("| `{}` | {about} | {callers} | {needs} |\n", entry.name)
}

fn page() -> String {
    let mut text = String::new();
    for (group, entries) in groups().into_iter().filter(|(_, entries)| !entries.is_empty()) {
        text.extend([
            "\n**",
            group,
            "**\n\n| verb | what it does | callers | the board |\n|---|---|---|---|\n",
        ]);
        text.extend(entries.iter().map(row));
    }
    text + "\n"
}

/// Markers before and after the kinds of events.
const KINDS: (&str, &str) =
    ("<!-- kinds: written from kernel/src/model/event.rs -->\n", "<!-- end of kinds -->\n");

/// Compares the text between two markers of the page, or writes it.
fn stands_between(fences: (&str, &str), expected: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let (before, rest) = manual.split_once(fences.0).unwrap();
    let (written, after) = rest.split_once(fences.1).unwrap();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(path, [before, fences.0, expected, fences.1, after].concat()).unwrap();
        return;
    }
    assert_eq!(
        written, expected,
        "docs/api.md: write it anew with `WRITE_DOCS=1 cargo nextest run -p verbs --test-threads 1 page_tests`"
    );
}

#[test]
fn the_table_of_verbs_in_the_manual_is_that_of_the_registry() {
    stands_between(FENCES, &page());
}

#[test]
fn the_kinds_of_events_in_the_manual_are_all_that_there_are() {
    let kinds: Vec<String> = kernel::EventKind::ALL.iter().map(|kind| format!("`{kind}`")).collect();
    stands_between(KINDS, &(kinds.join(", ") + "\n"));
}

#[test]
fn a_task_of_a_schedule_takes_what_create_takes_but_for_what_the_schedule_decides() {
    let names = |schema: schemars::Schema| -> BTreeSet<String> {
        schema.as_value()["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let (create, text) = (names(schemars::schema_for!(Create)), names(schemars::schema_for!(TaskText)));
    let lacking: Vec<&str> = create.difference(&text).map(String::as_str).collect();
    assert_eq!(
        lacking,
        [
            "created_by",
            "idempotency_key",
            "initial_status",
            "mission",
            "not_before",
            "notify",
            "session",
            "step_key",
            "workflow_template_id"
        ],
        "supervisor/setup/src/automation/schedules/task_text.rs takes the field as well, or it is named here"
    );
    assert_eq!(text.difference(&create).collect::<Vec<_>>(), ["name", "notes"]);
}
