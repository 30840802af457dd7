//! `hermes`: text for people, followed by a line from `supervisor __kanban` about the use of the Hermes conversations
//! in this run.
//!
//! If its service does not reply, Hermes (0.19) exits with a code and prints the reason in place of a reply: `HTTP
//! 401: invalid key`. A model's words must never be read as such a reason, so the line states which of the two the
//! text is.

use std::sync::LazyLock;

use kernel::{ProjectedUse, Spent};
use serde::{Deserialize, Serialize};

use super::events::each;
use super::{Finish, WorkerReport, final_message, name, service, trouble};
use shim::rundir::Stdout;

/// Type of that line.
const KIND: &str = "hermes_usage";
/// Beginning of such a line, as [`usage_line`] writes it.
static BEGINS: LazyLock<String> = LazyLock::new(|| format!("{{\"type\":\"{KIND}\""));

#[derive(Serialize, Deserialize)]
struct UsageLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    spent: Spent,
    /// True if the program failed and its text is not a model's reply.
    #[serde(default)]
    is_failed: bool,
}

/// Returns the usage line for a program that ended with a code.
pub fn usage_line(used: ProjectedUse, code: u8) -> String {
    let line =
        UsageLine { kind: KIND.to_owned(), is_failed: code != 0 && !used.is_answered, spent: used.spent };
    serde_json::to_string(&line).unwrap_or_default()
}

pub(super) fn read(stdout: &Stdout) -> WorkerReport {
    let mut report = WorkerReport { finish: Finish::Well, ..WorkerReport::default() };
    let mut is_failed = false;
    each(stdout, |line: UsageLine| {
        if line.kind == KIND {
            is_failed = line.is_failed;
            report.spent = Spent {
                session: line.spent.session.as_deref().and_then(name),
                model: line.spent.model.as_deref().and_then(name),
                ..line.spent
            };
        }
    });
    let lines = stdout.tail().lines().filter(|line| !line.starts_with(BEGINS.as_str()));
    report.message = final_message(&lines.collect::<Vec<_>>().join("\n"));
    if is_failed {
        let why = report.message.as_deref().and_then(|text| text.lines().next_back()).unwrap_or_default();
        report.finish = status_in(why).map_or(Finish::Failed, |status| service::by_status(status, None));
        report.trouble = trouble(why);
    }
    report
}

/// Returns the HTTP status that a failure names, as in `API call failed after 3 retries: HTTP 500: …`.
fn status_in(why: &str) -> Option<u64> {
    let (_, rest) = why.split_once("HTTP ")?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use shim::rundir::{Cause, ExitRecord, RunDir};

    use super::super::Refuser;
    use super::*;

    /// Reads an output; its end is also in the exit record.
    fn report_of(output: &str) -> WorkerReport {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("stdout"), output).unwrap();
        let record =
            ExitRecord { stdout_tail: output.to_owned(), ..ExitRecord::with_cause(Cause::Exited, 1) };
        read(&RunDir::open(place.path()).unwrap().stdout(&record).unwrap())
    }

    #[test]
    fn the_text_is_the_message_and_the_line_behind_it_what_was_used() {
        let spent = Spent {
            session: Some("20261128_100043_bb72cf".to_owned()),
            model: Some("large".to_owned()),
            input_tokens: 145,
            cached_tokens: 30,
            output_tokens: 22,
            cost_micros: Some(250_000),
            turns: Some(4),
            ..Spent::default()
        };
        let used = ProjectedUse { spent, is_answered: true };
        let report = report_of(&format!("It is done.\nAll of it.\n\n{}\n", usage_line(used, 0)));
        assert_eq!(report.message.as_deref(), Some("It is done.\nAll of it."));
        assert_eq!(report.spent.session.as_deref(), Some("20261128_100043_bb72cf"));
        assert_eq!((report.spent.input_tokens, report.spent.output_tokens), (145, 22));
        assert_eq!((report.spent.cost_micros, report.spent.turns), (Some(250_000), Some(4)));
        let plain = report_of("no more than text\n{\"type\":\"other\"}\n");
        assert_eq!(plain.message.as_deref(), Some("no more than text\n{\"type\":\"other\"}"));
        assert_eq!(plain.spent, Spent::default());
    }

    #[test]
    fn a_text_of_a_program_that_failed_without_an_answer_says_why_and_that_of_a_model_never_does() {
        let report = |text: &str, is_answered, code| {
            let used = ProjectedUse { is_answered, ..ProjectedUse::default() };
            report_of(&format!("{text}\n\n{}\n", usage_line(used, code)))
        };
        let refused = report("a warning\nHTTP 401: invalid key", false, 1);
        assert_eq!(refused.finish, Finish::NotLoggedIn(Refuser::Service));
        assert_eq!(refused.trouble.as_deref(), Some("HTTP 401: invalid key"));
        let outage = report("API call failed after 3 retries: HTTP 500: no", false, 1);
        assert_eq!(outage.finish, Finish::Unavailable);
        assert_eq!(report("no config", false, 1).finish, Finish::Failed);
        assert_eq!(report("HTTP 401: invalid key", true, 1).finish, Finish::Well, "a model says so");
        assert_eq!(report("HTTP 401: invalid key", false, 0).finish, Finish::Well);
    }
}
