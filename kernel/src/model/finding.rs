//! Findings: results of an examination of tasks, of the service, of its configuration and of the host.
//!
//! Every part that examines something reports in this form, so that one renderer shows it and one order sorts it. The JSON
//! has the names of the diagnostics of Hermes Kanban.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::clock::Timestamp;
use crate::model::id::RunId;
use crate::model::remedy::Remedy;
use crate::model::words::words;

words! {
    /// Severity of a finding, in ascending order.
    "severity"
    Severity {
        /// Nothing is wrong.
        Ok => "ok",
        /// An operator should look at it.
        Warning => "warning",
        /// The problem does not go away by itself.
        Error => "error",
        /// The problem has lasted for a long time, or stops all work.
        Critical => "critical",
    }
}

impl Severity {
    /// Severities above `ok`.
    pub const PROBLEMS: [Severity; 3] = [Severity::Warning, Severity::Error, Severity::Critical];
}

words! {
    /// Kind of a finding. The word does not change between releases.
    "kind of finding"
    FindingCode {
        SandboxDenied => "sandbox_denied",
        RepeatedFailures => "repeated_failures",
        GaveUp => "gave_up",
        RepeatedCrashes => "repeated_crashes",
        StuckInBlocked => "stuck_in_blocked",
        BlockUnblockCycling => "block_unblock_cycling",
        MissionPaused => "mission_paused",
        StrandedInReady => "stranded_in_ready",
        Overdue => "overdue",
        EnvironmentBroken => "environment_broken",
        Unkillable => "unkillable",
        SurvivorsUnknown => "survivors_unknown",
        RunNotEnded => "run_not_ended",
        ConfigurationDefect => "configuration_defect",
        UnknownName => "unknown_name",
        PolicyUnenforceable => "policy_unenforceable",
        BudgetSpent => "budget_spent",
        BreakerOpen => "breaker_open",
        MessagesUndelivered => "messages_undelivered",
        PluginFails => "plugin_fails",
        ChatNotConnected => "chat_not_connected",
        A2aNotServed => "a2a_not_served",
        ScheduleFails => "schedule_fails",
        ScheduleStuck => "schedule_stuck",
        BoardNotWritten => "board_not_written",
        DispatchPaused => "dispatch_paused",
        DispatchDisabled => "dispatch_disabled",
        DaemonStopping => "daemon_stopping",
        Root => "root",
        Daemon => "daemon",
        Repair => "repair",
        Board => "board",
        Rows => "rows",
        Replay => "replay",
        Attachments => "attachments",
        Leftovers => "leftovers",
        Configuration => "configuration",
        Channel => "channel",
        Chat => "chat",
        Plugin => "plugin",
        A2a => "a2a",
        A2aSender => "a2a_sender",
        Dashboard => "dashboard",
        Files => "files",
        SystemCalls => "system_calls",
        View => "view",
        BoardAccess => "board_access",
        Cgroups => "cgroups",
        Users => "users",
        Scripts => "scripts",
        File => "file",
        Claims => "claims",
        Policy => "policy",
        Network => "network",
        Secret => "secret",
        Broker => "broker",
        Login => "login",
        Program => "program",
        Interpreter => "interpreter",
        Hold => "hold",
        Run => "run",
        Start => "start",
        Ending => "ending",
        Report => "report",
        Usage => "usage",
    }
}

/// Result of an examination: a problem with its remedies, or a part that works.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    #[serde(rename = "kind")]
    pub code: FindingCode,
    pub severity: Severity,
    /// Examined part, such as `channel ops`; empty for a finding about a task, which is listed with its task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// Result in one line.
    #[serde(rename = "title")]
    pub text: String,
    /// Details in words; empty if the text says all.
    #[serde(default)]
    pub detail: String,
    /// Commands and advice that may help.
    #[serde(rename = "actions", default)]
    pub remedies: Vec<Remedy>,
    /// History of the problem, if it is known.
    #[serde(flatten)]
    pub seen: Option<Seen>,
}

/// History of a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Time at which the problem began.
    pub first_seen_at: Timestamp,
    /// Time at which the problem last showed.
    pub last_seen_at: Timestamp,
    /// Number of times that the problem showed.
    pub count: u32,
    /// Run in which the problem last showed.
    pub run_id: Option<RunId>,
    /// Figures of the problem.
    pub data: Value,
}

impl Seen {
    /// Makes the history of a problem that lasts from a time until now.
    pub fn lasting(first_seen_at: Timestamp, now: Timestamp) -> Self {
        Seen { first_seen_at, last_seen_at: now, count: 1, run_id: None, data: json!({}) }
    }
}

impl Finding {
    /// Makes a finding whose subject is the code in words.
    pub fn new(code: FindingCode, severity: Severity, text: impl Into<String>) -> Self {
        Finding {
            code,
            severity,
            subject: code.as_str().replace('_', " "),
            text: text.into(),
            detail: String::new(),
            remedies: Vec::new(),
            seen: None,
        }
    }

