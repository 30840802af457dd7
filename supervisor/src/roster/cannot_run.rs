//! The one answer to why an assignee cannot run, for dispatch, its dry run, `why`, diagnostics, warnings and status.

use std::fmt;

use kernel::{Profile, Waiting, WaitingCode};

use crate::config::definitions::Defect;
use crate::exit::Code;
use crate::failure::Failure;

/// Why nothing can be started for an assignee as things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CannotRun {
    /// Nothing here has this name. A worker from elsewhere may claim its tasks.
    Unknown {
        assignee: Profile,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The file of its lane cannot be used.
    LaneDisabled {
        lane: Profile,
        /// What is wrong with the file.
        defect: Box<Defect>,
    },
    /// No policy has this name.
    PolicyUnknown {
        policy: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The file of its policy cannot be used.
    PolicyDisabled {
        policy: String,
        /// What is wrong with the file.
        defect: Box<Defect>,
    },
    /// This host cannot hold its policy.
    PolicyUnheld {
        policy: String,
        /// What the host lacks.
        why: String,
    },
}

impl CannotRun {
    /// What a task waits for that is assigned so.
    pub(crate) fn waiting(&self) -> Waiting {
        let text = match self {
            CannotRun::Unknown { .. } => return Waiting::nonspawnable(&self.to_string()),
            CannotRun::LaneDisabled { lane, defect } => {
                format!("waits for the lane {lane}, which is disabled: {defect}")
            }
            CannotRun::PolicyUnknown { .. } | CannotRun::PolicyDisabled { .. } => {
                format!("waits for its policy: {self}")
            }
            CannotRun::PolicyUnheld { policy, why } => {
                format!("waits for a host that can enforce the policy {policy}: {why}")
            }
        };
        Waiting::new(WaitingCode::Environment, text)
    }

    /// What a caller is warned of who assigns a task so.
    pub(crate) fn warning(&self) -> String {
        match self {
            CannotRun::Unknown { known, .. } => format!(
                "{self}, so the task waits for a worker that claims it; the lanes are: {}",
                known.join(", ")
            ),
            CannotRun::LaneDisabled { .. }
            | CannotRun::PolicyUnknown { .. }
            | CannotRun::PolicyDisabled { .. }
            | CannotRun::PolicyUnheld { .. } => {
                format!("nothing runs it for now: it {}", self.waiting().text)
            }
        }
    }

    /// Whether nothing here has the name.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, CannotRun::Unknown { .. })
    }
}

/// The reason alone.
impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotRun::Unknown { assignee, .. } => write!(f, "no lane `{assignee}` exists here"),
            CannotRun::LaneDisabled { lane, defect } => write!(f, "the lane `{lane}` is disabled: {defect}"),
            CannotRun::PolicyUnknown { policy, .. } => write!(f, "there is no policy `{policy}`"),
            CannotRun::PolicyDisabled { policy, defect } => {
                write!(f, "the policy `{policy}` is disabled: {defect}")
            }
            CannotRun::PolicyUnheld { policy, why } => {
                write!(f, "this host cannot enforce the policy `{policy}`: {why}")
            }
        }
    }
}

impl From<CannotRun> for Failure {
    fn from(why: CannotRun) -> Self {
        let (code, hint) = match &why {
            CannotRun::Unknown { known, .. } => {
                (Code::Conflict, format!("the lanes are: {}", known.join(", ")))
            }
            CannotRun::LaneDisabled { defect, .. } => (Code::Conflict, defect.hint()),
            CannotRun::PolicyUnknown { known, .. } => {
                (Code::Usage, format!("the policies are: {}", known.join(", ")))
            }
            CannotRun::PolicyDisabled { defect, .. } => (Code::Usage, defect.hint()),
            CannotRun::PolicyUnheld { .. } => {
                (Code::Conflict, "`supervisor doctor` says what this host lacks".to_owned())
            }
        };
        Failure::new(code, why.to_string()).hint(hint)
    }
}
