//! Use of budgets by runs, and holds on tenants and accounts whose budget of the day is spent.

use std::time::Duration;

use serde_json::json;

use super::view::View;
use super::{Board, SYSTEM};
use crate::model::actor::Actor;
use crate::model::budget::{Balance, Consumed, DayUse, Payer, PayerKind, Spend, SpendBy};
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::{Hold, HoldKind, HoldOn, HoldScope, NewHold, Within};
use crate::model::id::{RunId, Tenant};
use crate::model::limits;
use crate::model::outcome::{BlockKind, Egress, EndCause, Ending, OnCleanExit, Siblings, StopReason};
use crate::model::run::Run;
use crate::model::spent::Spent;
use crate::model::verdict::{Blocking, Verdict};
use crate::rules::budget::{Sharing, SpentBudget};
use crate::store::holds::By;

/// Pause before a task whose run met a day's budget is ready again. As long as the budget is spent, a hold keeps the task
/// from starting.
const PAUSE: Duration = Duration::from_secs(1);

impl Board<'_> {
    /// Records the traffic through the proxy of a run so far, and returns the use of the run and of its payers. Does
    /// nothing to the record of a run that has ended.
    pub fn record_egress(&mut self, id: RunId, egress: &Egress) -> Result<Balance, Error> {
        let run = self.expect_run(id)?;
        if run.ended_at.is_none() {
            let before = self.tx.egress_of(id)?.unwrap_or_default();
            self.tx.put_egress(id, egress)?;
            let more = through(egress).since(through(&before));
            self.charge_days(&run, more, more)?;
        }
        self.balance(id)
    }

    /// Records that a request of an open run was refused for a spent budget. Does nothing for a run that has ended.
    pub fn note_budget_spent(&mut self, run: RunId, spent: &SpentBudget) -> Result<(), Error> {
        let payload = json!({
            "key": spent.key, "of": spent.payer.as_ref().map(|payer| payer.scope), "name": spent.payer.as_ref().map(|payer| &payer.name),
            "text": spent.to_text(),
        });
        self.note_of_run(run, EventKind::BudgetSpent, payload)
    }

    /// Stores the use that an agent reports, and charges its growth to the mission and to all payers.
    pub(super) fn keep_spent(&self, run: &Run, spent: &Spent) -> Result<(), Error> {
        let before = self.tx.spent_of(run.id)?.unwrap_or_default();
        let used = self.tx.used_by(run, spent)?;
        let cost = self.quotas.prices.cost(spent.cost_micros, spent.model.as_deref(), used);
        self.tx.put_spent(run, &Spent { cost_micros: cost, ..spent.clone() }, used)?;
        let now = self.tx.spent_of(run.id)?.unwrap_or_default();
        let more = reported(&now).since(reported(&before));
        if more.cost_micros > 0 {
            self.charge_mission(run, Duration::ZERO, more.cost_micros)?;
        }
        let is_shared = self.tx.has_other_tenants(run.tenant.as_ref())?;
        let sharing = if is_shared { Sharing::Tenants } else { Sharing::Nobody };
        let account = run.account.as_deref().unwrap_or_default();
        let believed = |spent| self.quotas.budgets.believed(reported(spent), account, sharing);
        self.charge_days(run, more, believed(&now).since(believed(&before)))
    }

    /// Ends a run that has spent its own budget by its agent's reports. With a proxy, the proxy refuses the next request
    /// instead. The task then asks a person.
    pub(super) fn end_over_budget(&mut self, run: &Run) -> Result<(), Error> {
        if run.verdict.is_some() || run.stop_reason.is_some() || self.tx.egress_of(run.id)?.is_some() {
            return Ok(());
        }
        let Some(spent) = self.quotas.budgets.spent_by_run(&self.consumed_by(run.id)?) else { return Ok(()) };
        self.note_budget_spent(run.id, &spent)?;
        let blocking =
            Blocking { kind: BlockKind::Budget, reason: Some(spent.to_text()), ..Blocking::default() };
        self.decide(&run.task_id, Verdict::Block(blocking), Some(run.id), &Actor::system()).map(drop)
    }

    /// Adds use to this day of the run's payers. `of_account` is the part that the account counts.
    fn charge_days(&self, run: &Run, more: Consumed, of_account: Consumed) -> Result<(), Error> {
        if more == Consumed::default() {
            return Ok(());
        }
        let day = self.clock.day();
        let task = self.expect_task(&run.task_id)?;
        self.tx.add_to_ledger(run, task.mission(), &day.date, more)?;
        for payer in payers(run) {
            let counted = match payer.scope {
                PayerKind::Account => of_account,
                PayerKind::Tenant | PayerKind::Profile => more,
            };
            let used = self.tx.add_to_day(&payer, &day.date, counted)?;
            self.hold_where_spent(&used, Some(run))?;
        }
        Ok(())
    }

    /// Places a hold on a payer that has spent a budget of today.
    fn hold_where_spent(&self, used: &DayUse, run: Option<&Run>) -> Result<(), Error> {
        let Some(spent) = self.quotas.budgets.spent_on_day(used) else { return Ok(()) };
        let on = HoldOn { scope: used.payer.scope.hold_scope(), name: used.payer.name.clone() };
        let is_held = |hold: &Hold| hold.on() == on && hold.kind == HoldKind::Budget;
        if self.holds()?.iter().any(is_held) {
            return Ok(());
        }
        let until = Some(self.clock.day().ends_at);
        let new = NewHold { kind: HoldKind::Budget, reason: spent.to_string(), until };
        self.place_hold(&on, &new, By { label: SYSTEM, within: &Within::Board, run }).map(drop)
    }

    /// Adjusts the holds for spent budgets after a change of the budgets: removes holds that have lost their reason, and
    /// places new ones.
    pub fn apply_budgets(&mut self) -> Result<(), Error> {
        let day = self.clock.day();
        for hold in self.holds()?.into_iter().filter(|hold| hold.kind == HoldKind::Budget) {
            let Some(payer) = payer_of(&hold) else { continue };
            if self.quotas.budgets.spent_on_day(&self.tx.day_of(&payer, &day.date)?).is_none() {
                self.end_hold(&hold, "its budget is no longer spent", None, SYSTEM)?;
            }
        }
        for used in self.tx.uses_on(&day.date)? {
            self.hold_where_spent(&used, None)?;
        }
        Ok(())
    }

    /// Grants a payer its budget again for today, as many times as needed.
    pub(super) fn grant_budget(&self, hold: &Hold) -> Result<(), Error> {
        let Some(payer) = payer_of(hold) else { return Ok(()) };
        let day = self.clock.day().date;
        let mut used = self.tx.day_of(&payer, &day)?;
        let mut more = used.more;
        while let Some(spent) = self.quotas.budgets.spent_on_day(&used) {
            let base = spent.allowed / used.more.saturating_add(1);
            if base == 0 {
                // A budget of zero stays spent, however often it is granted.
                break;
            }
            more = more.max(spent.count / base);
            used.more = more;
        }
        self.tx.grant_day(&payer, &day, more)
    }

    /// Changes the ending of a run that a spent budget refused. Its own budget becomes a question to a person. A budget
    /// of a day becomes a retry, which the hold delays to the next day.
    pub(super) fn with_spent_budget(&self, run: &Run, ending: Ending) -> Result<Ending, Error> {
        let refused = self.tx.egress_of(run.id)?.is_some_and(|egress| egress.over_budget > 0);
        let gave_up = match &ending.cause {
            EndCause::Exited { code: 0 } => {
                matches!(ending.result_policy, OnCleanExit::Unreported | OnCleanExit::ToolsRefused { .. })
            }
            EndCause::Exited { .. }
            | EndCause::Signaled { .. }
            | EndCause::RateLimited { .. }
            | EndCause::NotLoggedIn { .. }
            | EndCause::TimedOut
            | EndCause::Stopped(StopReason::Stalled) => true,
            EndCause::Stopped(_)
            | EndCause::SpawnFailed { .. }
            | EndCause::OutOfMemory
            | EndCause::LostReboot
            | EndCause::ShimKilled
            | EndCause::NeverStarted
            | EndCause::OwnLimit(_)
            | EndCause::SessionGone => false,
        };
        if !refused || !gave_up || run.verdict.is_some() || run.stop_reason.is_some() {
            return Ok(ending);
        }
        if let Some(spent) = self.quotas.budgets.spent_by_run(&self.consumed_by(run.id)?) {
            return Ok(Ending { over_budget: Some(spent.to_text()), ..ending });
        }
        let until = ending.ended_at.unwrap_or(self.now()).after(PAUSE);
        Ok(Ending { cause: EndCause::RateLimited { until }, siblings: Siblings::Spare, ..ending })
    }
}

