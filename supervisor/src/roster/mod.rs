//! The roster: what an assignee stands for, in one place. Its profile, lane, model, policy, account and limits, or the one
//! reason why nothing can be started for it.
//!
//! An assignee names a profile, or a lane where no profile has that name. Nothing else decides who can run: dispatch and its
//! dry run, `why`, diagnostics, the warnings of `create` and `assign`, and `status` all ask [`Roster::resolve`].

mod adopted;
mod cannot_run;
mod draft;
pub(crate) mod files;
mod files_read;
mod front_matter;
#[cfg(test)]
mod fuzz_tests;
mod home;
mod loose_names;
mod policy_registry;
mod profile;
mod profile_registry;
mod run_limits;
mod settings;
mod share;
mod skills;
#[cfg(test)]
mod tests;
mod unread;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{Profile, WorkerRole};
use policies::{HostRule, Policy, SecretStores};

pub(crate) use self::adopted::{Adopted, adopt};
pub(crate) use self::cannot_run::CannotRun;
pub(crate) use self::draft::Draft;
use self::files_read::FilesRead;
pub(crate) use self::home::Home;
pub(crate) use self::loose_names::LooseName;
pub(crate) use self::policy_registry::PolicyRegistry;
pub(crate) use self::profile::{Persona, ProfileText};
use self::profile_registry::ProfileRegistry;
pub(crate) use self::profile_registry::shipped;
pub(crate) use self::run_limits::RunLimits;
pub(crate) use self::settings::{Limits, Settings};
pub(crate) use self::share::Share;
pub(crate) use self::skills::SkillRegistry;
pub(crate) use self::unread::{changed, unread, unread_lane, unread_profile};
use crate::config::Config;
use crate::config::definitions::{Defect, Found};
use crate::lanes::{Lane, Lanes, Skill, ToolServers, program};
use crate::paths::Root;

/// Who can work here, and under which policies.
#[derive(Clone, Debug)]
pub(crate) struct Roster {
    profiles: ProfileRegistry,
    lanes: Lanes,
    policies: PolicyRegistry,
    skills: SkillRegistry,
    read: FilesRead,
}

/// What an assignee resolves to.
#[derive(Debug)]
pub(crate) struct Resolved<'a> {
    /// The assignee.
    pub(crate) profile: Profile,
    /// How its workers start and end.
    pub(crate) lane: &'a Lane,
    /// What that is called.
    pub(crate) lane_name: Profile,
    /// What is kept of their homes.
    pub(crate) home: Home,
    /// The model that they use.
    pub(crate) model: Option<&'a str>,
    /// What they are there for.
    pub(crate) role: WorkerRole,
    /// What they read before their task.
    pub(crate) role_prompt: Option<&'a str>,
    /// The servers of tools that they have beside the board's.
    pub(crate) servers: Cow<'a, ToolServers>,
    /// The hosts that they reach beside those of their lane, where their policy has a proxy.
    pub(crate) hosts: Cow<'a, BTreeSet<HostRule>>,
    /// The skills of its profile.
    pub(crate) skills: Vec<&'a Skill>,
    pub(crate) policy_name: String,
    /// What they may touch, without what their lane adds.
    pub(crate) policy: &'a Policy,
    /// Whose rate limits they share.
    pub(crate) account: Option<&'a str>,
    /// What limits them.
    pub(crate) limits: RunLimits,
}

impl Resolved<'_> {
    /// The policy of a run: with the hosts, the secrets and the brokers of its lane, and the hosts of its profile.
    pub(crate) fn policy_of_run(&self, stores: &SecretStores) -> Policy {
        let mut additions = self.lane.additions.clone();
        additions.hosts.extend(self.hosts.iter().cloned());
        self.policy.with(&additions, stores)
    }
}