    /// Makes the finding that a part works.
    pub fn ok(code: FindingCode, text: impl Into<String>) -> Self {
        Finding::new(code, Severity::Ok, text)
    }

    pub fn warning(code: FindingCode, text: impl Into<String>) -> Self {
        Finding::new(code, Severity::Warning, text)
    }

    pub fn error(code: FindingCode, text: impl Into<String>) -> Self {
        Finding::new(code, Severity::Error, text)
    }

    /// Appends the name of the examined part to the subject.
    #[must_use]
    pub fn named(self, name: impl std::fmt::Display) -> Self {
        Finding { subject: format!("{} {name}", self.subject), ..self }
    }

    /// Replaces the subject.
    #[must_use]
    pub fn about(self, subject: impl Into<String>) -> Self {
        Finding { subject: subject.into(), ..self }
    }

    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Finding { detail: detail.into(), ..self }
    }

    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// Adds a remedy that is no command of this program.
    #[must_use]
    pub fn advice(self, advice: impl Into<String>) -> Self {
        self.remedy(Remedy::advice(advice))
    }

    #[must_use]
    pub fn seen(self, seen: Seen) -> Self {
        Finding { seen: Some(seen), ..self }
    }

    /// Returns true for an error: something does not work until a person acts.
    pub fn is_error(&self) -> bool {
        self.severity >= Severity::Error
    }

    /// Returns the finding without its details, on one line.
    pub fn line(&self) -> String {
        if self.subject.is_empty() { self.text.clone() } else { format!("{}: {}", self.subject, self.text) }
    }

    /// Returns the finding with its details and remedies but without its subject, for the warnings of a reply.
    pub fn sentence(&self) -> String {
        let detail = Some(self.detail.clone()).filter(|detail| !detail.is_empty());
        let remedies = self.remedies.iter().filter(|remedy| remedy.suggested).map(ToString::to_string);
        [self.text.clone()].into_iter().chain(detail).chain(remedies).collect::<Vec<_>>().join("; ")
    }

    /// Sorts findings by severity, the most severe first. The sort is stable.
    pub fn sort(findings: &mut [Finding]) {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    }

    /// Returns a line for each code with an error: its first finding, and the number of the others.
    pub fn errors_in_lines(findings: &[Finding]) -> Vec<String> {
        let mut lines: Vec<(&Finding, usize)> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.is_error()) {
            match lines.iter_mut().find(|(first, _)| first.code == finding.code) {
                Some((_, others)) => *others += 1,
                None => lines.push((finding, 0)),
            }
        }
        let line = |(first, others): (&Finding, usize)| match others {
            0 => first.line(),
            others => format!("{} (and {others} more)", first.line()),
        };
        lines.into_iter().map(line).collect()
    }
}

/// The finding with its details and remedies, on one line.
impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.subject.is_empty() {
            f.write_str(&self.sentence())
        } else {
            write!(f, "{}: {}", self.subject, self.sentence())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_by_severity_and_errors_of_one_kind_share_a_line() {
        let channel = |name: &str| Finding::error(FindingCode::Channel, "it takes no messages").named(name);
        let mut findings = vec![
            Finding::ok(FindingCode::Root, "it can be served"),
            channel("ops"),
            Finding::new(FindingCode::DispatchPaused, Severity::Critical, "nothing is started")
                .about("dispatch"),
            channel("dev"),
            Finding::warning(FindingCode::Plugin, "it fails").named("mail"),
        ];

        Finding::sort(&mut findings);

        let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["dispatch_paused", "channel", "channel", "plugin", "root"]);
        assert_eq!(
            Finding::errors_in_lines(&findings),
            ["dispatch: nothing is started", "channel ops: it takes no messages (and 1 more)"]
        );
    }

    #[test]
    fn the_json_has_the_names_of_hermes_kanban_and_is_read_back_with_and_without_a_history() {
        let finding = Finding::error(FindingCode::Login, "there is none").detail("no key").advice("log in");
        let json = serde_json::to_value(&finding).unwrap();
        let action = json!({ "kind": "advice", "label": "log in", "payload": {}, "suggested": true });
        assert_eq!(
            json,
            json!({
                "kind": "login", "severity": "error", "subject": "login", "title": "there is none", "detail": "no key",
                "actions": [action],
            })
        );
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
        let seen = finding.seen(Seen::lasting(Timestamp::from_secs(1), Timestamp::from_secs(2)));
        let json = serde_json::to_value(&seen).unwrap();
        assert_eq!((&json["first_seen_at"], &json["data"]), (&json!(1), &json!({})));
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), seen);
        assert_eq!(seen.to_string(), "login: there is none; no key; log in");
    }
}
