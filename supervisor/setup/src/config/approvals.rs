//! `[approvals.CLASS]`: approval classes, the people who may approve, and the time until a request expires.

use std::collections::BTreeMap;

use kernel::{ApprovalClass, ApprovalGate, ApprovalRule, ApprovalRules};
use serde::Deserialize;

use base::time::duration::WrittenDuration;

/// Settings of the approval classes. Reloaded on SIGHUP, for requests and decisions from then on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct ApprovalsConfig(BTreeMap<ApprovalClass, ClassConfig>);

/// Settings of one class.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ClassConfig {
    /// Rule for actions of the class; by default they need an approval.
    gate: Option<ApprovalGate>,
    /// People who may approve, unless the task names approvers.
    approvers: Vec<String>,
    /// Text that the approvers read with a request.
    message: Option<String>,
    /// Time after which an undecided request is denied.
    expires: Option<WrittenDuration>,
}

impl ApprovalsConfig {
    /// Returns the approval rules for the boards.
    pub(super) fn rules(&self) -> ApprovalRules {
        let rule = |class: &ClassConfig| ApprovalRule {
            gate: class.gate.unwrap_or(ApprovalGate::Ask),
            approvers: class.approvers.clone(),
            message: class.message.clone(),
            expires: class.expires.map(WrittenDuration::duration),
        };
        ApprovalRules(self.0.iter().map(|(name, class)| (name.clone(), rule(class))).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_class_of_ones_own_has_a_gate_approvers_a_form_and_an_end() {
        let read = |text: &str| toml::from_str::<ApprovalsConfig>(text);
        let text = "[deploy]\ngate = 'allow'\n[spend]\napprovers = ['ann']\nmessage = 'pay: {text}'\nexpires = '2h'\n";
        let rules = read(text).unwrap().rules().0;
        assert_eq!(rules[&"deploy".parse().unwrap()].gate, ApprovalGate::Allow);
        assert_eq!(
            rules[&"spend".parse().unwrap()],
            ApprovalRule {
                gate: ApprovalGate::Ask,
                approvers: vec!["ann".to_owned()],
                message: Some("pay: {text}".to_owned()),
                expires: Some(Duration::from_hours(2)),
            }
        );
        for wrong in ["[Spend]\n", "[spend]\nexpiry = '2h'", "[spend]\ngate = 'maybe'"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
