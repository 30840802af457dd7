//! `lanes` and `check-lane`: list the lanes, and check what one of them lacks on this host. `supervisor lane` uses
//! both.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Finding, FindingCode, HoldScope, Pool, Profile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{lane_needs, lane_program};
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::findings::failed;
use base::paths::Root;
use base::terminal::{Cell, Screen, printable};
use setup::config::definitions::Lookup;
use setup::lanes::{Description, Lane};
use setup::roster::{Roster, changed, did_you_mean, unread_lane};
use upkeep::doctor::DoctorReport;

/// List the lanes.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor lane list
  supervisor lane list --json")]
pub struct ListLanes {
    /// Only this one.
    #[arg(skip)]
    pub name: Option<Profile>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NamedLane {
    pub name: String,
    /// Contents of its file; none if the file is invalid.
    pub lane: Option<Description>,
    /// Defects of its file.
    pub defect: Option<String>,
    /// Changes of its files that the daemon has not read yet. Only for a lane that the request names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

impl NamedLane {
    fn from_found(name: &str, found: &Lookup<'_, Lane>) -> Option<Self> {
        let (lane, defect) = match found {
            Lookup::Usable(lane) => (Some(lane.describe()), None),
            Lookup::Disabled(defect) => (None, Some(defect.to_string())),
            Lookup::Absent => return None,
        };
        Some(NamedLane { name: name.to_owned(), lane, defect, unread: Vec::new() })
    }
}

impl Verb for ListLanes {
    verb! { "lanes": Operator, Read, on(None) => Vec<NamedLane> }

    async fn run(self, call: Call) -> Result<Vec<NamedLane>, Failure> {
        let roster = call.service.roster();
        let asked = |name: &str| self.name.as_ref().is_none_or(|asked| asked.as_str() == name);
        let lanes = roster.lanes().all().filter(|(name, _)| asked(name));
        let mut named: Vec<NamedLane> =
            lanes.filter_map(|(name, found)| NamedLane::from_found(name, &found)).collect();
        match (self.name, named.first_mut()) {
            (Some(name), None) => Err(unknown(&name, &roster, call.service.root())),
            (Some(name), Some(found)) if call.service.daemon().is_some() => {
                let (used, root) = (Arc::clone(&roster), call.service.root().clone());
                let unread = move || used.changed_files(&used.on_disk(&root), &root, &name);
                let unread = blocking("the lanes were not read", unread).await?;
                found.unread = unread.iter().map(|path| changed(path)).collect();
                Ok(named)
            }
            _ => Ok(named),
        }
    }
}

/// Returns the path of a lane's file, which may not exist.
fn file_of(root: &Root, name: &Profile) -> PathBuf {
    root.lanes_dir().join(format!("{name}.toml"))
}

fn unknown(name: &Profile, roster: &Roster, root: &Root) -> Failure {
    let known: Vec<&str> = roster.lanes().names().collect();
    let failure = Failure::new(Code::NotFound, format!("no lane `{name}` exists here"));
    if let Some(unread) = unread_lane(root, name) {
        return failure.hint(unread);
    }
    let meant = did_you_mean(name, &known);
    failure.hint(format!("{meant}the lanes are: {}; lanes.d/{name}.toml would add it", known.join(", ")))
}

impl Command for ListLanes {
    fn show(reply: &Vec<NamedLane>, screen: &mut Screen) {
        let rows = reply.iter().map(|named| {
            let text = |text: Option<&str>| Cell::or_dash(text.map(str::to_owned));
            let lane = named.lane.as_ref();
            let program = lane.and_then(|lane| lane.argv.first()).map(String::as_str);
            [
                Cell::from(named.name.clone()),
                text(program),
                Cell::or_dash(lane.map(|lane| lane.stdout.to_string())),
                text(lane.and_then(|lane| lane.policy.as_deref())),
                text(lane.and_then(|lane| lane.account.as_deref())),
                text(lane.and_then(|lane| lane.origin.to_str()).or(named.defect.as_deref())),
            ]
        });
        screen.table(["LANE", "PROGRAM", "OUTPUT", "POLICY", "ACCOUNT", "FROM"], rows);
    }
}

/// Check whether this host has what a lane needs.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
Examples:
  supervisor lane check codex")]
pub struct CheckLane {
    /// The lane.
    pub name: Profile,
    /// The search path of the caller, for a hint.
    #[arg(skip)]
    #[serde(default)]
    pub path: Option<String>,
}

impl Verb for CheckLane {
    verb! { "check-lane": Operator, Read => DoctorReport }

    async fn run(self, call: Call) -> Result<DoctorReport, Failure> {
        let used = call.service.roster();
        let root = call.service.root();
        // The caller asks about the files as they are now. A daemon may not have read them yet.
        let roster = match call.service.daemon() {
            Some(_) => {
                let (used, root) = (Arc::clone(&used), root.clone());
                Arc::new(blocking("the lanes were not read", move || used.on_disk(&root)).await?)
            }
            None => Arc::clone(&used),
        };
        let lane = match roster.lanes().find(&self.name) {
            Lookup::Usable(lane) => lane,
            Lookup::Disabled(defect) => {
                return Ok(DoctorReport::new(vec![Finding::from(defect)]));
            }
            Lookup::Absent if used.lanes().has(self.name.as_str()) => {
                let gone = format!("the lane `{}` has no file any more", self.name);
                return Err(Failure::new(Code::NotFound, gone).hint(changed(&file_of(root, &self.name))));
            }
            Lookup::Absent => return Err(unknown(&self.name, &roster, root)),
        };
        let file = Finding::ok(FindingCode::File, lane.origin().display().to_string());
        let mut checks = vec![file];
        let unread = used.changed_files(&roster, root, &self.name);
        checks.extend(unread.iter().map(|path| Finding::warning(FindingCode::Daemon, changed(path))));
        if lane.pull {
            let claims = format!(
                "a pull lane: its workers claim their tasks, as with `supervisor claim --assignee {}`",
                self.name
            );
            checks.push(Finding::ok(FindingCode::Claims, claims));
            return Ok(DoctorReport::new(checks));
        }
        let config = call.service.config();
        match roster.resolve(&self.name, None, &config) {
            Ok(resolved) => {
                let detail = format!("{}, which this host can enforce", resolved.policy_name);
                checks.push(Finding::ok(FindingCode::Policy, detail));
                let (name, policy) = (&resolved.policy_name, resolved.policy);
                let stores = root.secret_stores();
                checks.push(lane_needs::network(lane, name, policy, &stores).await);
                checks.extend(lane_needs::secrets(lane, &stores));
                checks.extend(lane_needs::brokers(lane, name, policy, &stores));
                checks.extend(lane_needs::login(lane, &self.name, root));
                checks.extend(lane_program::check(
                    &self.name,
                    self.path.as_deref(),
                    lane,
                    policy,
                    &file_of(root, &self.name),
                ));
            }
            Err(why) => checks.push(failed(FindingCode::Policy, why.into())),
        }
        let account = lane.account.clone();
        let profile = self.name.to_string();
        let holds = call.read(|view| view.holds()).await?;
        let held = holds.into_iter().filter(|hold| match hold.scope {
            HoldScope::Account => account.as_deref() == Some(hold.name.as_str()),
            HoldScope::Profile => hold.name == profile,
            HoldScope::Task
            | HoldScope::Tenant
            | HoldScope::Mission
            | HoldScope::Environment
            | HoldScope::Host => false,
        });
        checks.extend(held.map(|hold| {
            Finding::warning(
                FindingCode::Hold,
                format!("{} is held ({}): {}", hold.on(), hold.kind, hold.reason),
            )
            .advice(format!("supervisor release {}", hold.release_arguments()))
        }));
        Ok(DoctorReport::new(checks))
    }
}

impl Command for CheckLane {
    fn show(reply: &DoctorReport, screen: &mut Screen) {
        screen.findings(&reply.checks);
    }

    fn verdict(reply: &DoctorReport) -> u8 {
        crate::operations::doctor::code(reply)
    }
}

/// Shows a lane in the form of its file.
pub fn show_one(named: &NamedLane, screen: &mut Screen) {
    screen.line(named.name.clone());
    let mut field = |name: &str, value: &str| screen.hanging(&format!("  {name:<14}"), &printable(value));
    named.unread.iter().for_each(|unread| field("not in use", unread));
    let Some(lane) = &named.lane else {
        field("disabled", named.defect.as_deref().unwrap_or_default());
        return;
    };
    let word = |word: serde_json::Result<serde_json::Value>| {
        word.ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let paths =
        |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
    field("from", &lane.origin.display().to_string());
    if lane.pull {
        field("pull", "its workers claim their tasks; nothing here starts them");
        return;
    }
    field("command", &lane.argv.join(" "));
    field("prompt", &word(serde_json::to_value(lane.prompt)));
    field("output", &lane.stdout.to_string());
    field("clean exit", &word(serde_json::to_value(lane.on_clean_exit)));
    let duration = |seconds: u64| kernel::brief(std::time::Duration::from_secs(seconds));
    let runtime = lane.max_runtime_seconds.map(duration);
    let idle = lane.idle_limit_seconds.map(duration);
    let quoted = |words: &[String]| {
        let word = |word: &String| if word.is_empty() { "\"\"".to_owned() } else { word.clone() };
        words.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    let pools = lane.pools.iter().map(Pool::as_str).collect::<Vec<_>>().join(", ");
    let optional = [
        ("terminal", lane.terminal.map(|size| format!("{}x{}", size.columns, size.rows))),
        ("fork", Some(quoted(&lane.fork)).filter(|words| !words.is_empty())),
        ("session", lane.session.map(|form| word(serde_json::to_value(form)))),
        ("model", lane.model.clone()),
        ("tools", lane.tools.map(|form| word(serde_json::to_value(form)))),
        ("policy", lane.policy.clone()),
        ("commit", lane.commit.map(|mode| mode.to_string())),
        ("account", lane.account.clone()),
        ("max runtime", runtime),
        ("idle limit", idle),
        ("max running", lane.max_running.map(|most| most.to_string())),
        ("pools", Some(pools).filter(|pools| !pools.is_empty())),
        (
            "rate limit",
            Some(format!(
                "{} for {}",
                word(serde_json::to_value(lane.rate_limit)),
                duration(lane.rate_limit_pause_seconds)
            )),
        ),
        ("retry limit", Some(duration(lane.retry_limit_seconds))),
        ("exit codes", Some(lane.exit_codes.shown().join(", ")).filter(|text| !text.is_empty())),
        ("orchestrator", Some(quoted(&lane.orchestrator)).filter(|text| !text.is_empty())),
        (
            "starts",
            lane.orchestrator_outside.then(|| "outside of the workspace, as an orchestrator".to_owned()),
        ),
        ("skills", lane.skills.as_ref().map(|path| path.display().to_string())),
        ("login", Some(lane.login.join(" ")).filter(|text| !text.is_empty())),
        ("keeps", Some(paths(&lane.keep)).filter(|text| !text.is_empty())),
        ("state", lane.state.as_ref().map(|path| path.display().to_string())),
        ("install", Some(paths(&lane.install)).filter(|text| !text.is_empty())),
        ("hosts", Some(lane.hosts.join(" ")).filter(|text| !text.is_empty())),
        ("brokers", Some(lane.brokers.join(" ")).filter(|text| !text.is_empty())),
        ("secrets", Some(lane.secrets.join(" ")).filter(|text| !text.is_empty())),
        ("unsets", Some(lane.unset.join(" ")).filter(|text| !text.is_empty())),
        ("sets", Some(lane.env.join(" ")).filter(|text| !text.is_empty())),
        ("files", Some(paths(&lane.files)).filter(|text| !text.is_empty())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            field(name, &value);
        }
    }
}
