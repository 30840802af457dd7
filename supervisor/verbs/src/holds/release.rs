//! `release`: ends holds, so that their tasks may start again.

use kernel::{HoldOn, HoldScope, Status, TaskId, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hold::{HoldMatching, HoldTarget};
use crate::tasks::selection::{COMMON_FLAGS, Matching, OnTasks};
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// Release holds early, including rate limits and open breakers
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A mission that was paused at a limit may have as much again when it is released, and
a tenant or an account whose budget of the day is spent as much again for today.

--status, --assignee, --search, --since and --failed select tasks that have a hold of
their own, and --tenant narrows the selection. --tenant alone releases the tenant.

Exit code: 4 if anything named is not held; nothing is released then.

Examples:
  supervisor release t_0123abcd
  supervisor release --profile reviewer
  supervisor release --account main --reason 'the invoice is paid'
  supervisor release --tenant acme --reason 'today it may cost twice as much'
  supervisor release --mission t_0123abcd
  supervisor release --assignee claude --search deploy --yes
  supervisor release --environment program:claude/default
  supervisor release --host
  supervisor release --host-of acme")]
pub struct Release {
    /// The tasks
    #[arg(value_name = "TASK", num_args = 0.., conflicts_with_all = COMMON_FLAGS)]
    pub task_ids: Vec<TaskId>,
    #[command(flatten)]
    #[serde(flatten)]
    pub on: HoldTarget,
    /// The environment whose breaker is open, as `status` and `holds` name it
    #[arg(long, value_name = "NAME", conflicts_with_all = COMMON_FLAGS)]
    pub environment: Option<String>,
    /// Close the breakers of the host, for all tenants
    #[arg(long, conflicts_with_all = COMMON_FLAGS)]
    pub host: bool,
    /// Close the breaker of the host for this tenant
    #[arg(long, value_name = "TENANT", conflicts_with = "host")]
    pub host_of: Option<Tenant>,
    /// The reason; kept with the event
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Only holds for a login that was not accepted, of this tenant; nothing may be held then. A person has logged in.
    #[arg(skip)]
    pub logged_in: Option<NewLogin>,
    #[command(flatten)]
    #[serde(skip)]
    pub matching: HoldMatching,
}

impl OnTasks for Release {
    fn default_statuses(&self) -> &'static [Status] {
        &[]
    }

    fn matching(&self) -> Matching {
        // Only tasks with a hold are selected, as others cannot be released.
        let mut matching = self.matching.with_target(&self.on);
        matching.held = true;
        matching
    }

    fn about(&self, task_ids: Vec<TaskId>) -> Self {
        Release { task_ids, on: HoldTarget::default(), ..self.clone() }
    }
}

/// The tenant whose login is new.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewLogin {
    /// The tenant; none for tasks without one.
    pub tenant: Option<Tenant>,
}

impl Verb for Release {
    verb! { "release": Operator, Write => Vec<kernel::Hold> }

    async fn run(self, call: Call) -> Result<Vec<kernel::Hold>, Failure> {
        let mut named = self.on.all(self.task_ids);
        named.extend(self.environment.map(|name| HoldOn { scope: HoldScope::Environment, name }));
        named.extend(self.host_of.map(|tenant| HoldOn::host(Some(&tenant))));
        if named.is_empty() && !self.host {
            return Err(Failure::usage("nothing to release is named").hint(
                "name tasks, select them with --status, --assignee, --search, --since or --failed, or give --profile, --tenant, --account, --mission, --environment, --host or --host-of; `supervisor holds` lists what is held",
            ));
        }
        let (reason, logged_in, host) = (self.reason, self.logged_in, self.host);
        call.write(move |board, actor| {
            let mut released = Vec::new();
            if host {
                let holds = board.holds()?;
                let on_host = holds.iter().map(kernel::Hold::on).filter(|on| on.scope == HoldScope::Host);
                let before = named.len();
                named.extend(on_host);
                if named.len() == before {
                    // Without a hold on the host, the release below fails with an error that names it.
                    named.push(HoldOn::host(None));
                }
            }
            for on in &named {
                released.extend(match &logged_in {
                    None => board.release(on, reason.as_deref(), actor)?,
                    Some(NewLogin { tenant }) => {
                        let reason = reason.as_deref().unwrap_or("logged in");
                        board.release_login(on, tenant.as_ref(), reason, actor)?
                    }
                });
            }
            Ok(released)
        })
        .await
    }
}

impl Command for Release {
    fn show(reply: &Vec<kernel::Hold>, screen: &mut Screen) {
        for hold in reply {
            screen.line(format!("Released {}", printable(&hold.on().to_string())));
        }
    }
}
