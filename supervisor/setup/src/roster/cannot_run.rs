//! Reasons why an assignee cannot run, shared by dispatch, its dry run, `why`, diagnostics, warnings and status.

use std::fmt;
use std::path::PathBuf;

use kernel::{Profile, Waiting, WaitingCode};

use super::ProfileDefinition;
use crate::config::definitions::Defect;
use base::exit::Code;
use base::failure::Failure;

/// Reason why no worker can be started for an assignee at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotRun {
    /// No profile or lane has this name. An external worker may claim its tasks.
    Unknown {
        assignee: Profile,
        /// Existing names.
        known: Vec<String>,
    },
    /// Its workers are external and claim their tasks.
    Pull { lane: Profile },
    /// The file of its profile is unusable.
    ProfileDisabled {
        profile: Profile,
        /// Reason why the file is unusable.
        defect: Box<Defect>,
    },
    /// Its profile does not fit its lane.
    ProfileUnfit {
        profile: Profile,
        /// File of the profile.
        origin: PathBuf,
        /// Reason.
        why: String,
    },
    /// A skill of its profile is missing or unusable.
    SkillMissing { profile: Profile, why: String },
    /// The file of its lane is unusable.
    LaneDisabled {
        lane: Profile,
        /// Reason why the file is unusable.
        defect: Box<Defect>,
    },
    /// Its lane lacks a setting that its workers need.
    LaneIncomplete {
        lane: Profile,
        /// Missing setting.
        why: &'static str,
    },
    /// No policy has this name.
    PolicyUnknown {
        policy: String,
        /// Existing names.
        known: Vec<String>,
    },
    /// The file of its policy is unusable.
    PolicyDisabled {
        policy: String,
        /// Reason why the file is unusable.
        defect: Box<Defect>,
    },
    /// This host cannot enforce its policy.
    PolicyUnenforceable {
        policy: String,
        /// Feature that the host lacks.
        why: String,
    },
}

impl CannotRun {
    /// Makes the reason for a profile that does not fit its lane.
    pub(super) fn unfit(profile: &Profile, definition: &ProfileDefinition, why: String) -> Self {
        CannotRun::ProfileUnfit { profile: profile.clone(), origin: definition.origin.clone(), why }
    }

    /// Returns the state in which tasks of the assignee wait.
    pub fn waiting(&self) -> Waiting {
        let text = match self {
            CannotRun::Unknown { .. } => return Waiting::nonspawnable(&self.to_string()),
            CannotRun::Pull { .. } => return Waiting::new(WaitingCode::Nonspawnable, self.to_string()),
            CannotRun::ProfileDisabled { profile, defect } => {
                format!("waits for the profile {profile}, which is disabled: {defect}")
            }
            CannotRun::ProfileUnfit { .. } | CannotRun::SkillMissing { .. } => {
                format!("waits for its profile: {self}")
            }
            CannotRun::LaneDisabled { lane, defect } => {
                format!("waits for the lane {lane}, which is disabled: {defect}")
            }
            CannotRun::LaneIncomplete { lane, why } => format!("waits for the lane {lane}: it {why}"),
            CannotRun::PolicyUnknown { .. } | CannotRun::PolicyDisabled { .. } => {
                format!("waits for its policy: {self}")
            }
            CannotRun::PolicyUnenforceable { policy, why } => {
                format!("waits for a host that can enforce the policy {policy}: {why}")
            }
        };
        Waiting::new(WaitingCode::Environment, text)
    }

    /// Returns the warning for a caller who assigns a task to it.
    pub fn warning(&self) -> String {
        match self {
            CannotRun::Unknown { assignee, known } => {
                let all = known.join(", ");
                let all = match super::nearest(assignee.as_str(), known.clone()) {
                    Some(near) => format!("did you mean `{near}`? The assignees are: {all}"),
                    None => format!("the assignees are: {all}"),
                };
                format!("{self}, so the task waits for a worker that claims it; {all}")
            }
            CannotRun::Pull { .. } => format!("it {self}"),
            CannotRun::ProfileDisabled { .. }
            | CannotRun::ProfileUnfit { .. }
            | CannotRun::SkillMissing { .. }
            | CannotRun::LaneDisabled { .. }
            | CannotRun::LaneIncomplete { .. }
            | CannotRun::PolicyUnknown { .. }
            | CannotRun::PolicyDisabled { .. }
            | CannotRun::PolicyUnenforceable { .. } => {
                format!("nothing runs it for now: it {}", self.waiting().text)
            }
        }
    }

