//! Health of the service: the exit code of `status`.
//!
//! See decision 0119.

use kernel::Finding;
use serde::{Deserialize, Serialize};

/// State of the service. Its exit codes are the exit codes of `systemctl status` where both have the same meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// The daemon runs, without a defect.
    #[default]
    Healthy,
    /// The daemon runs, and a defect keeps it from a part of its work.
    Degraded,
    /// No daemon answers.
    NotRunning,
}

impl Health {
    /// Returns the health of a service with these problems. Warnings do not degrade it.
    pub(super) fn of(is_running: bool, problems: &[Finding]) -> Self {
        match (is_running, problems.iter().any(Finding::is_error)) {
            (false, _) => Health::NotRunning,
            (true, true) => Health::Degraded,
            (true, false) => Health::Healthy,
        }
    }

    /// The exit code of `status`.
    pub(super) fn exit(self) -> u8 {
        match self {
            Health::Healthy => 0,
            Health::Degraded => 1,
            Health::NotRunning => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::FindingCode;

    use super::*;

    #[test]
    fn errors_degrade_a_service_and_warnings_do_not() {
        let warning = Finding::warning(FindingCode::BudgetSpent, "it is spent");
        let error = Finding::error(FindingCode::BoardNotWritten, "it was removed");
        assert_eq!(Health::of(true, std::slice::from_ref(&warning)), Health::Healthy);
        assert_eq!(Health::of(true, &[warning, error.clone()]), Health::Degraded);
        assert_eq!(Health::of(false, &[error]), Health::NotRunning);
    }
}
