//! The roster: what an assignee stands for, in one place. Its profile, lane, policy, account and limits, or the one reason
//! why nothing can be started for it.
//!
//! A profile is the name of an assignee, and names its lane. Nothing else decides who can run: dispatch and its dry run,
//! `why`, diagnostics, the warnings of `create` and `assign`, and `status` all ask [`Roster::resolve`].

mod cannot_run;
mod policy_registry;

use std::time::Duration;

use kernel::Profile;
use policies::{Policy, SecretStores};

pub(crate) use self::cannot_run::CannotRun;
pub(crate) use self::policy_registry::PolicyRegistry;
use crate::config::Config;
use crate::config::definitions::{Defect, Found};
use crate::lanes::{Lane, Lanes};
use crate::paths::Root;

/// Who can work here, and under which policies.
#[derive(Clone, Debug)]
pub(crate) struct Roster {
    lanes: Lanes,
    policies: PolicyRegistry,
}

/// What an assignee resolves to.
#[derive(Debug)]
pub(crate) struct Resolved<'a> {
    /// The assignee.
    pub(crate) profile: Profile,
    /// How its workers start and end.
    pub(crate) lane: &'a Lane,
    /// The name of their policy.
    pub(crate) policy_name: String,
    /// What they may touch, without what their lane adds.
    pub(crate) policy: &'a Policy,
    /// Whose rate limits they share.
    pub(crate) account: Option<&'a str>,
    /// What holds where a task sets no limit of its own.
    pub(crate) limits: RunLimits,
}

impl Resolved<'_> {
    /// The policy of a run: with the hosts, the secrets and the brokers of its lane.
    pub(crate) fn policy_of_run(&self, stores: &SecretStores) -> Policy {
        self.policy.with(&self.lane.additions, stores)
    }
}

/// What limits a run whose task sets no limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunLimits {
    /// How long it may run.
    pub(crate) max_runtime: Duration,
    /// How many counted failures in a row block its task.
    pub(crate) failure_limit: u32,
}

impl RunLimits {
    /// The limits of the configuration.
    pub(crate) fn of(config: &Config) -> Self {
        RunLimits {
            max_runtime: config.worker.max_runtime.duration(),
            failure_limit: config.worker.failure_limit.get(),
        }
    }
}

impl Roster {
    /// The built-in lanes and policies and those of the configuration.
    pub(crate) fn load(root: &Root) -> Self {
        Roster { lanes: Lanes::load(root), policies: PolicyRegistry::load(root) }
    }

    /// The same, read again: what is defective now and was good in `before` stays as it was.
    pub(crate) fn reload(root: &Root, before: &Roster) -> Self {
        let mut now = Roster::load(root);
        now.lanes.keep(&before.lanes);
        now.policies.keep(&before.policies);
        now
    }

    /// The same, on a host: policies that it cannot hold start nothing.
    pub(crate) fn on(self, host: &policies::Support) -> Self {
        Roster { policies: self.policies.on(host), ..self }
    }

