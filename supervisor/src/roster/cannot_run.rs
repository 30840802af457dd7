//! The one answer to why an assignee cannot run, for dispatch, its dry run, `why`, diagnostics, warnings and status.

use std::fmt;
use std::path::PathBuf;

use kernel::{Profile, Waiting, WaitingCode};

use super::Persona;
use crate::config::definitions::Defect;
use crate::exit::Code;
use crate::failure::Failure;

/// Why nothing can be started for an assignee at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CannotRun {
    /// Nothing here has this name. A worker from elsewhere may claim its tasks.
    Unknown {
        assignee: Profile,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Its workers claim their tasks from outside.
    Pull { lane: Profile },
    /// The file of its profile cannot be used.
    ProfileDisabled {
        profile: Profile,
        /// What is wrong with the file.
        defect: Box<Defect>,
    },
    /// What its profile says does not fit its lane.
    ProfileUnfit {
        profile: Profile,
        /// The file of the profile.
        origin: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A skill of its profile does not exist, or cannot be used.
    SkillMissing { profile: Profile, why: String },
    /// The file of its lane cannot be used.
    LaneDisabled {
        lane: Profile,
        /// What is wrong with the file.
        defect: Box<Defect>,
    },
    /// Its lane does not say all that its workers need.
    LaneIncomplete {
        lane: Profile,
        /// What it lacks.
        why: &'static str,
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
    /// This host cannot enforce its policy.
    PolicyUnenforceable {
        policy: String,
        /// What the host lacks.
        why: String,
    },
}

impl CannotRun {
    /// A profile that does not fit its lane.
    pub(super) fn unfit(profile: &Profile, persona: &Persona, why: String) -> Self {
        CannotRun::ProfileUnfit { profile: profile.clone(), origin: persona.origin.clone(), why }
    }

    /// What a task waits for that is assigned so.
    pub(crate) fn waiting(&self) -> Waiting {
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

    /// What a caller is warned of who assigns a task so.
    pub(crate) fn warning(&self) -> String {
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

    /// The refusal of a request that names the assignee itself: no state forbids it where the caller has named nothing that there is.
    pub(crate) fn of_what_was_named(self) -> Failure {
        let is_unknown = self.is_unknown();
        let failure = Failure::from(self);
        if is_unknown { Failure { code: Code::NotFound, ..failure } } else { failure }
    }

    /// Whether its tasks wait for somebody outside who claims them: they always do, or nothing here has the name.
    pub(crate) fn is_claimed(&self) -> bool {
        self.is_unknown() || matches!(self, CannotRun::Pull { .. })
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
