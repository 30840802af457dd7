//! `tenants.d/NAME.toml`: a tenant with its directory, its users, its caps and its defaults. What a file says goes before what
//! `supervisor.toml` says of the same tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::{BoardName, Bound, Pool, Profile, Tenant, Waiting, WaitingCode};
use serde::Deserialize;

use super::budgets::BudgetConfig;
use super::definitions::{Defect, Definitions, Found, Subject, read_all};
use super::{Config, QuotaConfig};
use crate::exit::Code;
use crate::failure::Failure;
use crate::time::duration::WrittenDuration;

/// All tenants that have a file, by name. One whose file cannot be used is disabled: what it may do is not known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenants {
    defined: Definitions<TenantConfig>,
}

impl Tenants {
    /// Reads the files of a directory.
    pub(super) fn read(dir: &Path) -> Self {
        let mut defined = Definitions::default();
        let listed = read_all(dir, "toml", Subject::Tenant, |name, path, text| {
            let named = name.parse::<Tenant>().map_err(|e| {
                let message = format!("{e}; the file's name is the tenant's name");
                Defect::new(Subject::Tenant(name.to_owned()), path, message)
            });
            defined.define(name, named.and(text).and_then(|text| TenantConfig::parse(path, &text)));
        });
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        Tenants { defined }
    }

    /// Keeps what was good in `before` and is defective now.
    pub(super) fn keep(&mut self, before: &Tenants) {
        self.defined.keep(&before.defined);
    }

    /// What is configured for a tenant; nothing where its file cannot be used.
    pub(crate) fn get(&self, name: &Tenant) -> Option<&TenantConfig> {
        match self.defined.find(name.as_str()) {
            Found::Usable(tenant) => Some(tenant),
            Found::Disabled(_) | Found::Absent => None,
        }
    }

    /// What is configured for the tenant of a new task.
    ///
    /// # Errors
    /// Says why the tenant is disabled.
    pub(crate) fn require(&self, name: Option<&Tenant>) -> Result<Option<&TenantConfig>, Failure> {
        let Some(name) = name else { return Ok(None) };
        match self.defined.defect(name.as_str()) {
            Some(defect) => {
                let message = format!("the tenant {name} is disabled: {defect}");
                Err(Failure::new(Code::TryAgain, message).hint(defect.hint()))
            }
            None => Ok(self.get(name)),
        }
    }

    /// What the tasks of a tenant wait for that is disabled.
    pub(crate) fn waiting(&self, name: Option<&Tenant>) -> Option<Waiting> {
        let name = name?;
        let defect = self.defined.defect(name.as_str())?;
        let text = format!("waits for the tenant {name}, which is disabled: {defect}");
        Some(Waiting::new(WaitingCode::Environment, text))
    }

    /// All tenants that can be used.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tenant, &TenantConfig)> {
        self.defined.usable().filter_map(|(name, tenant)| Some((name.parse().ok()?, tenant)))
    }

    /// The names of all that have a file, also of those that are disabled.
    pub(crate) fn names(&self) -> impl Iterator<Item = Tenant> {
        self.defined.names().filter_map(|name| name.parse().ok())
    }

    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }
}

/// What is configured for one tenant. Reloaded on SIGHUP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TenantConfig {
    /// The directory that its tasks may work in, beside scratch ones.
    pub(crate) root: Option<PathBuf>,
    /// The Unix user that its directories belong to, and whom its workers in them are: a name or a number.
    pub(crate) user: Option<UserName>,
    /// The Unix users who may see and direct its tasks.
    pub(crate) users: BTreeSet<UserName>,
    /// The Unix groups whose members may do so.
    pub(crate) groups: BTreeSet<UserName>,
    /// The boards that those users reach.
    pub(crate) boards: Option<BTreeSet<BoardName>>,
    /// How many of its workers may run at once.
    pub(crate) max_running: Option<usize>,
    /// How many places of pools its runs may have at once.
    pub(crate) pools: BTreeMap<Pool, usize>,
    /// How long its runs may take.
    pub(crate) max_runtime: Option<WrittenDuration>,
    /// The policy of its tasks that name none.
    pub(crate) policy: Option<String>,
    /// The assignee of its tasks that name none: a profile or a lane.
    pub(crate) assignee: Option<Profile>,
    /// What its runs may write and it may keep.
    pub(crate) quotas: QuotaConfig,
    /// How much it may use on one day.
    pub(crate) budget: BudgetConfig,
}

/// The name of a Unix user or group, or its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(untagged)]
pub(crate) enum UserName {
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
    /// Whether a user or a group is meant.
    pub(crate) fn means(&self, number: u32, name: Option<&str>) -> bool {
        match self {
            UserName::Number(own) => *own == number,
            UserName::Name(own) => name == Some(own),
        }
    }
}

impl TenantConfig {
    /// Reads the text of a file.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Defect> {
        let subject = || Subject::Tenant(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        let read: TenantConfig = toml::from_str(text).map_err(|e| Defect::toml(subject(), path, text, &e))?;
        match read.unusable() {
            Some(why) => Err(Defect::new(subject(), path, why)),
            None => Ok(read),
        }
    }

    /// Why values that are each of the right type cannot be used.
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

    /// Whether its users reach a board: the default one, unless it names others.
    pub(crate) fn reaches(&self, board: &BoardName) -> bool {
        self.boards.as_ref().map_or(*board == BoardName::default(), |boards| boards.contains(board))
    }

    /// The limits that it sets.
    pub(crate) fn bounds(&self) -> Vec<(Bound, u64)> {
        self.quotas.said().collect()
    }
}

/// Whether a path is absolute and has no `..`.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == std::path::Component::ParentDir)
}

impl Config {
    /// Takes in what is configured for single tenants.
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

    /// The tenant whose member a Unix user is, as far as files say so.
    ///
    /// # Errors
    /// Names two tenants that the user belongs to.
    pub(crate) fn tenant_of_user(
        &self,
        (uid, name): (u32, Option<&str>),
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

    /// Whether any tenant has users of its own.
    pub(crate) fn has_members(&self) -> bool {
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
            config
                .tenant_of_user((uid, Some(name)), groups)
                .map(|found| found.map(|tenant| tenant.to_string()))
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
