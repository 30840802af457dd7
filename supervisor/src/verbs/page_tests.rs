//! The table of verbs in `docs/api.md` is written from the registry. `WRITE_DOCS=1` writes it anew.

use super::groups;
use crate::api::{Audience, Effect, Entry};

/// Where the table begins and where it ends in the page.
const FENCES: (&str, &str) =
    ("<!-- verbs: written from supervisor/src/table.rs -->\n", "<!-- end of verbs -->\n");

fn row(entry: &Entry) -> String {
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

#[test]
fn the_table_of_verbs_in_the_manual_is_that_of_the_registry() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md");
    let manual = std::fs::read_to_string(path).unwrap();
    let (before, rest) = manual.split_once(FENCES.0).unwrap();
    let (written, after) = rest.split_once(FENCES.1).unwrap();
    let expected = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(path, [before, FENCES.0, &expected, FENCES.1, after].concat()).unwrap();
        return;
    }
    assert_eq!(
        written, expected,
        "docs/api.md: write the table anew with `WRITE_DOCS=1 cargo nextest run -p supervisor the_table_of_verbs`"
    );
}
