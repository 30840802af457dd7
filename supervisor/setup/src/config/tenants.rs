//! `tenants.d/NAME.toml`: a tenant with its directory, its users, its caps and its defaults. The file takes
//! precedence over entries for the same tenant in `supervisor.toml`.
//!
//! See decision 0150.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::{BoardName, Bound, Pool, Profile, Tenant, Waiting, WaitingCode};
use serde::Deserialize;

use super::budgets::BudgetConfig;
use super::definitions::{Defect, Definitions, FileDefinition, Subject};
use super::{Config, QuotaConfig};
use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;
use base::time::duration::WrittenDuration;

/// All tenants that have a file, by name. An unusable file disables its tenant, because the tenant's rights are
/// unknown.
pub type Tenants = Definitions<TenantConfig>;

impl FileDefinition for TenantConfig {
    const SUBJECT: fn(String) -> Subject = Subject::Tenant;

    fn directory(root: &Root) -> PathBuf {
        root.tenants_dir()
    }

    fn check(name: &str, _path: &Path) -> Result<(), String> {
        name.parse::<Tenant>().map(drop).map_err(|e| format!("{e}; the file's name is the tenant's name"))
    }

    fn from_text(_name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        TenantConfig::parse(path, text)
    }
}

impl Definitions<TenantConfig> {
    /// Returns the configuration of a new task's tenant.
    ///
    /// # Errors
    /// The tenant is disabled.
    pub fn require(&self, name: Option<&Tenant>) -> Result<Option<&TenantConfig>, Failure> {
        let Some(name) = name else { return Ok(None) };
        match self.defect(name.as_str()) {
            Some(defect) => {
                let message = format!("the tenant {name} is disabled: {defect}");
                Err(Failure::new(Code::TryAgain, message).hint(defect.hint()))
            }
            None => Ok(self.get(name)),
        }
    }

    /// Returns the reason why the tasks of a tenant wait, if the tenant is disabled.
    pub fn waiting(&self, name: Option<&Tenant>) -> Option<Waiting> {
        let name = name?;
        let defect = self.defect(name.as_str())?;
        let text = format!("waits for the tenant {name}, which is disabled: {defect}");
        Some(Waiting::new(WaitingCode::Environment, text))
    }

    /// Returns all usable tenants.
    pub fn iter(&self) -> impl Iterator<Item = (Tenant, &TenantConfig)> {
        self.usable().filter_map(|(name, tenant)| Some((name.parse().ok()?, tenant)))
    }

    /// Returns the names of all tenants that have a file, including disabled tenants.
    pub fn tenant_names(&self) -> impl Iterator<Item = Tenant> {
        self.names().filter_map(|name| name.parse().ok())
    }
}

/// Configuration of one tenant. Reloaded on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantConfig {
    /// Directory in which its tasks may work, in addition to scratch directories.
    pub root: Option<PathBuf>,
    /// Unix user, by name or number, that owns its directories and as which its workers run in them.
    pub user: Option<UserName>,
    /// Unix users who may see and control its tasks.
    pub users: BTreeSet<UserName>,
    /// Unix groups whose members may see and control its tasks.
    pub groups: BTreeSet<UserName>,
    /// Boards that those users may access.
    pub boards: Option<BTreeSet<BoardName>>,
    /// Limit on its concurrent workers.
    pub max_running: Option<usize>,
    /// Limit on the pool places that its runs hold at once.
    pub pools: BTreeMap<Pool, usize>,
    /// Limit on the runtime of its runs.
    pub max_runtime: Option<WrittenDuration>,
    /// Policy of its tasks that name none.
    pub policy: Option<String>,
    /// Assignee of its tasks that name none: a profile or a lane.
    pub assignee: Option<Profile>,
    /// Limits on the writes of its runs and on its storage.
    pub quotas: QuotaConfig,
    pub budget: BudgetConfig,
}

/// Unix user or group, by name or number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(untagged)]
pub enum UserName {
    Number(u32),
    Name(String),
}

impl std::str::FromStr for UserName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| UserName::Name(text.to_owned()), UserName::Number))
    }
}

impl std::fmt::Display for UserName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UserName::Number(number) => write!(f, "{number}"),
            UserName::Name(name) => f.write_str(name),
        }
    }
}

