//! Holds: orders not to start some tasks for a while, placed by a person or because a service refuses.
//!
//! A hold by hand ends at its time, or when it is released. A hold for a rate limit or a failed login does not end at its
//! time alone: one run of its account or profile may then try, and the others go on when that run is served.
//!
//! See decision 0015.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::actor::Label;
use crate::model::clock::Timestamp;
use crate::model::figures::brief;
use crate::model::id::{Profile, RunId, TaskId, Tenant};
use crate::model::waiting::{Waiting, WaitingCode};
use crate::model::words::words;

/// Shortest rate limit that the board accepts from a worker. A worker that always reports "now" would otherwise start
/// without end, and no failure would count.
pub const SHORTEST_LIMIT: Duration = Duration::from_secs(15);

/// Longest pause before the next try of an open breaker.
pub const BREAKER_PAUSE: Duration = Duration::from_mins(10);

words! {
    /// Reason for a hold.
    "hold kind"
    HoldKind {
        /// A person placed it.
        Manual => "manual",
        /// A service refuses requests for a while.
        RateLimit => "rate_limit",
        /// A service does not accept a login.
        Login => "login",
        /// A mission has reached a limit, and waits for a person who grants more.
        Limit => "limit",
        /// A tenant or an account has used up its budget of a day, and waits for the next day.
        Budget => "budget",
        /// Starts have failed too often in a row, and wait until one succeeds or a person lets them go on.
        Breaker => "breaker",
    }
}

words! {
    /// Kind of thing that a hold is on.
    "hold scope"
    HoldScope {
        Task => "task",
        /// All tasks of a profile.
        Profile => "profile",
        /// All tasks of a tenant.
        Tenant => "tenant",
        /// All tasks of the profiles that share an account.
        Account => "account",
        /// A task that a person made, and all tasks that workers make below it.
        Mission => "mission",
        /// All tasks that need one thing: the program of a lane, a policy, a directory. The daemon knows these tasks.
        Environment => "environment",
        /// All tasks of a tenant, or all without a tenant, on this host. The daemon knows the boards concerned.
        Host => "host",
    }
}

/// Tenants whose tasks a hold is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// Tasks of every tenant: an operator's hold.
    #[default]
    Board,
    /// Tasks of one tenant, or tasks without a tenant.
    Tenant(Option<Tenant>),
}

impl Within {
    /// Returns true if the hold applies to the tasks of a tenant.
    pub(crate) fn reaches(&self, tenant: Option<&Tenant>) -> bool {
        match self {
            Within::Board => true,
            Within::Tenant(own) => own.as_ref() == tenant,
        }
    }
}

/// Tasks that a hold concerns: its scope and the name within the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HoldOn {
    /// Kind of the target.
    pub scope: HoldScope,
    pub name: String,
}

/// Name of the breaker of the tasks without a tenant. A tenant's breaker is called `host/TENANT`.
const HOST: &str = "host";

impl HoldOn {
    /// Names the breaker of a tenant's starts on this host, or of the tasks without a tenant.
    pub fn host(tenant: Option<&Tenant>) -> Self {
        let name = tenant.map_or_else(|| HOST.to_owned(), |tenant| format!("{HOST}/{tenant}"));
        HoldOn { scope: HoldScope::Host, name }
    }

    /// Returns the tenants whose starts this breaker is on; none for another target, or for a name of another release.
    pub fn whose_starts(&self) -> Option<Within> {
        let rest = self.name.strip_prefix(HOST).filter(|_| self.scope == HoldScope::Host)?;
        match rest.strip_prefix('/') {
            Some(tenant) => tenant.parse().ok().map(|tenant| Within::Tenant(Some(tenant))),
            None => rest.is_empty().then_some(Within::Tenant(None)),
        }
    }

    /// Returns the arguments of `release` that end the holds on this target. For the tasks without a tenant, the
    /// arguments release all holds of this kind.
    pub fn release_arguments(&self) -> String {
        match self.scope {
            HoldScope::Task => self.name.clone(),
            HoldScope::Host => match self.whose_starts() {
                Some(Within::Tenant(Some(tenant))) => format!("--host-of {tenant}"),
                Some(Within::Tenant(None) | Within::Board) | None => "--host".to_owned(),
            },
            HoldScope::Profile
            | HoldScope::Tenant
            | HoldScope::Account
            | HoldScope::Mission
            | HoldScope::Environment => {
                format!("--{} {}", self.scope, self.name)
            }
        }
    }
}

