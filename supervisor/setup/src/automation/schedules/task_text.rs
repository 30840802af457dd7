//! Task in a schedule file: the fields of `create`, by the same names.

use std::str::FromStr as _;

use kernel::{
    Approval, ApprovalClass, ApprovalState, Check, CommitMode, Commits, Goal, InitialState, NewTask, Origin,
    Pool, Profile, TemplateTask, Tenant, WorkspaceSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::environment::with_home;
use base::time::duration::WrittenDuration;

kernel::task_request! { schedule
/// Task that a schedule creates at a tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskText {
    /// Its name within the schedule, where that makes several tasks
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The tasks of the schedule that must be done first, by their names
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<String>,
    /// Title, on one line; {date}, {time}, {tick} and {schedule} are replaced by the values of the tick
    pub title: String,
    /// The body: the prompt of an agent, or the script of the shell lane
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Assignee: the profile or lane that does the task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignee: Option<Profile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Tenant of the task
    pub tenant: Option<Tenant>,
    /// Workspace: scratch, <dir:/path> or <worktree:/repository>
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The branch to base a worktree on
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    @first;
    /// Priority: tasks with a higher number start first
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i64,
    /// Put the task in triage until a person or a profile specifies it
    #[serde(skip_serializing_if = "is_false")]
    pub triage: bool,
    @second;
    /// Command for `sh -c` that proves the task done
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Block the task after this many failed checks in a row
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_checks: Option<u32>,
    /// Handling of the changes that a run in a worktree leaves uncommitted: auto, require or no
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitMode>,
    /// The skills for the worker to load
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The pools of which each run takes a place
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// Name of the policy for the worker
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Wait for approval once its parents are done
    #[serde(skip_serializing_if = "is_false")]
    pub require_approval: bool,
    /// Person who approves the task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// Class of the approval
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_class: Option<ApprovalClass>,
    /// Repeat turns until the check passes or the worker completes the task
    #[serde(skip_serializing_if = "is_false")]
    pub goal: bool,
    /// Limit on the turns of a goal, after which the task asks a person
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal_max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Free notes
    pub notes: Option<String>,
    @last;
}
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl TaskText {
    /// Returns the template of the task for a tick. An error is a key with the reason.
    pub(super) fn template(&self, channel: Option<&str>) -> Result<TemplateTask, (&'static str, String)> {
        let place = self.workspace.as_deref().map_or_else(|| "scratch".to_owned(), with_home);
        let place = WorkspaceSpec::from_str(&place).map_err(|e| {
            let hint = e.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            ("workspace", format!("{e}{hint}"))
        })?;
        if matches!(place, WorkspaceSpec::Worktree { repository: None }) {
            return Err(("workspace", "name the repository: worktree:/path".to_owned()));
        }
        let written = self.clone();
        let new = kernel::filled_task! { schedule written => NewTask };
        let task = NewTask {
            title: written.title,
            body: written.body,
            assignee: written.assignee,
            tenant: written.tenant,
            priority: written.priority,
            workspace: place.into(),
            branch: written.branch,
            initial_state: if written.triage { InitialState::Triage } else { InitialState::Normal },
            skills: written.skills,
            pools: written.pools.into_iter().collect(),
            policy: written.policy,
            notes: written.notes,
            check: Check { command: written.check, max_checks: written.max_checks },
            commits: Commits { mode: written.commit },
            approval: Approval {
                state: written.require_approval.then_some(ApprovalState::Required),
                class: written.approval_class,
                approver: written.approver,
            },
            goal: Goal { mode: written.goal, max_turns: written.goal_max_turns },
            origin: Origin { channel: channel.map(str::to_owned), ..Origin::default() },
            ..new
        };
        Ok(TemplateTask { name: written.name, after: written.parents, task })
    }
}
