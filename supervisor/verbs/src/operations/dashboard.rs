//! `open-dashboard`, `dashboard-sessions` and `revoke-dashboard`: links to the dashboard, and the sessions of browsers.

use kernel::{Tenant, Timestamp, brief};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, confine_to, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Cell, Screen};
use base::time::timestamp::local;
use setup::browsers::{self, CODE_LIFETIME, Follower, Offer, Owner, Session};

/// Create a one-time link to the dashboard
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OpenDashboard {
    /// The only tenant that the session sees; none for all tenants.
    pub tenant: Option<Tenant>,
    /// True if only a browser of the caller's Unix user may follow the link.
    pub own_browser: bool,
}

/// Link that signs a browser in once.
#[derive(Debug, Serialize, Deserialize)]
pub struct DashboardLink {
    /// URL with the code as its fragment, which browsers do not send to the server.
    pub url: String,
    /// Lifetime of the link, in seconds.
    pub seconds: u64,
    /// Address on which the daemon listens.
    pub listen: std::net::SocketAddr,
    /// The only tenant that the session sees; none for all tenants.
    pub tenant: Option<Tenant>,
}

impl Verb for OpenDashboard {
    verb! {
        "open-dashboard": Operator, Daemon,
        on(None),
        members,
        // If a session could open another one, it could prolong itself without end.
        no_sessions
        => DashboardLink
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)
    }

    async fn run(self, call: Call) -> Result<DashboardLink, Failure> {
        let config = call.service.config();
        if let Some(tenant) = self.tenant.as_ref()
            && config.tenants.require(Some(tenant))?.is_none()
        {
            return Err(Failure::new(Code::NotFound, format!("there is no tenant `{tenant}`"))
                .hint("supervisor tenant list lists them"));
        }
        let browsers = call.service.browsers();
        let owner = owner(&call, self.tenant.clone());
        let follower = match (self.own_browser, owner.uid) {
            (false, _) => Follower::Any,
            (true, Some(user)) => Follower::Only(user),
            (true, None) => {
                return Err(Failure::new(
                    Code::NotPermitted,
                    "a link for a browser of one user needs a caller that is a user",
                )
                .hint("leave `own_browser` out: the link is then for any browser of the host"));
            }
        };
        // The offer comes before the listener, which closes when no link is pending.
        let code = browsers.offer(Offer { owner, follower })?;
        let base = browsers.listen().await.inspect_err(|_| browsers.retract(&code))?;
        let url = format!("{base}/open#{code}");
        Ok(DashboardLink {
            url,
            seconds: CODE_LIFETIME.as_secs(),
            listen: config.dashboard.listen,
            tenant: self.tenant,
        })
    }
}

/// Returns the owner of a session whose link a caller requests.
fn owner(call: &Call, tenant: Option<Tenant>) -> Owner {
    let is_member = call.confined().is_some();
    Owner { name: call.actor.name.clone(), uid: call.actor.uid, tenant, is_member }
}

impl Command for OpenDashboard {
    fn show(reply: &DashboardLink, screen: &mut Screen) {
        screen.line(&reply.url);
    }
}

/// List the sessions of the dashboard
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List the sessions of browsers",
    after_help = "\
Examples:
  supervisor dashboard sessions
  supervisor dashboard sessions --json"
)]
pub struct DashboardSessions {}

/// Session of a browser, as the list of sessions shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct DashboardSession {
    session: String,
    /// Person who requested its link.
    actor: String,
    /// The only tenant that it sees; none for all tenants.
    tenant: Option<Tenant>,
    /// Unix user of the browser.
    browser_uid: u32,
    began: Timestamp,
    used: Timestamp,
    /// Latest end of the session.
    ends: Timestamp,
}

impl DashboardSession {
    fn from_session(session: &Session) -> Self {
        DashboardSession {
            session: session.id.clone(),
            actor: session.owner.name.clone(),
            tenant: session.owner.tenant.clone(),
            browser_uid: session.browser,
            began: session.began,
            used: session.used(),
            ends: browsers::ends(session),
        }
    }
}

/// Returns a function that is true for the owners whose sessions the caller may see and end: a user of a tenant only its
/// own, an operator all.
fn is_open_to(call: &Call) -> impl Fn(&Owner) -> bool + Send + 'static {
    let (tenant, uid) = (call.confined().cloned(), call.actor.uid);
    move |owner: &Owner| tenant.is_none() || (owner.tenant == tenant && owner.uid == uid && uid.is_some())
}