impl std::fmt::Display for HoldOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.scope {
            HoldScope::Task => f.write_str(&self.name),
            HoldScope::Host => match self.whose_starts() {
                Some(Within::Tenant(Some(tenant))) => write!(f, "dispatch for tenant {tenant}"),
                Some(Within::Tenant(None)) => f.write_str("dispatch for tasks without a tenant"),
                Some(Within::Board) | None => write!(f, "dispatch for {}", self.name),
            },
            HoldScope::Profile
            | HoldScope::Tenant
            | HoldScope::Account
            | HoldScope::Mission
            | HoldScope::Environment => {
                write!(f, "{} {}", self.scope, self.name)
            }
        }
    }
}

/// Hold to be placed.
#[derive(Clone, Debug)]
pub struct NewHold {
    /// Reason, as a word.
    pub kind: HoldKind,
    /// Reason, in plain words.
    pub reason: String,
    /// End of the hold; none until a person releases it.
    pub until: Option<Timestamp>,
}

/// Hold that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    pub id: i64,
    /// Reason, as a word.
    pub kind: HoldKind,
    /// Kind of the target.
    pub scope: HoldScope,
    pub name: String,
    /// Reason, in plain words.
    pub reason: String,
    /// Caller who placed it: `person:alice`.
    pub placed_by: String,
    /// Tenants whose tasks the hold is on.
    pub within: Within,
    /// Run that met the limit.
    pub run_id: Option<RunId>,
    /// Task of the run that met the limit.
    pub met_by_task: Option<TaskId>,
    /// Tenant of the run that met the limit.
    pub met_by_tenant: Option<Tenant>,
    /// Run that tries whether the limit is over.
    pub probe_run: Option<RunId>,
    /// End of the hold; none until a person releases it. While a run probes the service, the end of that probe's time.
    pub until: Option<Timestamp>,
    /// Time of placement.
    pub created_at: Timestamp,
}

/// Effect of a hold at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stance {
    /// No task that the hold concerns may start.
    Closed,
    /// A single run may start, to see whether it is served.
    Probe,
    /// The hold is over.
    Open,
}

/// Start that is checked against the holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) task: &'a TaskId,
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) tenant: Option<&'a Tenant>,
    pub(crate) account: Option<&'a str>,
    pub(crate) mission: &'a str,
}

impl Hold {
    /// Returns the effect of the hold now.
    pub(crate) fn stance(&self, now: Timestamp) -> Stance {
        let lasts = self.until.is_none_or(|until| until > now);
        match (self.kind, self.probe_run) {
            _ if lasts => Stance::Closed,
            // The daemon decides about the single try that a breaker allows.
            (HoldKind::Breaker, _) | (HoldKind::RateLimit | HoldKind::Login, None) => Stance::Probe,
            (HoldKind::RateLimit | HoldKind::Login, Some(_))
            | (HoldKind::Manual | HoldKind::Limit | HoldKind::Budget, _) => Stance::Open,
        }
    }

