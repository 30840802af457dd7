//! Classes of actions that need an approval, and the rule that the configuration has for each.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::error::Error;
use crate::model::id::ApprovalClass;
use crate::model::words::words;

words! {
    /// Treatment of the actions of a class.
    "approval gate"
    ApprovalGate {
        /// The action waits until an approver decides.
        Ask => "ask",
        /// The action goes on, with an event in the log.
        Allow => "allow",
        /// The action is refused.
        Deny => "deny",
    }
}

/// Rule of the configuration for one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRule {
    /// Treatment of the actions.
    pub gate: ApprovalGate,
    /// Callers who may approve where the task names no approver; any person when the list is empty.
    pub approvers: Vec<String>,
    /// Text that the approver reads, with the placeholders `{task}`, `{title}`, `{class}` and `{text}`.
    pub message: Option<String>,
    /// Time for a decision, after which the action is denied; no limit when none.
    pub expires: Option<Duration>,
}

impl Default for ApprovalRule {
    fn default() -> Self {
        Self { gate: ApprovalGate::Ask, approvers: Vec::new(), message: None, expires: None }
    }
}

impl ApprovalRule {
    /// Returns the text that the approver reads.
    pub(crate) fn request(&self, class: &ApprovalClass, id: &str, title: &str, text: &str) -> String {
        let Some(form) = &self.message else { return text.to_owned() };
        // A single pass: a placeholder in a title or a text is never expanded.
        let mut out = String::with_capacity(form.len() + text.len());
        let mut rest = form.as_str();
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let places = [("{task}", id), ("{title}", title), ("{class}", class.as_str()), ("{text}", text)];
            if let Some((place, value)) = places.into_iter().find(|(place, _)| from.starts_with(place)) {
                out.push_str(value);
                rest = &from[place.len()..];
            } else {
                out.push('{');
                rest = &from[1..];
            }
        }
        out.push_str(rest);
        out
    }
}

/// Classes that exist without configuration.
const BUILT_IN: [&str; 4] = ["spend", "book", "send_as_me", "destructive"];

/// Rules of the configuration, by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalRules(pub BTreeMap<ApprovalClass, ApprovalRule>);

impl ApprovalRules {
    /// Returns the rule of a class.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a class that is neither built in nor configured.
    pub fn rule_for(&self, class: &ApprovalClass) -> Result<ApprovalRule, Error> {
        if let Some(rule) = self.0.get(class) {
            return Ok(rule.clone());
        }
        if BUILT_IN.contains(&class.as_str()) {
            return Ok(ApprovalRule::default());
        }
        let mut known: Vec<&str> =
            BUILT_IN.into_iter().chain(self.0.keys().map(ApprovalClass::as_str)).collect();
        known.sort_unstable();
        known.dedup();
        Err(Error::invalid(
            "approval_class",
            format!("there is no class `{class}`"),
            format!("use one of {}, or add [approvals.{class}] to supervisor.toml", known.join(", ")),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_request_names_the_task_and_a_text_is_never_a_form() {
        let spend: ApprovalClass = "spend".parse().unwrap();
        let plain = ApprovalRule::default();
        assert_eq!(plain.request(&spend, "t_1", "fly", "420 USD?"), "420 USD?");
        let formed = ApprovalRule {
            message: Some("{class} for {title} ({task}): {text} {x}".to_owned()),
            ..ApprovalRule::default()
        };
        assert_eq!(formed.request(&spend, "t_1", "{text}", "{task}"), "spend for {text} (t_1): {task} {x}");
    }

    #[test]
    fn a_class_is_known_where_it_is_built_in_or_configured() {
        let mine: ApprovalClass = "deploy".parse().unwrap();
        let rule = ApprovalRule { gate: ApprovalGate::Deny, ..ApprovalRule::default() };
        let rules = ApprovalRules([(mine.clone(), rule.clone())].into());
        assert_eq!(rules.rule_for(&mine).unwrap(), rule);
        assert_eq!(rules.rule_for(&"book".parse().unwrap()).unwrap(), ApprovalRule::default());
        let refused = rules.rule_for(&"other".parse().unwrap()).unwrap_err();
        assert!(refused.hint().unwrap().contains("book, deploy, destructive, send_as_me, spend"));
    }
}