impl UserName {
    /// Returns true if this names the given user or group.
    pub fn means(&self, number: u32, name: Option<&str>) -> bool {
        match self {
            UserName::Number(own) => *own == number,
            UserName::Name(own) => name == Some(own),
        }
    }
}

impl TenantConfig {
    /// Parses the text of a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Defect> {
        let subject = || Subject::Tenant(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        let read: TenantConfig = toml::from_str(text).map_err(|e| Defect::toml(subject(), path, text, &e))?;
        match read.unusable() {
            Some(why) => Err(Defect::new(subject(), path, why)),
            None => Ok(read),
        }
    }

    /// Returns the reason why well-typed values are unusable.
    fn unusable(&self) -> Option<String> {
        if let Some(root) = self.root.as_ref().filter(|root| !is_plain(root)) {
            return Some(format!("root = \"{}\" is not an absolute path without `..`", root.display()));
        }
        if self.max_runtime.is_some_and(|most| most.duration().is_zero()) {
            return Some("max_runtime is 0, so every run would be ended at once; leave it out".to_owned());
        }
        if self.users.iter().any(|user| user.means(0, Some("root"))) {
            return Some("users contains root, who already controls every tenant; leave it out".to_owned());
        }
        None
    }

    /// Returns true if its users may access a board: the default board, unless `boards` names others.
    pub fn reaches(&self, board: &BoardName) -> bool {
        self.boards.as_ref().map_or(*board == BoardName::default(), |boards| boards.contains(board))
    }

    /// Returns the limits that it sets.
    pub fn bounds(&self) -> Vec<(Bound, u64)> {
        self.quotas.limits().collect()
    }
}

/// Returns true if a path is absolute and has no `..`.
pub fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == std::path::Component::ParentDir)
}

impl Config {
    /// Merges the tenants' own settings into the configuration.
    pub(super) fn with_tenants(mut self, tenants: Tenants) -> Self {
        for (name, tenant) in tenants.iter() {
            if let Some(most) = tenant.max_running {
                self.limits.tenants.insert(name.clone(), most);
            }
            if let Some(most) = tenant.max_runtime {
                self.runtime.set(name.clone(), most);
            }
            if !tenant.budget.is_empty() {
                self.budgets.set(name.clone(), tenant.budget);
            }
        }
        self.tenants = tenants;
        self
    }

    /// Returns the tenant that a Unix user is a member of, by the files.
    ///
    /// # Errors
    /// The user belongs to two tenants; both are returned.
    pub fn tenant_of_user(
        &self,
        uid: u32,
        name: Option<&str>,
        groups: &[(u32, Option<String>)],
    ) -> Result<Option<Tenant>, (Tenant, Tenant)> {
        let is_member = |tenant: &TenantConfig| {
            let in_group =
                |group: &UserName| groups.iter().any(|(number, name)| group.means(*number, name.as_deref()));
            tenant.users.iter().any(|user| user.means(uid, name)) || tenant.groups.iter().any(in_group)
        };
        let mut found = self.tenants.iter().filter(|(_, tenant)| is_member(tenant)).map(|(name, _)| name);
        match (found.next(), found.next()) {
            (Some(first), Some(second)) => Err((first, second)),
            (first, _) => Ok(first),
        }
    }

    /// Returns true if it names any tenant.
    pub fn names_tenants(&self) -> bool {
        self.tenants.tenant_names().next().is_some() || !self.limits.tenants.is_empty()
    }

