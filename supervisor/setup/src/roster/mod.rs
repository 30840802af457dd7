//! The roster resolves an assignee to its profile, lane, model, policy, account and limits, or to the reason why no
//! worker can be started for it.
//!
//! An assignee names a profile, or a lane if no profile has that name. Every part that needs to know if an assignee
//! can run calls [`Roster::resolve`]: dispatch and its dry run, `why`, diagnostics, the warnings of `create` and
//! `assign`, and `status`.

mod adopted;
mod cannot_run;
mod draft;
pub mod files;
mod files_read;
mod front_matter;
#[cfg(test)]
mod fuzz_tests;
mod home;
mod loose_names;
mod policy_registry;
mod pool_claim;
mod profile;
mod profile_registry;
mod run_limits;
mod settings;
mod skills;
#[cfg(test)]
mod tests;
mod unread;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{Profile, WorkerRole};
use policies::{HostRule, Policy, SecretStores};

pub use self::adopted::{Adopted, adopt};
pub use self::cannot_run::CannotRun;
pub use self::draft::Draft;
use self::files_read::FilesRead;
pub use self::home::Home;
pub use self::loose_names::missing_pool;
pub(crate) use self::policy_registry::PolicyRegistry;
pub use self::pool_claim::PoolClaim;
pub use self::profile::{ProfileDefinition, ProfileText};
pub use self::profile_registry::shipped;
pub use self::run_limits::RunLimits;
pub use self::settings::{Limits, Settings};
pub use self::unread::{changed, unread, unread_lane, unread_profile};
use crate::config::Config;
use crate::config::definitions::{Defect, Definitions, Lookup};
use crate::lanes::{Lane, Lanes, Skill, ToolServers, program};
use base::paths::Root;

/// Profiles, lanes, policies and skills of one root.
#[derive(Clone, Debug)]
pub struct Roster {
    profiles: Definitions<ProfileDefinition>,
    lanes: Lanes,
    policies: PolicyRegistry,
    skills: Definitions<Skill>,
    read: FilesRead,
}

#[derive(Debug)]
pub struct Resolved<'a> {
    /// Assignee.
    pub profile: Profile,
    /// Rules for the start and the ending of its workers.
    pub lane: &'a Lane,
    pub lane_name: Profile,
    /// Part of a worker's home that later runs find again.
    pub home: Home,
    /// Model.
    pub model: Option<&'a str>,
    pub role: WorkerRole,
    /// Text that its workers read before their task.
    pub role_prompt: Option<&'a str>,
    /// Tool servers in addition to the board's.
    pub servers: Cow<'a, ToolServers>,
    /// Hosts that its workers may reach through the proxy of their policy, in addition to the lane's hosts.
    pub hosts: Cow<'a, BTreeSet<HostRule>>,
    pub skills: Vec<&'a Skill>,
    pub policy_name: String,
    /// Policy of its workers, without the additions of their lane.
    pub policy: &'a Policy,
    /// Account with shared rate limits.
    pub account: Option<&'a str>,
    pub limits: RunLimits,
}

impl Resolved<'_> {
    /// Returns the policy of a run, with the hosts, secrets and brokers of its lane and the hosts of its profile.
    pub fn policy_of_run(&self, stores: &SecretStores) -> Policy {
        let mut additions = self.lane.additions.clone();
        additions.hosts.extend(self.hosts.iter().cloned());
        self.policy.with(&additions, stores)
    }
}

impl Resolved<'_> {
    /// Returns the name of the lane's program if the program is certainly missing. Blocking: reads files.
    fn missing_program(&self, home: Option<&Path>) -> Option<String> {
        let program = self.lane.program();
        // The name may contain a placeholder, or the program may lie in the home of a worker's user.
        let is_known = !program.contains('{') && self.policy.filesystem.toolchains.required().is_none();
        let dirs = || self.lane.search_path(self.policy, home);
        (is_known && program::find(&program, &dirs()).is_none()).then_some(program)
    }

    /// Returns the reason why no worker can be started if the lane's program is certainly missing. The lane's
    /// directories beneath `home`, the home of the workers' user, are searched as well. Blocking: reads files.
    pub fn without_program(&self, home: Option<&Path>) -> Option<String> {
        let lane = &self.lane_name;
        let missing = self.missing_program(home)?;
        Some(format!(
            "the program `{missing}` of the lane {lane} was not found: install it, or name its directory as `install` of \
             the lane; supervisor lane check {lane} shows where it was looked for"
        ))
    }
}