impl View<'_> {
    /// Returns the use of a run and of its payers.
    pub fn balance(&self, id: RunId) -> Result<Balance, Error> {
        let (run, day) = (self.expect_run(id)?, self.clock.day());
        let payers =
            payers(&run).iter().map(|payer| self.tx.day_of(payer, &day.date)).collect::<Result<_, _>>()?;
        Ok(Balance { run: self.consumed_by(id)?, payers })
    }

    /// Returns the use of a run so far.
    fn consumed_by(&self, run: RunId) -> Result<Consumed, Error> {
        let through = self.tx.egress_of(run)?.as_ref().map(through).unwrap_or_default();
        let reported = self.tx.spent_of(run)?.as_ref().map(reported).unwrap_or_default();
        Ok(through.plus(reported))
    }

    /// Returns the sums of the ledger since a day, as far as the caller may see them.
    pub fn spend(
        &self,
        by: SpendBy,
        since: Option<&str>,
        tenant: Option<&Tenant>,
        actor: &Actor,
    ) -> Result<Vec<Spend>, Error> {
        let only = actor.tenant.as_ref().or(tenant);
        self.tx.ledger(by, since.unwrap_or_default(), only, limits::REPLY_ROWS)
    }

    /// Returns the use of today, and of all days together: by each tenant, profile and account.
    pub fn day_uses(&self) -> Result<(Vec<DayUse>, Vec<DayUse>), Error> {
        let today = self.tx.uses_on(&self.clock.day().date)?;
        Ok((today, self.tx.uses_of_all_days(limits::REPLY_ROWS)?))
    }
}

