//! Lanes: how a class of worker is started and how its ending is read. Profiles are assignees that name a lane.
//!
//! The `shell` lane is built in. `lanes.d/*.toml` of the configuration adds others, one file a lane, named by the file;
//! `policies.d/*.toml` adds policies in the same way. A file that cannot be used disables what it defines and nothing
//! else; a daemon that had read it before goes on with what it had read.

mod defect;
mod lane;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kernel::Profile;
use policies::{Boundary, Policy, Source};

pub(crate) use self::defect::{Defect, Effect, Subject};
pub(crate) use self::lane::{CleanExit, Lane, Prompt, RateLimit};
use crate::config::Config;
use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;

const SHELL: &str = include_str!("builtin/shell.toml");

/// What can be spawned on this host, and under which policies.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    defined: Definitions<Lane>,
    policies: Definitions<Policy>,
    /// Directories that cannot be listed.
    unlisted: Vec<Defect>,
    /// Policies that this host cannot hold, and why; empty where nobody has examined the host.
    unheld: BTreeMap<String, String>,
}

type Definitions<T> = BTreeMap<String, Definition<T>>;

/// What a name stands for.
#[derive(Clone, Debug)]
struct Definition<T> {
    /// What can be used.
    value: Option<T>,
    /// What is wrong with the file as it is.
    defect: Option<Defect>,
}

impl<T> Definition<T> {
    fn good(value: T) -> Self {
        Definition { value: Some(value), defect: None }
    }
}

impl Lanes {
    /// The built-in lanes and policies and those of the configuration.
    pub(crate) fn load(root: &Root) -> Self {
        let mut lanes = Definitions::new();
        let parsed = |parsed: Result<_, Defect>| match parsed {
            Ok(value) => Definition::good(value),
            Err(defect) => Definition { value: None, defect: Some(defect) },
        };
        let shell = Lane::parse("shell", SHELL, Path::new("the built-in lane shell"));
        lanes.insert("shell".to_owned(), parsed(shell));
        let mut policies = Definitions::new();
        for name in Policy::builtin_names() {
            policies
                .extend(Policy::builtin(name).map(|policy| ((*name).to_owned(), Definition::good(policy))));
        }
        let mut unlisted = Vec::new();
        let mut sources = BTreeMap::new();
        let mut unread = Definitions::new();
        read_all(&root.policies_dir(), Subject::Policy, &mut unlisted, |name, path, text| match text {
            Ok(text) => drop(sources.insert(name.to_owned(), Source { origin: path.to_owned(), text })),
            Err(defect) => {
                unread.insert(name.to_owned(), Definition { value: None, defect: Some(defect) });
            }
        });
        let boundary = Boundary::around(&root.closed());
        for (name, source) in &sources {
            let defect = |message| Defect::new(Subject::Policy(name.clone()), &source.origin, message);
            let read = match &boundary {
                Ok(boundary) => Policy::from_source(source, &sources)
                    .and_then(|policy| policy.check_closed(source, boundary).map(|()| policy))
                    .map_err(|e| {
                        Defect { path: e.origin().into(), ..defect(e.what()) }
                            .at(e.line(), e.key().map(str::to_owned))
                    }),
                // What would be closed to its workers is not known.
                Err(e) => Err(defect(format!("the table of mounts cannot be read: {e}"))),
            };
            let definition = match read {
                Ok(policy) => Definition::good(policy),
                Err(defect) => Definition { value: None, defect: Some(defect) },
            };
            policies.insert(name.clone(), definition);
        }
        policies.append(&mut unread);
        read_all(&root.lanes_dir(), Subject::Lane, &mut unlisted, |name, path, text| {
            let read = name
                .parse::<Profile>()
                .map_err(|e| {
                    let message =
                        format!("{e}; the file's name is the lane's name, which tasks are assigned to");
                    Defect::new(Subject::Lane(name.to_owned()), path, message)
                })
                .and(text)
                .and_then(|text| Lane::parse(name, &text, path));
            lanes.insert(name.to_owned(), parsed(read));
        });
        Lanes { defined: lanes, policies, unlisted, unheld: BTreeMap::new() }
    }

    /// The same, read again: what is defective now and was good in `before` stays as it was.
    pub(crate) fn reload(root: &Root, before: &Lanes) -> Self {
        let mut now = Lanes::load(root);
        keep(
            &mut now.defined,
            &before.defined,
            now.unlisted.iter().any(|defect| *defect.path == *root.lanes_dir()),
        );
        let policies_unlisted = now.unlisted.iter().any(|defect| *defect.path == *root.policies_dir());
        keep(&mut now.policies, &before.policies, policies_unlisted);
        now.unlisted.iter_mut().for_each(|defect| defect.effect = Effect::KeptLast);
        now
    }