/// Returns the existing name that is most similar to an unknown name, if any is similar enough.
pub fn nearest(wanted: &str, names: Vec<String>) -> Option<String> {
    let near = names.into_iter().map(|name| (strsim::damerau_levenshtein(wanted, &name), name));
    near.min().filter(|(distance, name)| *distance <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

/// Returns the beginning of a hint that suggests a similar name; empty if none is similar.
pub fn did_you_mean(wanted: &Profile, names: &[&str]) -> String {
    let near = nearest(wanted.as_str(), names.iter().map(|name| (*name).to_owned()).collect());
    near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
}

impl Roster {
    /// Loads the built-in definitions and the configuration.
    pub fn load(root: &Root) -> Self {
        // The texts are read before the definitions are loaded, so that a file written in between counts as changed.
        let read = FilesRead::now(root);
        Roster {
            profiles: Definitions::load(root),
            lanes: Lanes::load(root),
            policies: PolicyRegistry::load(root),
            skills: Definitions::load(root),
            read,
        }
    }

    /// Loads the files again for the same host. The result is the roster of a daemon after a reload, except for last
    /// good versions of defective files. Blocking.
    #[must_use]
    pub fn on_disk(&self, root: &Root) -> Self {
        let now = Roster::load(root);
        match self.policies.host() {
            Some(host) => now.on(host),
            None => now,
        }
    }

    /// Returns the files of a lane and of policies whose texts differ in `now`.
    pub fn changed_files(&self, now: &Roster, root: &Root, lane: &Profile) -> Vec<PathBuf> {
        self.read.changed_for(&now.read, root, lane.as_str())
    }

    /// Loads the files again. Definitions that are defective now and were good in `before` keep their last good
    /// version.
    pub fn reload(root: &Root, before: &Roster) -> Self {
        let mut now = Roster::load(root);
        now.profiles.keep(&before.profiles);
        now.lanes.keep(&before.lanes);
        now.policies.keep(&before.policies);
        now.skills.keep(&before.skills);
        now
    }

    /// Sets the host: assignees with policies that it cannot enforce cannot run.
    #[must_use]
    pub fn on(self, host: &policies::Support) -> Self {
        Roster { policies: self.policies.on(host), ..self }
    }

    /// Resolves an assignee. `policy` is the policy that the task names, if any.
    ///
    /// # Errors
    /// Fails with the reason why no worker can be started for the assignee at present. The daemon, its displays and
    /// commands without a daemon share this rule.
    pub fn resolve(
        &self,
        assignee: &Profile,
        policy: Option<&str>,
        config: &Config,
    ) -> Result<Resolved<'_>, CannotRun> {
        // The profile is checked first, then the lane, then the policy, so that the reported reason is the closest to
        // the name that the operator wrote.
        let definition = match self.profile(assignee.as_str()) {
            Lookup::Usable(definition) => Some(definition),
            Lookup::Disabled(defect) => {
                let (profile, defect) = (assignee.clone(), Box::new(defect.clone()));
                return Err(CannotRun::ProfileDisabled { profile, defect });
            }
            Lookup::Absent => None,
        };
        let lane_name = self.lane_name(assignee, config);
        let lane = match (self.lanes.find(&lane_name), definition) {
            (Lookup::Usable(lane), _) => lane,
            (Lookup::Disabled(defect), _) => {
                return Err(CannotRun::LaneDisabled { lane: lane_name, defect: Box::new(defect.clone()) });
            }
            (Lookup::Absent, Some(definition)) => {
                let why = format!("there is no lane `{lane_name}`");
                return Err(CannotRun::unfit(assignee, definition, why));
            }
            // Neither a profile nor a lane has the name.
            (Lookup::Absent, None) => {
                return Err(CannotRun::Unknown { assignee: assignee.clone(), known: self.names() });
            }
        };
        if lane.pull {
            return Err(CannotRun::Pull { lane: assignee.clone() });
        }
        if let Some(why) = lane.lacks() {
            return Err(CannotRun::LaneIncomplete { lane: lane_name, why });
        }
        if let Some(definition) = definition
            && let Some(why) = unfit(definition, lane)
        {
            return Err(CannotRun::unfit(assignee, definition, format!("its lane `{lane_name}` {why}")));
        }
        let mut skills = Vec::new();
        for name in definition.iter().flat_map(|definition| &definition.settings.skills) {
            let missing = |why| CannotRun::SkillMissing { profile: assignee.clone(), why };
            skills.push(self.skills.skill(name).map_err(missing)?);
        }
        let policy_name = self.policy_name(assignee, policy, config);
        let policy = self.policies.enforceable(&policy_name)?;
        Ok(Resolved {
            profile: assignee.clone(),
            lane,
            lane_name,
            home: definition.map(|definition| definition.settings.home).unwrap_or_default(),
            model: definition
                .and_then(|definition| definition.settings.model.as_deref())
                .or(lane.model.as_deref()),
            role: definition.map(|definition| definition.settings.role).unwrap_or_default(),
            role_prompt: definition.and_then(|definition| definition.prompt.as_deref()),
            servers: definition
                .map(|definition| Cow::Borrowed(&definition.settings.mcp_servers))
                .unwrap_or_default(),
            hosts: definition.map(|definition| Cow::Borrowed(&definition.settings.hosts)).unwrap_or_default(),
            skills,
            policy_name,
            policy,
            account: definition
                .and_then(|definition| definition.settings.account.as_deref())
                .or(lane.account.as_deref()),
            limits: RunLimits::from_config(config).with(lane, definition),
        })
    }

    /// Returns the profile of a name. A lane takes precedence over a shipped profile, because the operator chooses
    /// the names of lanes.
    fn profile(&self, name: &str) -> Lookup<'_, ProfileDefinition> {
        match self.profiles.find(name) {
            Lookup::Usable(definition) if definition.is_shipped && self.lanes.has(name) => Lookup::Absent,
            found => found,
        }
    }

    /// Returns the profile of an assignee if it is usable.
    fn definition(&self, assignee: &Profile) -> Option<&ProfileDefinition> {
        match self.profile(assignee.as_str()) {
            Lookup::Usable(definition) => Some(definition),
            Lookup::Disabled(_) | Lookup::Absent => None,
        }
    }

    /// Returns the name of an assignee's lane, even if the assignee cannot run: the profile's lane, else the
    /// configured default. An assignee without a usable profile is itself the name of a lane.
    pub fn lane_name(&self, assignee: &Profile, config: &Config) -> Profile {
        match self.definition(assignee) {
            Some(definition) => definition.settings.lane.as_ref().unwrap_or(&config.worker.lane).clone(),
            None => assignee.clone(),
        }
    }

    /// Returns the name of a run's policy, even if the assignee cannot run: the task's (`asked`), else the profile's,
    /// else the lane's, else the configured default.
    pub fn policy_name(&self, assignee: &Profile, asked: Option<&str>, config: &Config) -> String {
        let of_profile = || self.definition(assignee)?.settings.policy.as_deref();
        let of_lane = || self.lanes.get(&self.lane_name(assignee, config))?.policy.clone();
        let asked = asked.or_else(of_profile).map(str::to_owned);
        asked.or_else(of_lane).unwrap_or_else(|| config.worker.policy.clone())
    }

    /// Returns true if the file of an assignee's profile or lane has a defect and no good version of it is known. The
    /// policy of the assignee is then not known either.
    pub fn is_defective(&self, assignee: &Profile, config: &Config) -> bool {
        let lane = self.lane_name(assignee, config);
        matches!(self.profile(assignee.as_str()), Lookup::Disabled(_))
            || matches!(self.lanes.find(&lane), Lookup::Disabled(_))
    }

    /// Returns the role of an assignee's workers.
    pub fn role(&self, assignee: &Profile) -> WorkerRole {
        self.definition(assignee).map(|definition| definition.settings.role).unwrap_or_default()
    }

    /// Returns the pool claim of each run of an assignee, even if the assignee cannot run.
    pub fn pool_claim(&self, assignee: &Profile, config: &Config) -> PoolClaim {
        let name = self.lane_name(assignee, config);
        let definition = self.definition(assignee);
        let lane = self.lanes.get(&name);
        let of_profile = definition.iter().flat_map(|definition| &definition.settings.pools);
        let of_lane = lane.iter().flat_map(|lane| &lane.pools);
        PoolClaim {
            pools: of_profile.chain(of_lane).cloned().collect(),
            most_of_profile: definition.and_then(ProfileDefinition::max_running),
            most_of_lane: lane.and_then(|lane| lane.max_running),
            lane: Some(name),
            of_task: BTreeSet::new(),
        }
    }

    pub fn skills(&self) -> &Definitions<Skill> {
        &self.skills
    }

    /// Returns the profiles by name, including unusable ones.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, Lookup<'_, ProfileDefinition>)> {
        let profiles = self.profiles.names().map(|name| (name, self.profile(name)));
        profiles.filter(|(_, found)| !matches!(found, Lookup::Absent))
    }

    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Returns the existing name that is most similar to an unknown name, if any is similar enough.
    pub fn nearest(&self, wanted: &str) -> Option<String> {
        nearest(wanted, self.names())
    }

    /// Returns the names of all known assignees, including assignees that cannot run.
    pub fn names(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.profiles.names().chain(self.lanes.names()).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Returns true if a profile or a lane has the assignee's name, even if the assignee cannot run.
    pub fn knows(&self, assignee: &Profile) -> bool {
        let is_profile = !matches!(self.profile(assignee.as_str()), Lookup::Absent);
        is_profile || self.lanes.has(assignee)
    }

    /// Returns the account of each assignee that has one: the profile's, else its lane's.
    pub fn accounts(&self, config: &Config) -> kernel::Accounts {
        let of_lanes = self.lanes.accounts();
        let mut accounts = of_lanes.clone();
        for (name, found) in self.profiles() {
            let (Lookup::Usable(definition), Ok(profile)) = (found, name.parse::<Profile>()) else {
                continue;
            };
            let of_lane = of_lanes.get(&self.lane_name(&profile, config)).cloned();
            match definition.settings.account.clone().or(of_lane) {
                Some(account) => drop(accounts.insert(profile, account)),
                None => drop(accounts.remove(&profile)),
            }
        }
        accounts
    }

    pub fn policies(&self) -> &PolicyRegistry {
        &self.policies
    }

    /// Returns the defects in the files of the configuration.
    pub fn defects(&self) -> impl Iterator<Item = &Defect> {
        let skills = self.skills.defects();
        self.profiles.defects().chain(self.lanes.defects()).chain(self.policies.defects()).chain(skills)
    }
}

/// Returns the second half of a sentence that names the feature that the lane lacks for the profile, if any.
fn unfit(definition: &ProfileDefinition, lane: &Lane) -> Option<&'static str> {
    if definition.settings.model.is_some() && !lane.takes_model() {
        return Some("uses no {model}, so the profile's `model` changes nothing");
    }
    if definition.settings.role == WorkerRole::Orchestrator && !lane.hosts_orchestrators() {
        return Some(
            "is not for orchestrators: it has no `orchestrator`, the arguments that disable its program's own tools",
        );
    }
    if !definition.settings.mcp_servers.is_empty() && !lane.takes_servers() {
        return Some(
            "passes no servers to its program (it has no `tools`), so the profile's `mcp_servers` have no effect",
        );
    }
    if definition.prompt.is_some() && !lane.takes_prompt() {
        return Some("runs the body of a task and has no prompt, so nobody reads the profile's text");
    }
    None
}
