//! The steps of one delivery, as `notify test` shows them, and the failure of one.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::steps::Step;

/// What a test of a channel came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tested {
    /// The channel.
    pub(crate) channel: String,
    /// Whether the channel has taken the message.
    pub(crate) ok: bool,
    /// The steps, up to the one that failed.
    pub(crate) steps: Vec<Step>,
}

/// Why a channel did not take a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undelivered {
    /// Another try may help, after this time where the service names one.
    #[error("{why}")]
    Later { why: String, after: Option<Duration> },
    /// The same message would be refused again.
    #[error("{0}")]
    Refused(String),
}

impl Undelivered {
    pub(crate) fn later(why: impl Into<String>) -> Self {
        Undelivered::Later { why: why.into(), after: None }
    }
}

/// The steps so far.
#[derive(Debug, Default)]
pub(super) struct Trail(Vec<Step>);

impl Trail {
    /// Keeps that a step worked.
    pub(super) fn done(&mut self, step: &str, detail: impl Into<String>) {
        self.0.push(Step { name: step.to_owned(), ok: true, detail: detail.into() });
    }

    /// Keeps what came of a step.
    pub(super) fn note<T>(
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

    /// Keeps the step that failed, and returns why.
    pub(super) fn failed(&mut self, step: &str, error: Undelivered) -> Undelivered {
        self.0.push(Step { name: step.to_owned(), ok: false, detail: error.to_string() });
        error
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.0
    }
}