    /// Returns true if any tenant has members.
    pub fn has_members(&self) -> bool {
        self.tenants.iter().any(|(_, tenant)| !tenant.users.is_empty() || !tenant.groups.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TenantConfig, Defect> {
        TenantConfig::parse(Path::new("tenants.d/acme.toml"), text)
    }

    fn tenants(files: &[(&str, &str)]) -> Tenants {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Tenants::read(dir.path())
    }

    #[test]
    fn what_a_file_says_goes_before_what_the_settings_say() {
        let config: Config = toml::from_str(
            "[limits]\ntenants = { acme = 9, other = 7 }\n[runtime]\ntenants = { acme = \"9h\" }\n[budgets.tenants.acme]\ntokens = 9\n",
        )
        .unwrap();
        let file = "max_running = 2\nmax_runtime = \"1h\"\n[budget]\ntokens = 5\n[quotas]\ncreates = 3\n";
        let config = config.with_tenants(tenants(&[("acme.toml", file)]));
        let (acme, other): (Tenant, Tenant) = ("acme".parse().unwrap(), "other".parse().unwrap());
        assert_eq!((config.limits.of_tenant(&acme), config.limits.of_tenant(&other)), (Some(2), Some(7)));
        assert_eq!(config.runtime.most(&acme).unwrap().as_secs(), 3600);
        let quotas = config.quotas();
        assert_eq!(quotas.budgets.tenants[&acme].tokens, Some(5));
        assert_eq!(quotas.limit_of(Some(&acme), Bound::Creates), 3);
        assert_eq!(quotas.limit_of(Some(&other), Bound::Creates), Bound::Creates.default_limit());
    }

    #[test]
    fn a_file_that_means_nothing_is_named() {
        for (text, wrong) in [
            ("root = \"srv\"", "absolute"),
            ("root = \"/srv/../etc\"", "absolute"),
            ("max_runtime = 0", "max_runtime is 0"),
            ("users = [\"root\"]", "root"),
            ("users = [0]", "root"),
            ("max_runing = 3", "unknown field"),
        ] {
            let defect = parse(text).unwrap_err().to_string();
            assert!(defect.contains(wrong) && defect.contains("acme.toml"), "{defect}");
        }
        let unnamed = tenants(&[("a b.toml", "")]);
        assert!(unnamed.defects().next().unwrap().to_string().contains("a b.toml"));
    }

    #[test]
    fn a_file_that_cannot_be_used_disables_its_tenant_alone_unless_it_was_good_before() {
        let [acme, globex]: [Tenant; 2] = ["acme", "globex"].map(|name| name.parse().unwrap());
        let good = [("acme.toml", "max_running = 2\n"), ("globex.toml", "")];
        let bad = [("acme.toml", "max_runing = 2\n"), ("globex.toml", "policy = \"strict\"\n")];
        let mut read = tenants(&bad);
        let refused = read.require(Some(&acme)).unwrap_err();
        assert!(refused.message.contains("acme.toml:1 (max_runing)"), "{refused}");
        assert_eq!(read.require(Some(&globex)).unwrap().unwrap().policy.as_deref(), Some("strict"));
        read.keep(&tenants(&good));
        assert_eq!(read.require(Some(&acme)).unwrap().unwrap().max_running, Some(2));
        assert!(read.defects().next().unwrap().consequence().contains("stays as it was"));
    }

    #[test]
    fn where_the_directory_cannot_be_listed_every_tenant_is_disabled() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = Tenants::read(file.path());
        assert!(read.require(Some(&"acme".parse().unwrap())).is_err() && read.require(None).is_ok());
    }

    #[test]
    fn a_user_is_a_member_by_name_by_number_or_by_group_and_of_one_tenant() {
        let files = [
            ("acme.toml", "users = [\"ann\", 1001]\n"),
            ("globex.toml", "groups = [\"globex\"]\nusers = [\"eve\"]\n"),
        ];
        let config = Config::default().with_tenants(tenants(&files));
        let of = |uid: u32, name: &str, groups: &[(u32, Option<String>)]| {
            config.tenant_of_user(uid, Some(name), groups).map(|found| found.map(|tenant| tenant.to_string()))
        };
        let group = [(7, Some("globex".to_owned()))];
        assert_eq!(of(5, "ann", &[]).unwrap().as_deref(), Some("acme"));
        assert_eq!(of(1001, "bob", &[]).unwrap().as_deref(), Some("acme"));
        assert_eq!(of(9, "zoe", &group).unwrap().as_deref(), Some("globex"));
        assert_eq!(of(9, "zoe", &[]).unwrap(), None);
        assert!(of(5, "ann", &group).is_err());
        assert!(config.has_members() && !Config::default().has_members());
    }

    #[test]
    fn members_reach_the_default_board_unless_others_are_named() {
        let board = |name: &str| name.parse::<BoardName>().unwrap();
        assert!(parse("").unwrap().reaches(&board("default")) && !parse("").unwrap().reaches(&board("web")));
        let named = parse("boards = [\"web\"]").unwrap();
        assert!(named.reaches(&board("web")) && !named.reaches(&board("default")));
    }
}
