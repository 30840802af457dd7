//! `hold`: keeps tasks, or all tasks of a profile, tenant, account or mission, from starting for a while.

use kernel::{ActorKind, HoldKind, HoldOn, HoldScope, NewHold, Profile, Status, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::selection::{COMMON_FLAGS, Matching, OnTasks, TaskFilter};
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};
use base::time::timestamp::{self, When};

/// Hold tasks until a time, or until they are released
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Running tasks continue. A worker that calls `hold` in its run without a target reports until
when a service refuses its account. The worker then exits with status 75, and its task is
tried again when the hold ends.

--status, --assignee, --search, --since and --failed select tasks; with one of them,
--tenant limits the selection to the tenant. Without --status, only tasks that wait to
start are selected. Each selected task gets its own hold. --tenant alone holds all tasks
of the tenant.

Examples:
  supervisor hold t_0123abcd --reason 'not before the release' --until 2h
  supervisor hold --profile reviewer --reason 'its model is being replaced'
  supervisor hold --account main --reason 'the invoice is open' --until 1d
  supervisor hold --mission t_0123abcd --reason 'wrong direction'
  supervisor hold --search deploy --reason 'not today' --dry-run
  supervisor hold --until 15m --reason '429'   (inside a run)")]
pub struct Hold {
    /// The tasks
    #[arg(value_name = "TASK", num_args = 0.., conflicts_with_all = COMMON_FLAGS)]
    pub task_ids: Vec<TaskId>,
    #[command(flatten)]
    #[serde(flatten)]
    pub on: HoldTarget,
    /// Reason for the hold, shown with it
    #[arg(long, value_name = "TEXT", required = true)]
    pub reason: String,
    /// End of the hold: 2h, '2026-11-23 09:00', 'tomorrow 9am', an RFC 3339 time, epoch seconds [default: when released]
    #[arg(long, value_name = "WHEN")]
    pub until: Option<When>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: HoldMatching,
}

/// Filter of the tasks to hold or to release. It has no tenant of its own, because `--tenant` is a target of the hold
/// itself.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Select tasks instead of naming ids")]
pub struct HoldMatching {
    #[command(flatten)]
    common: TaskFilter,
    /// List the selected tasks, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

impl HoldMatching {
    /// Returns the filter, limited to the tenant that the request names.
    pub(super) fn with_target(&self, on: &HoldTarget) -> Matching {
        self.common.for_tenant(on.tenant.as_ref(), self.dry_run, self.yes)
    }
}

impl OnTasks for Hold {
    fn default_statuses(&self) -> &'static [Status] {
        &[Status::Todo, Status::Scheduled, Status::Ready, Status::Review]
    }

    fn matching(&self) -> Matching {
        self.matching.with_target(&self.on)
    }

    fn about(&self, task_ids: Vec<TaskId>) -> Self {
        Hold { task_ids, on: HoldTarget::default(), ..self.clone() }
    }
}

/// Target of the hold, if it is not a task.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HoldTarget {
    /// All tasks of this assignee
    #[arg(long, value_name = "NAME", conflicts_with_all = COMMON_FLAGS)]
    pub profile: Option<Profile>,
    /// All tasks of this tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<Tenant>,
    /// All tasks of the lanes that share this account
    #[arg(long, value_name = "NAME", conflicts_with_all = COMMON_FLAGS)]
    pub account: Option<String>,
    /// All tasks of the mission that contains this task
    #[arg(long, value_name = "TASK", conflicts_with_all = COMMON_FLAGS)]
    pub mission: Option<TaskId>,
}

impl HoldTarget {
    /// Returns all targets that the request names, tasks first.
    pub(super) fn all(self, tasks: Vec<TaskId>) -> Vec<HoldOn> {
        let on = |scope: HoldScope| move |name: String| HoldOn { scope, name };
        let tasks = tasks.into_iter().map(|id| id.to_string()).map(on(HoldScope::Task));
        let profile = self.profile.map(|name| name.to_string()).map(on(HoldScope::Profile));
        let tenant = self.tenant.map(|name| name.to_string()).map(on(HoldScope::Tenant));
        let account = self.account.map(on(HoldScope::Account));
        let mission = self.mission.map(|task| task.to_string()).map(on(HoldScope::Mission));
        tasks.chain(profile).chain(tenant).chain(account).chain(mission).collect()
    }
}

impl Verb for Hold {
    verb! { "hold": Worker, Write => Vec<kernel::Hold> }

    async fn run(self, call: Call) -> Result<Vec<kernel::Hold>, Failure> {
        let until = self.until.map(When::timestamp);
        let named = self.on.all(self.task_ids);
        let new = NewHold { kind: HoldKind::Manual, reason: self.reason, until };
        if !named.is_empty() {
            return call
                .write(move |board, actor| named.iter().map(|on| board.hold(on, &new, actor)).collect())
                .await;
        }
        if call.actor.kind != ActorKind::Worker {
            return Err(Failure::usage("nothing to hold is named").hint(
                "name tasks, select them with --status, --assignee, --search, --since or --failed, or give --profile, --tenant, --account or --mission",
            ));
        }
        let until = until
            .ok_or_else(|| Failure::usage("the hold has no end").hint("add --until, such as --until 15m"))?;
        call.write(move |board, actor| Ok(vec![board.hold_own(&new.reason, until, actor)?])).await
    }
}

impl Command for Hold {
    fn show(reply: &Vec<kernel::Hold>, screen: &mut Screen) {
        for hold in reply {
            let until = match hold.until {
                Some(at) => format!("until {}", timestamp::local(at)),
                None => format!("until `supervisor release {}`", hold.release_arguments()),
            };
            screen.line(format!(
                "Held {} {until}: {}",
                printable(&hold.on().to_string()),
                printable(&hold.reason)
            ));
        }
    }
}