    /// What an assignee stands for, in a task that names a policy or none.
    ///
    /// # Errors
    /// Says why nothing can be started for it as things are. The one rule for the daemon, for what it shows, and for
    /// commands without one.
    pub(crate) fn resolve(
        &self,
        assignee: &Profile,
        policy: Option<&str>,
        config: &Config,
    ) -> Result<Resolved<'_>, CannotRun> {
        let lane = match self.lanes.find(assignee) {
            Found::Usable(lane) => lane,
            Found::Disabled(defect) => {
                let (lane, defect) = (assignee.clone(), Box::new(defect.clone()));
                return Err(CannotRun::LaneDisabled { lane, defect });
            }
            Found::Absent => {
                let known = self.names().map(str::to_owned).collect();
                return Err(CannotRun::Unknown { assignee: assignee.clone(), known });
            }
        };
        if lane.pull {
            return Err(CannotRun::Pull { lane: assignee.clone() });
        }
        let policy_name = self.policy_name(assignee, policy, config);
        let policy = self.policies.held(&policy_name)?;
        let max_runtime = lane.max_runtime.unwrap_or(config.worker.max_runtime.duration());
        Ok(Resolved {
            profile: assignee.clone(),
            lane,
            policy_name,
            policy,
            account: lane.account.as_deref(),
            limits: RunLimits { max_runtime, ..RunLimits::of(config) },
        })
    }

    /// The name of the policy of a run, whether it can run or not: the task's, else its lane's, else the configured one.
    pub(crate) fn policy_name(&self, assignee: &Profile, asked: Option<&str>, config: &Config) -> String {
        let of_lane = || match self.lanes.find(assignee) {
            Found::Usable(lane) => lane.policy.as_deref(),
            Found::Disabled(_) | Found::Absent => None,
        };
        asked.or_else(of_lane).unwrap_or(&config.worker.policy).to_owned()
    }

    /// The lanes.
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The names of all assignees that are known here, also of those that cannot run.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.lanes.names()
    }

    /// Whether this assignee is known here, whether it can run or not.
    pub(crate) fn knows(&self, assignee: &Profile) -> bool {
        !matches!(self.lanes.find(assignee), Found::Absent)
    }

    /// The account of each assignee that has one.
    pub(crate) fn accounts(&self) -> kernel::Accounts {
        self.lanes.accounts()
    }

    pub(crate) fn policies(&self) -> &PolicyRegistry {
        &self.policies
    }

    /// What is wrong with the files of the configuration.
    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.lanes.defects().chain(self.policies.defects())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::definitions::{Effect, Subject};
    use crate::failure::Failure;
    use crate::paths::RootChoice;

    const GOOD: &str = "argv = [\"agent\"]\n";

    struct Bench {
        dir: tempfile::TempDir,
        root: Root,
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let choice = RootChoice { root: Some(dir.path().into()), ..RootChoice::default() };
            let root = choice.resolve(|_| None).unwrap();
            for name in ["lanes.d", "policies.d"] {
                std::fs::create_dir(dir.path().join(name)).unwrap();
            }
            Bench { dir, root }
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.dir.path().join(name), text).unwrap();
        }
    }

    fn obstacle(roster: &Roster, assignee: &str, policy: Option<&str>) -> Option<String> {
        let resolved = roster.resolve(&assignee.parse().unwrap(), policy, &Config::default());
        resolved.err().map(|why| why.waiting().text)
    }

    #[test]
    fn a_bad_file_disables_what_it_defines_and_nothing_else() {
        let bench = Bench::new();
        bench.write("lanes.d/bad.toml", "argv = [\"x\"]\nargs = 1\n");
        bench.write("lanes.d/good.toml", GOOD);
        bench.write("policies.d/odd.toml", "version = 1\nfrobnicate = 1\n");
        let roster = Roster::load(&bench.root);
        assert_eq!(obstacle(&roster, "good", None), None);
        assert_eq!(obstacle(&roster, "shell", None), None);
        let why = obstacle(&roster, "bad", None).unwrap();
        assert!(why.contains("lanes.d/bad.toml:2 (args): unknown field"), "{why}");
        let why = obstacle(&roster, "good", Some("odd")).unwrap();
        assert!(why.contains("policies.d/odd.toml:2 (frobnicate): unknown field"), "{why}");
        assert_eq!(roster.defects().count(), 2);
        assert!(roster.knows(&"bad".parse().unwrap()));
    }

    #[test]
    fn a_reload_keeps_what_was_good_and_says_so() {
        let bench = Bench::new();
        bench.write("lanes.d/mine.toml", GOOD);
        bench.write("policies.d/default.toml", "version = 1\nextends = 'strict'\n");
        let before = Roster::load(&bench.root);
        bench.write("lanes.d/mine.toml", "argv = [\"{prompt}\"]\n");
        bench.write("lanes.d/new.toml", "argv = []\n");
        bench.write("policies.d/default.toml", "version = 1\nextends = 'nothing'\n");
        let after = Roster::reload(&bench.root, &before);
        assert_eq!(obstacle(&after, "mine", None), None);
        assert!(obstacle(&after, "new", None).is_some());
        let effects: Vec<_> = after.defects().map(|defect| (defect.subject.clone(), defect.effect)).collect();
        let lane = |name: &str| Subject::Lane(name.to_owned());
        assert_eq!(
            effects,
            [
                (lane("mine"), Effect::KeptLast),
                (lane("new"), Effect::Disabled),
                (Subject::Policy("default".to_owned()), Effect::KeptLast)
            ]
        );
        std::fs::remove_file(bench.dir.path().join("lanes.d/mine.toml")).unwrap();
        let gone = Roster::reload(&bench.root, &after);
        assert!(!gone.knows(&"mine".parse().unwrap()), "a file that is removed takes its lane away");
    }

    #[test]
    fn a_file_that_is_no_regular_one_or_has_no_end_is_a_defect_and_keeps_nobody_waiting() {
        let bench = Bench::new();
        for name in ["lanes.d/pipe.toml", "policies.d/pipe.toml"] {
            nix::unistd::mkfifo(&bench.dir.path().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", bench.dir.path().join("lanes.d/endless.toml")).unwrap();
        bench.write("lanes.d/long.toml", &"#".repeat(2 << 20));
        bench.write("lanes.d/good.toml", GOOD);

        let roster = Roster::load(&bench.root);

        assert_eq!(obstacle(&roster, "good", None), None);
        assert_eq!(roster.defects().count(), 4);
        for (lane, what) in
            [("pipe", "not a regular file"), ("endless", "not a regular file"), ("long", "1 MiB")]
        {
            let why = obstacle(&roster, lane, None).unwrap();
            assert!(why.contains(what), "{why}");
        }
    }

    #[test]
    fn a_bad_policy_of_a_built_in_name_does_not_fall_back_to_the_built_in_one() {
        let bench = Bench::new();
        bench.write("policies.d/default.toml", "version = 1\nname = 3\n");
        assert!(obstacle(&Roster::load(&bench.root), "shell", None).is_some());
    }

    #[test]
    fn a_policy_that_this_host_cannot_hold_is_named_with_what_it_lacks() {
        let bench = Bench::new();
        let host = policies::Support::detect().with_abi(2);
        let roster = Roster::load(&bench.root).on(&host);
        let why = obstacle(&roster, "shell", None).unwrap();
        assert!(why.contains("the policy default") && why.contains("Landlock ABI"), "{why}");
        assert_eq!(obstacle(&roster, "shell", Some("unconfined")), None);
        assert!(roster.policies().unheld().contains_key("strict"), "{:?}", roster.policies().unheld());
    }

    #[test]
    fn an_assignee_resolves_to_its_lane_policy_account_and_limits() {
        let bench = Bench::new();
        bench.write("lanes.d/mine.toml", "argv = [\"agent\"]\naccount = \"main\"\npolicy = \"strict\"\n");
        let roster = Roster::load(&bench.root);
        let mine = "mine".parse().unwrap();
        let config = Config::default();
        let resolved = roster.resolve(&mine, None, &config).unwrap();
        assert_eq!((resolved.profile, resolved.policy_name.as_str()), (mine.clone(), "strict"));
        assert_eq!(resolved.account, Some("main"));
        assert_eq!(resolved.limits, RunLimits::of(&config));
        bench.write("lanes.d/slow.toml", "argv = [\"agent\"]\nmax_runtime = \"9h\"\n");
        let roster = Roster::load(&bench.root);
        let limits = roster.resolve(&"slow".parse().unwrap(), None, &config).unwrap().limits;
        assert_eq!(limits, RunLimits { max_runtime: Duration::from_hours(9), ..RunLimits::of(&config) });
        let asked = roster.resolve(&mine, Some("network"), &config).unwrap();
        assert_eq!(asked.policy_name, "network", "what a task asks for goes before what its lane says");
    }

    #[test]
    fn each_reason_says_what_is_wrong_to_all_who_ask() {
        let bench = Bench::new();
        bench.write("lanes.d/bad.toml", "argv = []\n");
        let roster = Roster::load(&bench.root);
        let why = |assignee: &str, policy: Option<&str>| {
            let resolved = roster.resolve(&assignee.parse().unwrap(), policy, &Config::default());
            let why = resolved.expect_err("it cannot run");
            let failure = Failure::from(why.clone());
            (why.waiting().code, why.warning(), failure.message, failure.hint.unwrap())
        };
        let (code, warning, message, hint) = why("ghost", None);
        assert_eq!(code, kernel::WaitingCode::Nonspawnable);
        assert!(
            warning.contains("so the task waits for a worker that claims it; the lanes are: bad, "),
            "{warning}"
        );
        assert_eq!((message.as_str(), hint.contains("shell")), ("no lane `ghost` exists here", true));
        let (code, warning, message, hint) = why("bad", None);
        assert_eq!(code, kernel::WaitingCode::Environment);
        assert!(warning.starts_with("nothing runs it for now: it waits for the lane bad"), "{warning}");
        assert!(
            message.contains("bad.toml:1 (argv): it is empty") && hint.contains("docs/lanes.md"),
            "{message}"
        );
        let (_, warning, message, hint) = why("shell", Some("odd"));
        assert!(warning.contains("it waits for its policy: there is no policy `odd`"), "{warning}");
        assert!(message == "there is no policy `odd`" && hint.contains("strict"), "{hint}");
    }
}
