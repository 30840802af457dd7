//! Decides which policies a caller may give to runs: by name, or by the profile or lane that a task gets.
//!
//! 1. An operator may give any policy.
//! 2. Another caller names no policy, except for a plugin, which may name the policy of its `plugin.toml`. A worker's
//!    policy is decided by the board, from its run.
//! 3. The policy of each run that another caller causes confines the run, or an operator chose it for this caller: it is
//!    the default of the configuration, or the policy of the caller's tenant, plugin or run.
//!
//! The third rule is checked in the transaction of each write, for the tasks that the write created, assigned, edited
//! or gave to a reviewer, at whose terminal it types, or for which it asks or makes a proposal. So no verb can leave it
//! out. The tasks of a schedule are checked when it is saved. The run of a proposal is a caller too: the board offers
//! it no profile that breaks the rule (`automation/proposals.rs`).
//!
//! See decision 0248.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{Actor, Error, EventFilter, EventId, EventKind, PluginName, Profile, RunRef, TaskId, View};

use super::confined::{confined, not_for_members};
use base::exit::Code;
use base::failure::Failure;
use service::Service;
use setup::config::Config;
use setup::roster::Roster;

/// Events after which other runs may follow than before, or a person types for the worker of a run.
const KINDS: [EventKind; 9] = [
    EventKind::Assigned,
    EventKind::Created,
    EventKind::Decomposed,
    EventKind::Edited,
    EventKind::Planned,
    EventKind::ProposalAsked,
    EventKind::ReviewRequested,
    EventKind::Specified,
    EventKind::TerminalTaken,
];

/// A caller, for this decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyGiver<'a> {
    pub(super) actor: &'a Actor,
    /// Calling plugin, if any.
    pub(super) plugin: Option<&'a PluginName>,
    /// True for the sender of a chat.
    pub(super) is_chat: bool,
}

/// Policies of a caller that is no operator.
#[derive(Debug)]
pub(super) struct PolicyChoice {
    roster: Arc<Roster>,
    config: Arc<Config>,
    /// Policies that an operator chose for this caller.
    permitted: BTreeSet<String>,
    run: Option<RunRef>,
}

/// Returns the policy of the `plugin.toml` of a plugin.
fn of_plugin(service: &Service, name: &PluginName) -> Option<String> {
    service.plugins().get(name).map(|plugin| plugin.manifest.policy.clone())
}

/// Refuses a policy that the caller may not name.
pub(super) fn require_name(service: &Service, asking: PolicyGiver<'_>, policy: &str) -> Result<(), Failure> {
    if let Some(name) = asking.plugin {
        let plugin_policy = of_plugin(service, name);
        if plugin_policy.as_deref() == Some(policy) {
            return Ok(());
        }
        let why = format!("the plugin {name} may not name the policy {policy} for a task");
        let hint = "leave the policy out, or name the one of its plugin.toml";
        return Err(Failure::new(Code::NotPermitted, why).hint(hint));
    }
    if confined(asking.actor).is_some() {
        return Err(not_for_members("the policy of a task"));
    }
    if asking.is_chat {
        let why = "a chat names no policy of a task: an operator chooses it";
        return Err(Failure::new(Code::NotPermitted, why).hint("leave the policy out"));
    }
    Ok(())
}

impl PolicyChoice {
    /// Returns the policies of a caller; none for an operator, and for the daemon itself.
    pub(super) fn for_giver(service: &Service, asking: PolicyGiver<'_>) -> Option<Self> {
        let PolicyGiver { actor, plugin, is_chat } = asking;
        if actor.run.is_none() && confined(actor).is_none() && plugin.is_none() && !is_chat {
            return None;
        }
        let (roster, config) = (service.roster(), service.config());
        let of_tenant = actor.tenant.as_ref().and_then(|tenant| config.tenants.get(tenant)?.policy.clone());
        let of_plugin = plugin.and_then(|name| of_plugin(service, name));
        let permitted =
            [Some(config.worker.policy.clone()), of_tenant, of_plugin].into_iter().flatten().collect();
        Some(PolicyChoice { roster, config, permitted, run: actor.run.clone() })
    }

    /// Refuses a write since `before` after which a run of a policy follows that the caller may not give.
    pub(super) fn require(mut self, view: &View<'_>, before: EventId) -> Result<(), Error> {
        let mut filter = EventFilter { since: before, ..EventFilter::default() };
        filter.kinds = KINDS.iter().map(ToString::to_string).collect();
        let mut tasks = BTreeSet::new();
        loop {
            let page = view.some_events(&filter)?;
            tasks.extend(page.rows.iter().filter_map(|event| event.task_id.clone()));
            match page.rows.last() {
                Some(last) if page.more => filter.since = last.id,
                Some(_) | None => break,
            }
        }
        if tasks.is_empty() {
            return Ok(());
        }
        if let Some(run) = self.run.take() {
            self.permitted.extend(view.run(run.run)?.and_then(|run| run.policy));
            self.permitted.extend(view.task(&run.task)?.and_then(|task| task.policy));
        }
        tasks.iter().try_for_each(|id| self.require_task(view, id))
    }

    fn require_task(&self, view: &View<'_>, id: &TaskId) -> Result<(), Error> {
        let Some(task) = view.task(id)? else { return Ok(()) };
        let performers = [task.assignee.as_ref(), task.reviewer.as_ref()];
        let policy = task.policy.as_deref();
        performers.into_iter().flatten().try_for_each(|profile| self.require_performer(profile, policy))
    }

    /// Refuses a profile to which the caller may give no task that names a policy, or none.
    pub(super) fn require_performer(&self, profile: &Profile, policy: Option<&str>) -> Result<(), Error> {
        if policy.is_none() && self.roster.is_defective(profile, &self.config) {
            return Err(Error::Forbidden {
                message: format!(
                    "the file of {profile} has a defect, so the policy of its runs is not known"
                ),
                hint: Some("ask an operator to mend it: `supervisor status` names the defect".to_owned()),
            });
        }
        let policy = self.roster.policy_name(profile, policy, &self.config);
        if self.permitted.contains(&policy) || self.roster.policies().confines(&policy) {
            return Ok(());
        }
        Err(Error::Forbidden {
            message: format!(
                "{profile} works under the policy {policy}, which does not confine a run; only an operator gives it to a task"
            ),
            hint: Some(
                "name another assignee, or ask an operator: the policy of a tenant, in its file, is open to its users"
                    .to_owned(),
            ),
        })
    }
}
