//! A start that failed before the worker's command, as data: the step, the reason, and the runs that fail in the same
//! way.
//!
//! `confine` reports it to the shim, and the shim puts it into the exit record. The words are for people; the daemon
//! decides by `step`, `errno` and `concern` alone.

use std::error::Error;

use serde::{Deserialize, Serialize};

use crate::shortage;

/// Limit on the text of an error, in bytes. The exit record needs room for its tails.
const ERROR_BYTES: usize = 2048;

/// A step on the way to the command that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStart {
    /// The step at which the start failed.
    pub step: Step,
    /// Text of the error, with its causes.
    pub error: String,
    /// Error number of the system call that failed, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// Scope of the failure: the runs that fail for the same reason.
    #[serde(default)]
    pub concern: Concern,
}

/// The steps from the shim's first instruction to the worker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The shim's own setup.
    Shim,
    Spec,
    /// Entering the run's cgroup.
    Cgroup,
    /// Making the run's pid namespace.
    Namespace,
    /// Writing the shim's identity.
    Pid,
    /// Taking the lease on the workspace.
    Lease,
    /// Opening the files that take the output.
    Log,
    /// Making the timer of the deadline.
    Timer,
    /// Starting `confine`.
    Spawn,
    /// The start of `confine`, or its end without a report.
    Confine,
    /// Making the policy concrete for this run.
    Plan,
    /// Applying the policy to the process itself.
    Apply,
    /// Entering the directory in which the command starts.
    Cwd,
    /// Reporting the restrictions.
    Report,
    /// Executing the command.
    Exec,
    /// A step of another release.
    #[serde(other)]
    Unknown,
}

/// Scope of a failure: the runs that fail for the same reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// The failure concerns this run alone.
    #[default]
    Run,
    /// Each run of its lane under its policy.
    Lane,
    /// Each run under its policy.
    Policy,
    /// Each run of the root.
    Root,
    /// No other run: another run has the workspace for the moment.
    Moment,
    /// No other run: the host lacks a resource for now.
    Host,
    /// Runs that meet a limit of the policy. A shortage on the host would look the same.
    Limit,
    /// A scope that only another release knows.
    #[serde(other)]
    Unknown,
}

impl FailedStart {
    /// Describes `error` with all its causes.
    pub fn new(step: Step, error: &(dyn Error + 'static)) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let next = inner.to_string();
            // Some errors repeat their cause in their own text.
            if !text.ends_with(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = inner.source();
        }
        text.truncate(text.floor_char_boundary(ERROR_BYTES));
        Self { step, error: text, errno: shortage::number_of(error), concern: step.concern() }
    }

    /// Replaces the scope that the step implies.
    #[must_use]
    pub fn concerning(self, concern: Concern) -> Self {
        Self { concern, ..self }
    }
}

impl Step {
    /// Returns the scope that a failure of the step implies.
    fn concern(self) -> Concern {
        match self {
            Self::Shim
            | Self::Spec
            | Self::Cgroup
            | Self::Namespace
            | Self::Pid
            | Self::Log
            | Self::Timer
            | Self::Spawn => Concern::Root,
            Self::Lease => Concern::Moment,
            Self::Confine | Self::Plan | Self::Apply | Self::Report => Concern::Policy,
            Self::Cwd => Concern::Run,
            Self::Exec => Concern::Lane,
            Self::Unknown => Concern::Unknown,
        }
    }

    /// Returns the word that people read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Shim => "shim",
            Self::Spec => "spec",
            Self::Cgroup => "cgroup",
            Self::Namespace => "namespace",
            Self::Pid => "pid",
            Self::Lease => "lease",
            Self::Log => "log",
            Self::Timer => "timer",
            Self::Spawn => "spawn",
            Self::Confine => "confine",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Cwd => "cwd",
            Self::Report => "report",
            Self::Exec => "exec",
            Self::Unknown => "start",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_failure_names_all_its_causes_and_carries_the_number() {
        let failed = FailedStart::new(Step::Exec, &Outer(io::Error::from_raw_os_error(24)));
        assert!(failed.error.starts_with("outer: "), "{}", failed.error);
        assert_eq!((failed.errno, failed.concern), (Some(24), Concern::Lane));
    }

    #[test]
    fn what_another_release_wrote_is_read() {
        let old: FailedStart = serde_json::from_str(r#"{"step":"exec","error":"no"}"#).unwrap();
        assert_eq!((old.step, old.errno, old.concern), (Step::Exec, None, Concern::Run));
        let new = r#"{"step":"teleport","error":"no","concern":"galaxy","more":1}"#;
        let new: FailedStart = serde_json::from_str(new).unwrap();
        assert_eq!((new.step, new.concern), (Step::Unknown, Concern::Unknown));
    }
}