    /// Returns the refusal of a request that names the assignee. An unknown name is `not_found` here, because no
    /// state forbids the request.
    pub fn of_what_was_named(self) -> Failure {
        let is_unknown = self.is_unknown();
        let failure = Failure::from(self);
        if is_unknown { Failure { code: Code::NotFound, ..failure } } else { failure }
    }

    /// Returns true if its tasks wait for an external worker: the lane is a pull lane, or the name is unknown.
    pub fn is_claimed(&self) -> bool {
        self.is_unknown() || matches!(self, CannotRun::Pull { .. })
    }

    /// Returns true if no profile or lane has the name.
    pub fn is_unknown(&self) -> bool {
        matches!(self, CannotRun::Unknown { .. })
    }
}

/// The reason alone.
impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotRun::Unknown { assignee, .. } => write!(f, "no profile or lane `{assignee}` exists here"),
            CannotRun::ProfileDisabled { profile, defect } => {
                write!(f, "the profile `{profile}` is disabled: {defect}")
            }
            CannotRun::ProfileUnfit { profile, why, .. } | CannotRun::SkillMissing { profile, why } => {
                write!(f, "the profile `{profile}` cannot be used: {why}")
            }
            CannotRun::Pull { lane } => write!(
                f,
                "waits for somebody to claim it: {lane} is a pull lane (`supervisor claim --assignee {lane}`)"
            ),
            CannotRun::LaneDisabled { lane, defect } => write!(f, "the lane `{lane}` is disabled: {defect}"),
            CannotRun::LaneIncomplete { lane, why } => write!(f, "the lane `{lane}` {why}"),
            CannotRun::PolicyUnknown { policy, .. } => write!(f, "there is no policy `{policy}`"),
            CannotRun::PolicyDisabled { policy, defect } => {
                write!(f, "the policy `{policy}` is disabled: {defect}")
            }
            CannotRun::PolicyUnenforceable { policy, why } => {
                write!(f, "this host cannot enforce the policy `{policy}`: {why}")
            }
        }
    }
}

impl From<CannotRun> for Failure {
    fn from(why: CannotRun) -> Self {
        let (code, hint) = match &why {
            CannotRun::Unknown { known, .. } => {
                (Code::Conflict, format!("the assignees are: {}", known.join(", ")))
            }
            CannotRun::ProfileDisabled { defect, .. } | CannotRun::LaneDisabled { defect, .. } => {
                (Code::Conflict, defect.hint())
            }
            CannotRun::ProfileUnfit { origin, .. } => (
                Code::Conflict,
                format!("correct {} (`supervisor help docs/profiles.md` describes it)", origin.display()),
            ),
            CannotRun::Pull { lane } => {
                (Code::Conflict, format!("a worker claims it: supervisor claim --assignee {lane}"))
            }
            CannotRun::SkillMissing { .. } => (
                Code::Conflict,
                "add the skill, or take it out of the profile: `supervisor help docs/profiles.md`".to_owned(),
            ),
            CannotRun::LaneIncomplete { lane, .. } => (
                Code::Conflict,
                format!(
                    "write lanes.d/{lane}.toml: extends = \"{lane}\", then [service] and url = \"https://…\""
                ),
            ),
            CannotRun::PolicyUnknown { known, .. } => {
                let known = known.join(", ");
                (
                    Code::Usage,
                    format!(
                        "the policies are: {known}; a daemon finds a new one in policies.d after `supervisor service reload`"
                    ),
                )
            }
            CannotRun::PolicyDisabled { defect, .. } => (Code::Usage, defect.hint()),
            CannotRun::PolicyUnenforceable { .. } => {
                (Code::Conflict, "`supervisor doctor` says what this host lacks".to_owned())
            }
        };
        Failure::new(code, why.to_string()).hint(hint)
    }
}