impl Resolved<'_> {
    /// The program of its workers, where it is known to be nowhere. Looks at files: blocking.
    fn missing_program(&self, home: Option<&Path>) -> Option<String> {
        let program = self.lane.program();
        // A task may bring it, or the home of a worker's user have it.
        let is_known = !program.contains('{') && self.policy.filesystem.toolchains.required().is_none();
        let dirs = || self.lane.search_path(self.policy, home);
        (is_known && program::find(&program, &dirs()).is_none()).then_some(program)
    }

    /// Why nothing runs for want of the program, where it is known to be nowhere. `home` is that in which it is looked for as well. Looks at files:
    /// blocking.
    pub(crate) fn without_program(&self, home: Option<&Path>) -> Option<String> {
        let lane = &self.lane_name;
        let missing = self.missing_program(home)?;
        Some(format!(
            "the program `{missing}` of the lane {lane} was not found: install it, or name its directory as `install` of \
             the lane; supervisor lane check {lane} shows where it was looked for"
        ))
    }
}

/// The name that is most like one that nobody has, where one is like it.
pub(crate) fn nearest(wanted: &str, names: Vec<String>) -> Option<String> {
    let near = names.into_iter().map(|name| (strsim::damerau_levenshtein(wanted, &name), name));
    near.min().filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

/// The beginning of a hint that names what may have been meant by a name that nobody has; empty where nothing is like it.
pub(crate) fn did_you_mean(wanted: &Profile, names: &[&str]) -> String {
    let near = nearest(wanted.as_str(), names.iter().map(|name| (*name).to_owned()).collect());
    near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
}

impl Roster {
    /// The built-in lanes and policies and those of the configuration.
    pub(crate) fn load(root: &Root) -> Self {
        // Before the rest: of a file that is written meanwhile it is said that it has changed.
        let read = FilesRead::now(root);
        Roster {
            profiles: ProfileRegistry::load(root),
            lanes: Lanes::load(root),
            policies: PolicyRegistry::load(root),
            skills: SkillRegistry::load(root),
            read,
        }
    }

    /// What the files say now, on the same host: what a daemon that has this roster would have after a reload, but for what it keeps of
    /// files that have become defective. Blocking.
    pub(crate) fn on_disk(&self, root: &Root) -> Self {
        let now = Roster::load(root);
        match self.policies.host() {
            Some(host) => now.on(host),
            None => now,
        }
    }

    /// The files of a lane and of policies that say something else in `now`.
    pub(crate) fn changed_files(&self, now: &Roster, root: &Root, lane: &Profile) -> Vec<PathBuf> {
        self.read.changed_for(&now.read, root, lane.as_str())
    }

    /// The same, read again: what is defective now and was good in `before` stays as it was.
    pub(crate) fn reload(root: &Root, before: &Roster) -> Self {
        let mut now = Roster::load(root);
        now.profiles.keep(&before.profiles);
        now.lanes.keep(&before.lanes);
        now.policies.keep(&before.policies);
        now.skills.keep(&before.skills);
        now
    }

    /// The same, on a host: policies that it cannot enforce start nothing.
    pub(crate) fn on(self, host: &policies::Support) -> Self {
        Roster { policies: self.policies.on(host), ..self }
    }

    /// What an assignee stands for, in a task that names a policy or none.
    ///
    /// # Errors
    /// Says why nothing can be started for it at present. The one rule for the daemon, for what it shows, and for
    /// commands without one.
    pub(crate) fn resolve(
        &self,
        assignee: &Profile,
        policy: Option<&str>,
        config: &Config,
    ) -> Result<Resolved<'_>, CannotRun> {
        let persona = match self.profile(assignee.as_str()) {
            Found::Usable(persona) => Some(persona),
            Found::Disabled(defect) => {
                let (profile, defect) = (assignee.clone(), Box::new(defect.clone()));
                return Err(CannotRun::ProfileDisabled { profile, defect });
            }
            Found::Absent => None,
        };
        let lane_name = self.lane_name(assignee, config);
        let lane = match (self.lanes.find(&lane_name), persona) {
            (Found::Usable(lane), _) => lane,
            (Found::Disabled(defect), _) => {
                return Err(CannotRun::LaneDisabled { lane: lane_name, defect: Box::new(defect.clone()) });
            }
            (Found::Absent, Some(persona)) => {
                let why = format!("there is no lane `{lane_name}`");
                return Err(CannotRun::unfit(assignee, persona, why));
            }
            (Found::Absent, None) => {
                return Err(CannotRun::Unknown { assignee: assignee.clone(), known: self.names() });
            }
        };
        if lane.pull {
            return Err(CannotRun::Pull { lane: assignee.clone() });
        }
        if let Some(why) = lane.lacks() {
            return Err(CannotRun::LaneIncomplete { lane: lane_name, why });
        }
        if let Some(persona) = persona
            && let Some(why) = unfit(persona, lane)
        {
            return Err(CannotRun::unfit(assignee, persona, format!("its lane `{lane_name}` {why}")));
        }
        let mut skills = Vec::new();
        for name in persona.iter().flat_map(|persona| &persona.settings.skills) {
            let missing = |why| CannotRun::SkillMissing { profile: assignee.clone(), why };
            skills.push(self.skills.find(name).map_err(missing)?);
        }
        let policy_name = self.policy_name(assignee, policy, config);
        let policy = self.policies.enforceable(&policy_name)?;
        Ok(Resolved {
            profile: assignee.clone(),
            lane,
            lane_name,
            home: persona.map(|persona| persona.settings.home).unwrap_or_default(),
            model: persona.and_then(|persona| persona.settings.model.as_deref()).or(lane.model.as_deref()),
            role: persona.map(|persona| persona.settings.role).unwrap_or_default(),
            role_prompt: persona.and_then(|persona| persona.prompt.as_deref()),
            servers: persona.map(|persona| Cow::Borrowed(&persona.settings.mcp_servers)).unwrap_or_default(),
            hosts: persona.map(|persona| Cow::Borrowed(&persona.settings.hosts)).unwrap_or_default(),
            skills,
            policy_name,
            policy,
            account: persona
                .and_then(|persona| persona.settings.account.as_deref())
                .or(lane.account.as_deref()),
            limits: RunLimits::of(config).with(lane, persona),
        })
    }

    /// The profile of a name. A lane goes before a shipped profile: the names of lanes are the operator's.
    fn profile(&self, name: &str) -> Found<'_, Persona> {
        match self.profiles.find(name) {
            Found::Usable(persona) if persona.is_shipped && self.lanes.has(name) => Found::Absent,
            found => found,
        }
    }

    /// The profile of an assignee, where it can be used.
    fn persona(&self, assignee: &Profile) -> Option<&Persona> {
        match self.profile(assignee.as_str()) {
            Found::Usable(persona) => Some(persona),
            Found::Disabled(_) | Found::Absent => None,
        }
    }

    /// The name of the lane of an assignee, whether it can run or not: its profile's, else the configured one; its own name
    /// where it is no profile.
    pub(crate) fn lane_name(&self, assignee: &Profile, config: &Config) -> Profile {
        match self.persona(assignee) {
            Some(persona) => persona.settings.lane.as_ref().unwrap_or(&config.worker.lane).clone(),
            None => assignee.clone(),
        }
    }

    /// The name of the policy of a run, whether it can run or not: the task's, else its profile's, else its lane's, else the
    /// configured one.
    pub(crate) fn policy_name(&self, assignee: &Profile, asked: Option<&str>, config: &Config) -> String {
        let of_profile = || self.persona(assignee)?.settings.policy.as_deref();
        let of_lane = || match self.lanes.find(&self.lane_name(assignee, config)) {
            Found::Usable(lane) => lane.policy.clone(),
            Found::Disabled(_) | Found::Absent => None,
        };
        let asked = asked.or_else(of_profile).map(str::to_owned);
        asked.or_else(of_lane).unwrap_or_else(|| config.worker.policy.clone())
    }

    /// What the workers of an assignee are there for.
    pub(crate) fn role(&self, assignee: &Profile) -> WorkerRole {
        self.persona(assignee).map(|persona| persona.settings.role).unwrap_or_default()
    }

    /// What each run of an assignee takes of what is limited, whether it can run or not.
    pub(crate) fn share(&self, assignee: &Profile, config: &Config) -> Share {
        let name = self.lane_name(assignee, config);
        let persona = self.persona(assignee);
        let lane = match self.lanes.find(&name) {
            Found::Usable(lane) => Some(lane),
            Found::Disabled(_) | Found::Absent => None,
        };
        let of_profile = persona.iter().flat_map(|persona| &persona.settings.pools);
        let of_lane = lane.iter().flat_map(|lane| &lane.pools);
        Share {
            pools: of_profile.chain(of_lane).cloned().collect(),
            most_of_profile: persona.and_then(Persona::max_running),
            most_of_lane: lane.and_then(|lane| lane.max_running),
            lane: Some(name),
            of_task: BTreeSet::new(),
        }
    }

    pub(crate) fn skills(&self) -> &SkillRegistry {
        &self.skills
    }

    /// The profiles, by name, also those that cannot be used.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&str, Found<'_, Persona>)> {
        let profiles = self.profiles.names().map(|name| (name, self.profile(name)));
        profiles.filter(|(_, found)| !matches!(found, Found::Absent))
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The name that is most like one that nobody has, where one is like it.
    pub(crate) fn nearest(&self, wanted: &str) -> Option<String> {
        nearest(wanted, self.names())
    }

    /// The names of all assignees that are known here, also of those that cannot run.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.profiles.names().chain(self.lanes.names()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Whether this assignee is known here, whether it can run or not.
    pub(crate) fn knows(&self, assignee: &Profile) -> bool {
        let is_profile = !matches!(self.profile(assignee.as_str()), Found::Absent);
        is_profile || !matches!(self.lanes.find(assignee), Found::Absent)
    }

    /// The account of each assignee that has one.
    pub(crate) fn accounts(&self, config: &Config) -> kernel::Accounts {
        let of_lanes = self.lanes.accounts();
        let mut accounts = of_lanes.clone();
        for (name, found) in self.profiles() {
            let (Found::Usable(persona), Ok(profile)) = (found, name.parse::<Profile>()) else { continue };
            let of_lane = of_lanes.get(&self.lane_name(&profile, config)).cloned();
            match persona.settings.account.clone().or(of_lane) {
                Some(account) => drop(accounts.insert(profile, account)),
                None => drop(accounts.remove(&profile)),
            }
        }
        accounts
    }

    pub(crate) fn policies(&self) -> &PolicyRegistry {
        &self.policies
    }

    /// What is wrong with the files of the configuration.
    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        let skills = self.skills.defects();
        self.profiles.defects().chain(self.lanes.defects()).chain(self.policies.defects()).chain(skills)
    }
}

/// What a lane lacks that a profile says.
fn unfit(persona: &Persona, lane: &Lane) -> Option<&'static str> {
    if persona.settings.model.is_some() && !lane.takes_model() {
        return Some("uses no {model}, so the profile's `model` changes nothing");
    }
    if persona.settings.role == WorkerRole::Orchestrator && !lane.hosts_orchestrators() {
        return Some(
            "is not for orchestrators: it has no `orchestrator`, the arguments that disable its program's own tools",
        );
    }
    if !persona.settings.mcp_servers.is_empty() && !lane.takes_servers() {
        return Some(
            "passes no servers to its program (it has no `tools`), so the profile's `mcp_servers` have no effect",
        );
    }
    if persona.prompt.is_some() && !lane.takes_prompt() {
        return Some("runs the body of a task and has no prompt, so nobody reads the profile's text");
    }
    None
}