    /// The same, on a host: policies that it cannot hold start nothing.
    pub(crate) fn on(self, host: &policies::Support) -> Self {
        let unheld = self.policies.iter().filter_map(|(name, definition)| {
            let why = definition.value.as_ref()?.check_host(host).err()?;
            Some((name.clone(), with_causes(&why)))
        });
        let unheld = unheld.collect();
        Lanes { unheld, ..self }
    }

    /// The lane that an assignee names, where it can be used.
    pub(crate) fn get(&self, assignee: &Profile) -> Option<&Lane> {
        self.defined.get(assignee.as_str())?.value.as_ref()
    }

    /// Whether there is a lane of this name, whether it can be used or not.
    pub(crate) fn knows(&self, assignee: &Profile) -> bool {
        self.defined.contains_key(assignee.as_str())
    }

    /// The names of all lanes, also of those that cannot be used.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.defined.keys().map(String::as_str).collect()
    }

    /// The account of each lane that names one.
    pub(crate) fn accounts(&self) -> kernel::Accounts {
        let named = self.defined.iter().filter_map(|(name, definition)| {
            Some((name.parse().ok()?, definition.value.as_ref()?.account.clone()?))
        });
        named.collect()
    }

    /// The name of the policy of a run: the task's, else its lane's, else the configured one.
    pub(crate) fn policy_of(&self, assignee: &Profile, asked: Option<&str>, config: &Config) -> String {
        let of_lane = || self.get(assignee).and_then(|lane| lane.policy.as_deref());
        asked.or_else(of_lane).unwrap_or(&config.worker.policy).to_owned()
    }

    /// The policy of a name.
    pub(crate) fn policy(&self, name: &str) -> Result<&Policy, Failure> {
        let Some(definition) = self.policies.get(name) else {
            let known: Vec<&str> = self.policies.keys().map(String::as_str).collect();
            return Err(Failure::new(Code::Usage, format!("there is no policy `{name}`"))
                .hint(format!("the policies are: {}", known.join(", "))));
        };
        match (&definition.value, &definition.defect) {
            (Some(policy), _) => Ok(policy),
            (None, defect) => {
                let why = defect.as_ref().map(ToString::to_string).unwrap_or_default();
                let hint = defect.as_ref().map(Defect::hint).unwrap_or_default();
                Err(Failure::new(Code::Usage, format!("the policy `{name}` is disabled: {why}")).hint(hint))
            }
        }
    }

    /// Why nothing can be started for a task as things are: its lane or its policy cannot be used, or not on this host.
    ///
    /// The one rule for the daemon, for what it says, and for commands without one.
    pub(crate) fn obstacle(
        &self,
        assignee: &Profile,
        policy: Option<&str>,
        config: &Config,
    ) -> Option<kernel::Waiting> {
        let waits = |text: String| Some(kernel::Waiting::new(kernel::WaitingCode::Environment, text));
        let lane = self.defined.get(assignee.as_str())?;
        if let (None, Some(defect)) = (&lane.value, &lane.defect) {
            return waits(format!("waits for the lane {assignee}, which is disabled: {defect}"));
        }
        let name = self.policy_of(assignee, policy, config);
        if let Err(failure) = self.policy(&name) {
            return waits(format!("waits for its policy: {}", failure.message));
        }
        let why = self.unheld.get(&name)?;
        waits(format!("waits for a host that can hold the policy {name}: {why}"))
    }

    /// What is wrong with the files of the configuration.
    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        let lanes = self.defined.values().filter_map(|definition| definition.defect.as_ref());
        let policies = self.policies.values().filter_map(|definition| definition.defect.as_ref());
        self.unlisted.iter().chain(lanes).chain(policies)
    }

    /// The policies that this host cannot hold, each with the reason.
    pub(crate) fn unheld(&self) -> &BTreeMap<String, String> {
        &self.unheld
    }
}

/// Keeps what was good before and is defective now; all of it where the directory cannot be listed.
fn keep<T: Clone>(now: &mut Definitions<T>, before: &Definitions<T>, is_unlisted: bool) {
    for (name, old) in before {
        let Some(value) = &old.value else { continue };
        match now.get_mut(name) {
            Some(Definition { value: place @ None, defect: Some(defect) }) => {
                *place = Some(value.clone());
                defect.effect = Effect::KeptLast;
            }
            None if is_unlisted => {
                now.insert(name.clone(), Definition::good(value.clone()));
            }
            Some(_) | None => {}
        }
    }
}