    /// Returns true if the hold's time has come, so that it keeps nothing from starting any more.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.stance(now) == Stance::Open
    }

    /// Returns true if the hold's time has come and one run may start, to see whether it is served.
    pub fn is_probed(&self, now: Timestamp) -> bool {
        self.stance(now) == Stance::Probe
    }

    /// Returns true if the hold applies to this start.
    pub(crate) fn concerns(&self, target: Target<'_>) -> bool {
        let name = match self.scope {
            HoldScope::Task => Some(target.task.as_str()),
            HoldScope::Profile => target.profile.map(Profile::as_str),
            HoldScope::Tenant => target.tenant.map(Tenant::as_str),
            HoldScope::Account => target.account,
            HoldScope::Mission => Some(target.mission),
            // The daemon knows the tasks of these scopes.
            HoldScope::Environment | HoldScope::Host => None,
        };
        name == Some(self.name.as_str()) && self.within.reaches(target.tenant)
    }

    /// Returns the target of the hold.
    pub fn on(&self) -> HoldOn {
        HoldOn { scope: self.scope, name: self.name.clone() }
    }

    /// Returns the arguments of `release` that end it.
    pub fn release_arguments(&self) -> String {
        self.on().release_arguments()
    }

    pub(crate) fn waiting(&self, now: Timestamp) -> Waiting {
        let by = Label::parse(&self.placed_by).name;
        let release = format!("`supervisor release {}`", self.release_arguments());
        let (code, text) = match (self.kind, self.probe_run) {
            (HoldKind::Manual, _) => {
                let on =
                    if self.scope == HoldScope::Task { String::new() } else { format!("{}, ", self.on()) };
                (WaitingCode::Hold, format!("held by {by} ({on}{}): {release}", self.reason))
            }
            (HoldKind::Limit, _) => {
                let answer = match self.scope {
                    HoldScope::Mission => format!("`supervisor answer {} 1`", self.name),
                    HoldScope::Task
                    | HoldScope::Host
                    | HoldScope::Profile
                    | HoldScope::Tenant
                    | HoldScope::Account
                    | HoldScope::Environment => release,
                };
                let text =
                    format!("the {} is paused: {}; {answer} grants as much again", self.on(), self.reason);
                (WaitingCode::Hold, text)
            }
            (HoldKind::Budget, _) => {
                let text = format!(
                    "the budget of {} for today is spent: {}; it goes on tomorrow, {release} grants as much again today",
                    self.on(),
                    self.reason
                );
                (WaitingCode::Hold, text)
            }
            (HoldKind::Breaker, _) => {
                let text = format!(
                    "waits for {} to work again ({}); {release} tries it at once",
                    self.on(),
                    self.reason
                );
                return self.broken(text, self.on().to_string());
            }
            (HoldKind::RateLimit, Some(run)) => {
                let text =
                    format!("waits for run {run}, which tests whether {} accepts requests again", self.on());
                (WaitingCode::RateLimit, text)
            }
            (HoldKind::RateLimit, None) => {
                let wait = self.until.map_or(Duration::ZERO, |until| until.since(now));
                let text =
                    format!("held for {} by a rate limit of {} ({})", brief(wait), self.on(), self.reason);
                (WaitingCode::RateLimit, text)
            }
            (HoldKind::Login, Some(run)) => {
                let text =
                    format!("waits for run {run}, which tests whether the login of {} works", self.on());
                return self.broken(text, format!("login of {}", self.on()));
            }
            (HoldKind::Login, None) => {
                let wait = brief(self.until.map_or(Duration::ZERO, |until| until.since(now)));
                let text = format!(
                    "waits for the login of {} ({}); the next try is in {wait}, or after {release}",
                    self.on(),
                    self.reason
                );
                return self.broken(text, format!("login of {}", self.on()));
            }
        };
        Waiting { until: self.until, ..Waiting::new(code, text) }
    }

    /// Returns the reason for a target that does not work.
    fn broken(&self, text: String, what: String) -> Waiting {
        Waiting { until: self.until, ..Waiting::broken(text, what, &self.reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starts_of_each_tenant_have_a_name_of_their_own() {
        let acme: Tenant = "acme".parse().unwrap();
        // A tenant may have any name, also the name of the breaker without a tenant.
        let host: Tenant = "host".parse().unwrap();
        for tenant in [None, Some(acme.clone()), Some(host)] {
            let on = HoldOn::host(tenant.as_ref());
            assert_eq!(on.whose_starts(), Some(Within::Tenant(tenant)));
        }
        assert_eq!(HoldOn::host(None).to_string(), "dispatch for tasks without a tenant");
        assert_eq!(HoldOn::host(Some(&acme)).to_string(), "dispatch for tenant acme");
        for (scope, name) in [
            (HoldScope::Host, "hosts"),
            (HoldScope::Host, "host/"),
            (HoldScope::Host, "host/a b"),
            (HoldScope::Tenant, "host"),
        ] {
            assert_eq!(HoldOn { scope, name: name.to_owned() }.whose_starts(), None, "{name}");
        }
    }
}