impl Verb for DashboardSessions {
    verb! { "dashboard-sessions": Operator, Daemon, on(None), members => Vec<DashboardSession> }

    async fn run(self, call: Call) -> Result<Vec<DashboardSession>, Failure> {
        let is_open = is_open_to(&call);
        let sessions = call.service.browsers().sessions();
        Ok(sessions
            .iter()
            .filter(|session| is_open(&session.owner))
            .map(|session| DashboardSession::from_session(session))
            .collect())
    }
}

impl Command for DashboardSessions {
    fn show(reply: &Vec<DashboardSession>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("No sessions.");
            return;
        }
        let rows = reply.iter().map(|one| {
            [
                Cell::from(one.session.clone()),
                Cell::from(one.actor.clone()),
                Cell::or_dash(one.tenant.as_ref()),
                Cell::from(local(one.began)),
                Cell::from(local(one.used)),
                Cell::from(local(one.ends)),
            ]
        });
        screen.table(["SESSION", "PERSON", "TENANT", "BEGAN", "USED", "ENDS"], rows);
    }
}

/// End sessions of the dashboard, and revoke unused links
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "End sessions of browsers; with --all, also withdraw the links that were not used",
    after_help = "\
Examples:
  supervisor dashboard revoke 3f9a01c2
  supervisor dashboard revoke --all"
)]
pub struct RevokeDashboard {
    /// The sessions.
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub sessions: Vec<String>,
    /// All of them, and all links.
    #[arg(long, help = "End all of them")]
    pub all: bool,
}

/// Ended sessions.
#[derive(Debug, Serialize, Deserialize)]
pub struct Revoked {
    pub sessions: Vec<String>,
}

impl Verb for RevokeDashboard {
    verb! { "revoke-dashboard": Operator, Daemon, on(None), members => Revoked }

    async fn run(self, call: Call) -> Result<Revoked, Failure> {
        if self.all != self.sessions.is_empty() {
            return Err(Failure::usage("name sessions, or use --all")
                .hint("supervisor dashboard sessions lists them; --all ends each of them"));
        }
        let is_open = is_open_to(&call);
        let known = call.service.browsers().sessions();
        let is_known = |id: &&String| known.iter().any(|one| one.id == **id && is_open(&one.owner));
        if let Some(missing) = self.sessions.iter().find(|id| !is_known(id)) {
            let printable: String = missing.chars().take(80).collect();
            return Err(Failure::new(Code::NotFound, format!("there is no session `{printable}`"))
                .hint("supervisor dashboard sessions lists the open ones"));
        }
        let (all, named, service) = (self.all, self.sessions, call.service);
        if all {
            service.browsers().withdraw(&is_open);
        }
        let which = move |one: &Session| is_open(&one.owner) && (all || named.contains(&one.id));
        let ended =
            blocking("the sessions were not ended", move || service.browsers().revoke(which)).await??;
        for session in &ended {
            tracing::info!(session = session.as_str(), by = call.actor.name.as_str(), "session_revoked");
        }
        Ok(Revoked { sessions: ended })
    }
}

impl Command for RevokeDashboard {
    fn show(reply: &Revoked, screen: &mut Screen) {
        match reply.sessions.as_slice() {
            [] => screen.line("No session was open."),
            ended => screen.line(format!("ended: {}", ended.join(", "))),
        }
    }
}

/// Returns the lifetime of a link, in words.
pub fn link_lasts() -> String {
    brief(CODE_LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_sessions_has_each_time_whole_at_eighty_columns() {
        let session = serde_json::json!({"session": "3f9a01c2", "actor": "alice", "tenant": "acme", "browser_uid": 1000,
            "began": 1_795_000_000, "used": 1_795_003_600, "ends": 1_795_604_800});
        let shown: DashboardSession = serde_json::from_value(session).unwrap();
        let times = [shown.began, shown.used, shown.ends].map(local);
        let mut screen = Screen::plain(80);
        DashboardSessions::show(&vec![shown], &mut screen);
        let text = screen.into_text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for time in times {
            assert!(text.contains(&time), "{time}\n{text}");
        }
    }
}
