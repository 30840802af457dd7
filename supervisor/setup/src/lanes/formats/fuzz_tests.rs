//! Fuzz tests of the formats: mutated lines of each.

use std::fs;

use shim::rundir::{Cause, ExitRecord, RunDir};

use super::{Format, MESSAGE_BYTES, NAME_BYTES, TROUBLE_BYTES};

/// Reads mutated output in a format, as a whole and line by line. The stored part is bounded.
fn read(name: &'static str, target: &'static str) {
    let place = tempfile::tempdir().unwrap();
    let run = RunDir::open(place.path()).unwrap();
    let file = place.path().join("stdout");
    let format = Format::try_from(name.to_owned()).unwrap();
    fuzz::Target::new(target, fuzz::Shape::Lines).check(|input| {
        fs::write(&file, input).unwrap();
        let stdout = run.stdout(&ExitRecord::with_cause(Cause::Exited, 1)).unwrap();
        let report = format.read(&stdout);
        let is_short =
            |text: &Option<String>, most| text.as_ref().is_none_or(|text| (1..=most).contains(&text.len()));
        assert!(
            is_short(&report.message, MESSAGE_BYTES),
            "the message has {:?} bytes",
            report.message.map(|text| text.len())
        );
        assert!(
            is_short(&report.trouble, TROUBLE_BYTES)
                && !report.trouble.iter().any(|text| text.contains('\n'))
        );
        for name in [&report.spent.session, &report.spent.model] {
            assert!(
                is_short(name, NAME_BYTES) && !name.iter().any(|name| name.contains(char::is_control)),
                "{name:?}"
            );
        }
        let shown =
            String::from_utf8_lossy(input).lines().filter_map(|line| format.readable(line)).flatten().count();
        let kinds = (report.message.is_some(), report.trouble.is_some(), report.spent.session.is_some());
        format!("{:?} {kinds:?} {} {}", report.finish, format.is_refused(&stdout), shown.min(9))
    });
}

#[test]
fn output_of_claude_is_read_or_passed_over() {
    read("claude-stream-json", "output-claude");
}

#[test]
fn output_of_codex_is_read_or_passed_over() {
    read("codex-jsonl", "output-codex");
}

#[test]
fn output_of_an_app_server_is_read_or_passed_over() {
    read("codex-app-server", "output-codex-app-server");
}

#[test]
fn output_of_the_client_protocol_is_read_or_passed_over() {
    read("acp", "output-acp");
}

#[test]
fn output_of_opencode_is_read_or_passed_over() {
    read("opencode-jsonl", "output-opencode");
}

#[test]
fn output_of_gemini_is_read_or_passed_over() {
    read("gemini-stream-json", "output-gemini");
    read("gemini-json", "output-gemini-json");
}
