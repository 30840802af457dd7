//! Errors in the body of a response. Some services respond to a refusal with status 200.

use std::time::Duration;

use serde_json::Value;

use crate::notify::http::HttpResponse;
use crate::notify::step_log::{StepLog, Undelivered};

/// Result that a service reports in the body of a response, whatever its HTTP status.
pub(in crate::notify) struct ServiceResult<'a> {
    /// True if the service did not accept the message.
    pub(in crate::notify) is_refusal: bool,
    pub(in crate::notify) why: Option<&'a str>,
    /// Pause that the service asks for, in seconds.
    pub(in crate::notify) after: Option<f64>,
    /// True if the same message would be refused again.
    pub(in crate::notify) is_final: bool,
}

impl ServiceResult<'_> {
    /// Judges the status and the body of a response.
    pub(in crate::notify) fn judge(
        &self,
        response: HttpResponse,
        step_log: &mut StepLog,
    ) -> Result<(), Undelivered> {
        let after = self.after.and_then(|after| Duration::try_from_secs_f64(after.max(0.0)).ok());
        let why: String =
            self.why.unwrap_or("it does not say why").chars().filter(|c| !c.is_control()).take(200).collect();
        let taken = match response.accepted(self.why, after) {
            Ok(_) if self.is_refusal && self.is_final => {
                Err(Undelivered::Refused(format!("the service refuses the message: {why}")))
            }
            Ok(_) if self.is_refusal => Err(Undelivered::Later {
                why: format!("the service refuses the message for now: {why}"),
                after,
            }),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        step_log.record("answer", taken, "the message was taken")
    }
}

/// Converts an id to a JSON number if it is one.
pub(super) fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}