/// Returns the traffic through a proxy, as budgets count it.
fn through(egress: &Egress) -> Consumed {
    Consumed {
        requests: egress.requests,
        bytes: egress.sent_bytes.saturating_add(egress.received_bytes),
        ..Consumed::default()
    }
}

/// Returns the use that an agent reports, as budgets count it.
fn reported(spent: &Spent) -> Consumed {
    Consumed {
        tokens: spent.all_tokens(),
        cost_micros: spent.cost_micros.unwrap_or_default(),
        ..Consumed::default()
    }
}

/// Returns the payers of a run.
fn payers(run: &Run) -> Vec<Payer> {
    let payer = |scope, name: Option<&str>| Some(Payer { scope, name: name?.to_owned() });
    let (tenant, profile) = (run.tenant.as_ref(), run.profile.as_ref());
    [
        payer(PayerKind::Tenant, tenant.map(|tenant| tenant.as_str())),
        payer(PayerKind::Profile, profile.map(|profile| profile.as_str())),
        payer(PayerKind::Account, run.account.as_deref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn payer_of(hold: &Hold) -> Option<Payer> {
    let scope = match hold.scope {
        HoldScope::Tenant => PayerKind::Tenant,
        HoldScope::Account => PayerKind::Account,
        HoldScope::Profile => PayerKind::Profile,
        HoldScope::Task | HoldScope::Mission | HoldScope::Environment | HoldScope::Host => return None,
    };
    Some(Payer { scope, name: hold.name.clone() })
}
