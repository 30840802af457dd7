//! Steps of one delivery, which `notify test` shows, and the reason why a step fails.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::steps::Step;

/// Result of a test of a channel.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    pub channel: String,
    /// True if the channel has accepted the message.
    pub ok: bool,
    /// Steps, up to the first failure.
    pub steps: Vec<Step>,
}

/// Reason why a channel did not accept a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// Another try may succeed, after this time if the service names one.
    #[error("{why}")]
    Later { why: String, after: Option<Duration> },
    /// The same message would be refused again.
    #[error("{0}")]
    Refused(String),
}

impl Undelivered {
    pub fn later(why: impl Into<String>) -> Self {
        Undelivered::Later { why: why.into(), after: None }
    }
}

/// Steps so far.
#[derive(Debug, Default)]
pub(super) struct StepLog(Vec<Step>);

impl StepLog {
    /// Records a step that succeeded.
    pub(super) fn done(&mut self, step: &str, detail: impl Into<String>) {
        self.0.push(Step { name: step.to_owned(), ok: true, detail: detail.into() });
    }

    /// Records the result of a step.
    pub(super) fn record<T>(
        &mut self,
        step: &str,
        outcome: Result<T, Undelivered>,
        detail: impl Into<String>,
    ) -> Result<T, Undelivered> {
        match outcome {
            Ok(value) => {
                self.done(step, detail);
                Ok(value)
            }
            Err(error) => Err(self.failed(step, error)),
        }
    }

    /// Records a step that failed, and returns the reason.
    pub(super) fn failed(&mut self, step: &str, error: Undelivered) -> Undelivered {
        self.0.push(Step { name: step.to_owned(), ok: false, detail: error.to_string() });
        error
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.0
    }
}
