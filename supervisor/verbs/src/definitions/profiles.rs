//! `profiles`: lists the profiles. `supervisor profile` sends it.

use kernel::{Pool, Profile, ProposalKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use base::terminal::{Cell, Screen, printable, printable_lines};
use host::home::home_of;
use setup::config::Config;
use setup::config::definitions::Lookup;
use setup::config::triage::TriageConfig;
use setup::roster::{Home, ProfileDefinition, ProfileText, Roster, did_you_mean, unread_profile};

/// List the profiles.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor profile list
  supervisor profile list --json")]
pub struct ListProfiles {
    /// Only this one.
    #[arg(skip)]
    pub name: Option<Profile>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NamedProfile {
    pub name: String,
    /// Contents of its file; none if the file is invalid.
    pub profile: Option<ProfileText>,
    /// Defects of its file.
    pub defect: Option<String>,
    pub lane: Profile,
    /// Default policy of its tasks.
    pub policy: String,
    /// Reason why nothing can be started for it; none if it can run.
    pub cannot_run: Option<String>,
    /// True for a shipped profile that makes proposals: it works on the board itself, not on tasks of people.
    #[serde(default)]
    pub proposes: bool,
}

impl NamedProfile {
    fn from_found(
        name: &str,
        found: &Lookup<'_, ProfileDefinition>,
        roster: &Roster,
        config: &Config,
    ) -> Option<Self> {
        let profile: Profile = name.parse().ok()?;
        let (described, defect) = match found {
            Lookup::Usable(definition) => (Some(definition.describe()), None),
            Lookup::Disabled(defect) => (None, Some(defect.to_string())),
            Lookup::Absent => return None,
        };
        let is_shipped = matches!(found, Lookup::Usable(definition) if definition.is_shipped);
        let proposes = is_shipped && ProposalKind::ALL.iter().any(|kind| TriageConfig::key(*kind) == name);
        Some(NamedProfile {
            name: name.to_owned(),
            proposes,
            profile: described,
            defect,
            lane: roster.lane_name(&profile, config),
            policy: roster.policy_name(&profile, None, config),
            cannot_run: match roster.resolve(&profile, None, config) {
                Err(why) => Some(why.to_string()),
                Ok(resolved) => resolved.without_program(home_of(None).as_deref()),
            },
        })
    }
}

impl Verb for ListProfiles {
    verb! { "profiles": Operator, Read, on(None) => Vec<NamedProfile> }

    async fn run(self, call: Call) -> Result<Vec<NamedProfile>, Failure> {
        let (roster, config) = (call.service.roster(), call.service.config());
        // The search runs on a blocking thread: a directory of programs may be on a file system that hangs.
        blocking("failed to look for the programs of the profiles", move || {
            let asked = |name: &str| self.name.as_ref().is_none_or(|asked| asked.as_str() == name);
            let profiles = roster.profiles().filter(|(name, _)| asked(name));
            let named: Vec<NamedProfile> = profiles
                .filter_map(|(name, found)| NamedProfile::from_found(name, &found, &roster, &config))
                .collect();
            match &self.name {
                Some(name) if named.is_empty() => Err(unknown(name, &roster, call.service.root())),
                _ => Ok(named),
            }
        })
        .await?
    }
}

fn unknown(name: &Profile, roster: &Roster, root: &Root) -> Failure {
    let known: Vec<&str> = roster.profiles().map(|(name, _)| name).collect();
    let failure = Failure::new(Code::NotFound, format!("there is no profile `{name}`"));
    if roster.knows(name) {
        return failure.hint(format!("it is a lane: `supervisor lane show {name}`"));
    }
    if let Some(unread) = unread_profile(root, name) {
        return failure.hint(unread);
    }
    let add = format!("`supervisor profile create {name}` adds it");
    failure.hint(if known.is_empty() {
        add
    } else {
        format!("{}the profiles are: {}; {add}", did_you_mean(name, &known), known.join(", "))
    })
}

impl Command for ListProfiles {
    fn show(reply: &Vec<NamedProfile>, screen: &mut Screen) {
        if reply.is_empty() {
            screen
                .line(cli_context::repeated("No profiles. Create one with: supervisor profile create NAME"));
            return;
        }
        let rows = reply.iter().map(|named| {
            let profile = named.profile.as_ref();
            let text = |text: Option<&str>| Cell::or_dash(text.map(str::to_owned));
            [
                Cell::from(named.name.clone()),
                Cell::from(named.lane.to_string()),
                text(profile.and_then(|profile| profile.model.as_deref())),
                Cell::from(named.policy.clone()),
                Cell::from(if named.cannot_run.is_none() { "yes" } else { "no" }.to_owned()),
                text(profile.map_or(named.defect.as_deref(), |profile| profile.description.as_deref())),
            ]
        });
        screen.table(["PROFILE", "LANE", "MODEL", "POLICY", "RUNS", "DESCRIPTION"], rows);
        // Often several profiles have the same reason, which is then shown once.
        let mut whys: Vec<(&str, Vec<&str>)> = Vec::new();
        for named in reply {
            let Some(why) = named.cannot_run.as_deref() else { continue };
            match whys.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(&named.name),
                None => whys.push((why, vec![&named.name])),
            }
        }
        for (why, names) in whys {
            screen.hanging("", &printable(&format!("Nothing runs for {}: {why}", names.join(", "))));
        }
    }
}

/// Shows a profile in the form of its file.
pub fn show_one(named: &NamedProfile, screen: &mut Screen) {
    screen.line(named.name.clone());
    let mut field = |name: &str, value: &str| screen.hanging(&format!("  {name:<14}"), &printable(value));
    let Some(profile) = &named.profile else {
        field("disabled", named.defect.as_deref().unwrap_or_default());
        return;
    };
    let duration = |seconds| kernel::brief(std::time::Duration::from_secs(seconds));
    let runtime = profile.max_runtime_seconds.map(duration);
    let servers: Vec<String> =
        profile.mcp_servers.iter().map(|(name, server)| format!("{name} ({})", server.shown())).collect();
    let pools = profile.pools.iter().map(Pool::as_str).collect::<Vec<_>>().join(", ");
    let fields = [
        ("description", profile.description.clone()),
        ("from", Some(profile.origin.display().to_string())),
        ("role", Some(profile.role.to_string())),
        ("lane", Some(named.lane.to_string())),
        ("model", profile.model.clone()),
        ("policy", Some(named.policy.clone())),
        ("account", profile.account.clone()),
        ("skills", Some(profile.skills.join(", ")).filter(|skills| !skills.is_empty())),
        ("hosts", Some(profile.hosts.join(" ")).filter(|hosts| !hosts.is_empty())),
        ("tools of", Some(servers.join(", ")).filter(|servers| !servers.is_empty())),
        (
            "home",
            Some("what a run leaves is kept for the next".to_owned()).filter(|_| profile.home == Home::Kept),
        ),
        ("max runtime", runtime),
        ("idle limit", profile.idle_limit_seconds.map(duration)),
        ("max running", profile.max_running.map(|most| most.to_string())),
        ("pools", Some(pools).filter(|pools| !pools.is_empty())),
        ("cannot run", named.cannot_run.clone()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            field(name, &value);
        }
    }
    if let Some(prompt) = &profile.prompt {
        screen.line(String::new());
        screen.line(printable_lines(prompt));
    }
}