/// Hands over each `*.toml` file of a directory: its name, its path and its text.
fn read_all(
    dir: &Path,
    subject: fn(String) -> Subject,
    unlisted: &mut Vec<Defect>,
    mut take: impl FnMut(&str, &Path, Result<String, Defect>),
) {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = std::fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    };
    let paths = match list() {
        Ok(paths) => paths,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
        Err(e) => {
            unlisted.push(Defect::new(Subject::Directory, dir, format!("it cannot be listed: {e}")));
            return;
        }
    };
    for path in paths {
        let (Some(stem), Some("toml")) =
            (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|s| s.to_str()))
        else {
            continue;
        };
        let text =
            crate::settings::read(&path).map_err(|e| Defect::unreadable(subject(stem.to_owned()), &path, &e));
        take(stem, &path, text);
    }
}

/// An error with its causes on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn obstacle(lanes: &Lanes, lane: &str, policy: Option<&str>) -> Option<String> {
        lanes.obstacle(&lane.parse().unwrap(), policy, &Config::default()).map(|why| why.text)
    }

    #[test]
    fn a_bad_file_disables_what_it_defines_and_nothing_else() {
        let bench = Bench::new();
        bench.write("lanes.d/bad.toml", "argv = [\"x\"]\nargs = 1\n");
        bench.write("lanes.d/good.toml", GOOD);
        bench.write("policies.d/odd.toml", "version = 1\nfrobnicate = 1\n");
        let lanes = Lanes::load(&bench.root);
        assert_eq!(obstacle(&lanes, "good", None), None);
        assert_eq!(obstacle(&lanes, "shell", None), None);
        let why = obstacle(&lanes, "bad", None).unwrap();
        assert!(why.contains("lanes.d/bad.toml:2 (args): unknown field"), "{why}");
        let why = obstacle(&lanes, "good", Some("odd")).unwrap();
        assert!(why.contains("policies.d/odd.toml:2 (frobnicate): unknown field"), "{why}");
        assert_eq!(lanes.defects().count(), 2);
        assert!(lanes.knows(&"bad".parse().unwrap()) && lanes.get(&"bad".parse().unwrap()).is_none());
    }

    #[test]
    fn a_reload_keeps_what_was_good_and_says_so() {
        let bench = Bench::new();
        bench.write("lanes.d/mine.toml", GOOD);
        bench.write("policies.d/default.toml", "version = 1\nextends = 'strict'\n");
        let before = Lanes::load(&bench.root);
        bench.write("lanes.d/mine.toml", "argv = [\"{prompt}\"]\n");
        bench.write("lanes.d/new.toml", "argv = []\n");
        bench.write("policies.d/default.toml", "version = 1\nextends = 'nothing'\n");
        let after = Lanes::reload(&bench.root, &before);
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
        let gone = Lanes::reload(&bench.root, &after);
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

        let lanes = Lanes::load(&bench.root);

        assert_eq!(obstacle(&lanes, "good", None), None);
        assert_eq!(lanes.defects().count(), 4);
        for (lane, what) in [("pipe", "no regular file"), ("endless", "no regular file"), ("long", "1 MiB")] {
            let why = obstacle(&lanes, lane, None).unwrap();
            assert!(why.contains(what), "{why}");
        }
    }

    #[test]
    fn a_bad_policy_of_a_built_in_name_does_not_fall_back_to_the_built_in_one() {
        let bench = Bench::new();
        bench.write("policies.d/default.toml", "version = 1\nname = 3\n");
        assert!(obstacle(&Lanes::load(&bench.root), "shell", None).is_some());
    }

    #[test]
    fn a_policy_that_this_host_cannot_hold_is_named_with_what_it_lacks() {
        let bench = Bench::new();
        let host = policies::Support::detect().with_abi(2);
        let lanes = Lanes::load(&bench.root).on(&host);
        let why = obstacle(&lanes, "shell", None).unwrap();
        assert!(why.contains("the policy default") && why.contains("Landlock ABI"), "{why}");
        assert_eq!(obstacle(&lanes, "shell", Some("unconfined")), None);
        assert!(lanes.unheld().contains_key("strict"), "{:?}", lanes.unheld());
    }
}
