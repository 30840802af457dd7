//! Places, probes and ends holds, which keep tasks from starting.
//!
//! See decision 0015.

use std::time::Duration;

use serde_json::{Value, json};

use super::charge::Cost;
use super::{Board, SYSTEM};
use crate::model::actor::Actor;
use crate::model::clock::Timestamp;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::hold::{
    Hold, HoldKind, HoldOn, HoldScope, NewHold, SHORTEST_LIMIT, Stance, Target, Within,
};
use crate::model::id::{RunId, TaskId, Tenant};
use crate::model::limits;
use crate::model::missing::Missing;
use crate::model::outcome::{EndCause, Ending, Outcome, Siblings};
use crate::model::quota::Bound;
use crate::model::run::Run;
use crate::model::task::Task;
use crate::rules::authority;
use crate::rules::retry::rate_limited;
use crate::store::events::NewEvent;
use crate::store::holds::By;

/// Time without a refusal after which a probing run counts as served.
pub(super) const SERVED: Duration = Duration::from_mins(1);

impl Board<'_> {
    /// Keeps the tasks of a target from starting: one task, or the tasks of a profile, a tenant, an account or a mission.
    /// Open runs go on.
    pub fn hold(&mut self, on: &HoldOn, new: &NewHold, actor: &Actor) -> Result<Hold, Error> {
        authority::person(actor, "hold tasks")?;
        self.check_hold(on, new)?;
        if on.scope == HoldScope::Task {
            self.task_for(&task_of(on)?, actor)?;
        }
        let by = By { label: &actor.label(), within: &Within::Board, run: None };
        let named = self.named_on_board(on)?;
        if named.scope == HoldScope::Mission && self.tx.mission(&named.name)?.is_none() {
            self.task_for(&task_of(&named)?, actor)?;
        }
        self.place_hold(&named, new, by)
    }

    /// Places a hold for a limit of the service that the worker reports. The hold is on the tasks of the worker's account
    /// within the worker's own tenant; without an account, on the worker's task alone. `until` is brought into the range
    /// from [`SHORTEST_LIMIT`] to the longest hold of the quotas. The worker should end after the call; its task is tried
    /// again when the limit is over.
    pub fn hold_own(&mut self, reason: &str, until: Timestamp, actor: &Actor) -> Result<Hold, Error> {
        let Some(run) = self.live_run(actor)? else {
            return Err(Error::invalid(
                "hold",
                "nothing is named",
                "name tasks, or --profile, --tenant or --account",
            ));
        };
        self.charge(actor, Cost::one(Bound::Holds).text([reason]))?;
        let on = hold_target(&run, HoldKind::RateLimit);
        let new = NewHold { kind: HoldKind::RateLimit, reason: reason.to_owned(), until: Some(until) };
        self.check_hold(&on, &new)?;
        let until = until.max(self.now().after(SHORTEST_LIMIT)).min(self.longest_hold());
        let new = NewHold { until: Some(until), ..new };
        let within = Within::Tenant(run.tenant.clone());
        self.place_hold(&on, &new, By { label: &actor.label(), within: &within, run: Some(&run) })
    }

    /// Returns the latest end of a limit that is accepted from a run.
    fn longest_hold(&self) -> Timestamp {
        self.now().after(self.quotas.longest_hold)
    }

    /// Ends the holds on a target and returns them. A used-up limit or budget is granted once more.
    ///
    /// # Errors
    /// [`Error::Conflict`] if there is no hold on the target.
    pub fn release(&mut self, on: &HoldOn, reason: Option<&str>, actor: &Actor) -> Result<Vec<Hold>, Error> {
        authority::person(actor, "release what is held")?;
        if on.scope == HoldScope::Task {
            self.task_for(&task_of(on)?, actor)?;
        }
        let on = &self.named_on_board(on)?;
        let live: Vec<Hold> = self.holds()?.into_iter().filter(|hold| hold.on() == *on).collect();
        if live.is_empty() {
            return Err(Error::conflict(format!("{on} is not held"), "see what is: `supervisor holds`"));
        }
        self.end_all(live, reason, actor)
    }

    /// Ends the holds on a target that failed logins placed and that reach the tenant, and returns them. The list may be
    /// empty. The end is durable when the call returns.
    pub fn release_login(
        &mut self,
        on: &HoldOn,
        tenant: Option<&Tenant>,
        reason: &str,
        actor: &Actor,
    ) -> Result<Vec<Hold>, Error> {
        authority::person(actor, "release what is held")?;
        let is_its =
            |hold: &Hold| hold.kind == HoldKind::Login && hold.on() == *on && hold.within.reaches(tenant);
        let live: Vec<Hold> = self.holds()?.into_iter().filter(is_its).collect();
        self.end_all(live, Some(reason), actor)
    }

    /// Ends holds and returns them. A used-up limit or budget is granted once more, because otherwise the next start would
    /// be held again.
    pub(super) fn end_all(
        &mut self,
        live: Vec<Hold>,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<Vec<Hold>, Error> {
        for hold in &live {
            match hold.kind {
                HoldKind::Limit => self.grant_mission(&hold.name)?,
                HoldKind::Budget => self.grant_budget(hold)?,
                HoldKind::Manual | HoldKind::RateLimit | HoldKind::Login | HoldKind::Breaker => {}
            }
            self.end_hold(hold, reason.unwrap_or("released"), None, &actor.label())?;
        }
        Ok(live)
    }

    fn check_hold(&self, on: &HoldOn, new: &NewHold) -> Result<(), Error> {
        limits::bytes("reason", &new.reason, limits::WORD)?;
        if on.name.trim().is_empty() {
            return Err(Error::invalid("hold", "nothing is named", "name what is to be held"));
        }
        if new.until.is_some_and(|until| until <= self.now()) {
            return Err(Error::invalid(
                "until",
                "that time has passed",
                "give a time in the future, such as 2h",
            ));
        }
        Ok(())
    }

    /// Places a hold, or renews a hold of the same kind on the same target.
    pub(super) fn place_hold(&self, on: &HoldOn, new: &NewHold, by: By<'_>) -> Result<Hold, Error> {
        self.tx.insert_hold(on, new, by, self.now())?;
        let placed = self
            .holds()?
            .into_iter()
            .find(|hold| hold.on() == *on && hold.kind == new.kind && hold.within == *by.within);
        let hold = placed.ok_or_else(|| Error::missing(Missing::Hold, on))?;
        self.append_hold_event(EventKind::Held, &hold, by.run, json!({}), by.label)?;
        Ok(hold)
    }

    /// Refuses a start if a hold keeps the task from starting. Otherwise returns the holds that the start has to probe.
    pub(super) fn pass_holds(&self, target: Target<'_>) -> Result<Vec<Hold>, Error> {
        let now = self.now();
        let mut probes = Vec::new();
        for hold in self.holds()?.into_iter().filter(|hold| hold.concerns(target)) {
            match hold.stance(now) {
                Stance::Closed => {
                    return Err(Error::conflict(
                        format!("{} is not to start: {}", target.task, hold.waiting(now).text),
                        format!("wait, or `supervisor release {}`", hold.release_arguments()),
                    ));
                }
                Stance::Probe => probes.push(hold),
                Stance::Open => {}
            }
        }
        Ok(probes)
    }

    /// Records the run that probes these holds.
    pub(super) fn begin_probes(&self, task: &Task, run: RunId, probes: Vec<Hold>) -> Result<(), Error> {
        for hold in probes {
            self.tx.set_probe(hold.id, Some(run), self.now().after(SERVED))?;
            let payload = facts(&hold, json!({}));
            self.append(task, Some(run), EventKind::HoldProbed, payload, SYSTEM)?;
        }
        Ok(())
    }

    /// Returns the ending of a run with the end of its rate limit, if the worker has reported one before.
    pub(super) fn with_reported_limit(
        &self,
        run: &Run,
        max_retries: Option<u32>,
        ending: Ending,
    ) -> Result<Ending, Error> {
        if !matches!(ending.cause, EndCause::RateLimited { .. }) {
            return Ok(ending);
        }
        let placed = self.holds()?.into_iter().find(|hold| hold.run_id == Some(run.id));
        Ok(rate_limited(ending, placed.and_then(|hold| hold.until), max_retries))
    }

    /// Applies the end of a run to holds: the run has met a limit, or its probe has a result.
    pub(super) fn settle_holds(&self, run: &Run, outcome: Outcome, ending: &Ending) -> Result<(), Error> {
        let now = self.now();
        let met = match (outcome, &ending.cause) {
            (Outcome::RateLimited, EndCause::RateLimited { until }) => Some((HoldKind::RateLimit, *until)),
            (Outcome::SpawnFailed, EndCause::NotLoggedIn { until }) => Some((HoldKind::Login, *until)),
            _ => None,
        };
        let met = met.map(|(kind, until)| (kind, until.min(self.longest_hold())));
        // First, the holds that this run probed are settled: the run met the same limit, it was served, or its end shows
        // nothing about the service.
        for hold in self.holds()?.into_iter().filter(|hold| hold.probe_run == Some(run.id)) {
            match (met, outcome) {
                (Some((kind, until)), _) if kind == hold.kind => {
                    self.tx.set_probe(hold.id, None, until.max(now))?;
                }
                // A service that refuses requests by a rate limit has accepted the login.
                (Some((HoldKind::RateLimit, _)), _) => {
                    self.end_hold(&hold, "a run was logged in again", Some(run), SYSTEM)?;
                }
                // The sandbox denied the run what it needed, so it may never have reached the service.
                (_, Outcome::Crashed | Outcome::Unreported) if ending.denied.is_some() => {
                    self.tx.set_probe(hold.id, None, now)?;
                }
                // The run ended too early, or used no service, so another run has to probe.
                (
                    _,
                    Outcome::Reclaimed
                    | Outcome::Preempted
                    | Outcome::Cancelled
                    | Outcome::Lost
                    | Outcome::RateLimited
                    | Outcome::SpawnFailed
                    | Outcome::CheckPassed
                    | Outcome::CheckFailed,
                ) => self.tx.set_probe(hold.id, None, now)?,
                (
                    _,
                    Outcome::Completed
                    | Outcome::Blocked
                    | Outcome::ReviewRequested
                    | Outcome::Approved
                    | Outcome::ChangesRequested
                    | Outcome::Crashed
                    | Outcome::TimedOut
                    | Outcome::Stalled
                    | Outcome::OutOfMemory
                    | Outcome::Unreported,
                ) => self.end_hold(&hold, "a run was served again", Some(run), SYSTEM)?,
            }
        }
        // Then a new hold is placed for a limit that the run met and did not report itself.
        let Some((kind, until)) = met.filter(|(_, until)| *until > now) else { return Ok(()) };
        let is_held = self.holds()?.into_iter().any(|hold| hold.run_id == Some(run.id) && hold.kind == kind);
        let (is_shared, reason) = match kind {
            // Without an account, only the task itself waits. Its retry time is sufficient for that.
            HoldKind::RateLimit
            | HoldKind::Manual
            | HoldKind::Limit
            | HoldKind::Budget
            | HoldKind::Breaker => {
                (ending.siblings == Siblings::Hold && run.account.is_some(), "was refused")
            }
            // A login belongs to the account, or to all workers of the lane.
            HoldKind::Login => (run.account.is_some() || run.profile.is_some(), "could not log in"),
        };
        if !is_held && is_shared {
            let trouble = ending.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            let reason = format!("run {} {reason}{trouble}", run.id);
            let new = NewHold { kind, reason, until: Some(until) };
            let within = Within::Tenant(run.tenant.clone());
            self.place_hold(
                &hold_target(run, kind),
                &new,
                By { label: SYSTEM, within: &within, run: Some(run) },
            )?;
        }
        Ok(())
    }

    /// Ends the holds whose time has come. The hold of a service's limit or of a login ends only if a run that probes it
    /// has lasted for [`SERVED`]. The daemon ends the holds of breakers.
    pub(super) fn end_holds(&self) -> Result<(), Error> {
        let now = self.now();
        for hold in self.holds()?.into_iter().filter(|hold| hold.stance(now) == Stance::Open) {
            let reason = match hold.kind {
                HoldKind::Manual | HoldKind::Limit | HoldKind::Budget => "its time has come",
                HoldKind::RateLimit | HoldKind::Login | HoldKind::Breaker => "a run is served again",
            };
            self.end_hold(&hold, reason, None, SYSTEM)?;
        }
        Ok(())
    }

    /// Ends the holds on a finished task, and the holds on its mission if the mission is over.
    pub(super) fn end_holds_of(&self, id: &TaskId) -> Result<(), Error> {
        let live = self.holds()?;
        if live.is_empty() {
            return Ok(());
        }
        let name = self.tx.mission_of(id)?.unwrap_or_default();
        let is_over = self.tx.is_mission_over(&name)?;
        for hold in live {
            let on = (hold.scope, hold.name.as_str());
            if on == (HoldScope::Task, id.as_str()) {
                self.end_hold(&hold, "the task is over", None, SYSTEM)?;
            } else if is_over && on == (HoldScope::Mission, name.as_str()) {
                self.end_hold(&hold, "the mission is over", None, SYSTEM)?;
            }
        }
        Ok(())
    }

    pub(super) fn end_hold(
        &self,
        hold: &Hold,
        reason: &str,
        run: Option<&Run>,
        by: &str,
    ) -> Result<(), Error> {
        self.tx.end_hold(hold.id, by, self.now())?;
        self.append_hold_event(EventKind::Released, hold, run, json!({ "ended": reason }), by)
    }

    /// Appends the event of a hold: on the held task, else on the task of the run that met or probed the limit, else on
    /// the board.
    pub(super) fn append_hold_event(
        &self,
        kind: EventKind,
        hold: &Hold,
        run: Option<&Run>,
        more: Value,
        by: &str,
    ) -> Result<(), Error> {
        let task = match hold.scope {
            HoldScope::Task => Some(task_of(&hold.on())?),
            HoldScope::Mission => match hold.name.parse().ok() {
                Some(first) if self.task(&first)?.is_some() => Some(first),
                Some(_) | None => run.map(|run| run.task_id.clone()),
            },
            HoldScope::Profile
            | HoldScope::Tenant
            | HoldScope::Account
            | HoldScope::Environment
            | HoldScope::Host => run.map(|run| run.task_id.clone()),
        };
        let known = task.as_ref().map(|id| self.expect_task(id)).transpose()?.and_then(|task| task.tenant);
        // The tenant decides who may read the event: the tenant of a hold on a tenant, else the tenant of the task.
        let tenant = match hold.scope {
            HoldScope::Tenant => hold.name.parse::<Tenant>().ok(),
            HoldScope::Task
            | HoldScope::Profile
            | HoldScope::Account
            | HoldScope::Mission
            | HoldScope::Environment
            | HoldScope::Host => known,
        };
        let event = NewEvent {
            task: task.as_ref(),
            run: run.map(|run| run.id),
            tenant: tenant.as_ref(),
            kind,
            payload: Some(facts(hold, more)),
            change: None,
            actor: by,
            now: self.now(),
        };
        self.tx.append_event(&event).map(|_| ())
    }
}

fn facts(hold: &Hold, more: Value) -> Value {
    let mut facts = json!({
        "hold": hold.id, "kind": hold.kind, "scope": hold.scope, "name": hold.name, "reason": hold.reason,
        "until": hold.until,
    });
    if let (Some(facts), Value::Object(more)) = (facts.as_object_mut(), more) {
        facts.extend(more);
    }
    facts
}

/// Returns the target of a hold after a refused run: its account. Without an account, the profile for a failed login, and
/// the task for a rate limit.
fn hold_target(run: &Run, kind: HoldKind) -> HoldOn {
    match (&run.account, &run.profile, kind) {
        (Some(account), _, _) => HoldOn { scope: HoldScope::Account, name: account.clone() },
        (None, Some(profile), HoldKind::Login) => {
            HoldOn { scope: HoldScope::Profile, name: profile.to_string() }
        }
        (None, _, _) => HoldOn { scope: HoldScope::Task, name: run.task_id.to_string() },
    }
}

fn task_of(on: &HoldOn) -> Result<TaskId, Error> {
    on.name.parse().map_err(|_| Error::missing(Missing::Task, &on.name))
}
