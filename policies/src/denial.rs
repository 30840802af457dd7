//! Denials of a policy in the words of its author: the denied act, and the line that would allow it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::arrange::Arrange;
use crate::explain::{AccessDecision, Want};
use crate::files::Device;
use crate::hosts::{HostRule, Target, permit};
use crate::paths::leads_to;
use crate::policy::Policy;
use crate::presets;
use crate::run_context::RunContext;
use crate::toolchains::Toolchain;

/// Limit on the hosts of a policy that a proposed line repeats beside the new host.
const REPEATED: usize = 8;

/// Act that a policy denies, with the line that would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The act, such as `executing /home/ann/.cargo/bin/cargo`.
    pub act: String,
    /// The line that allows it, such as `filesystem.toolchains = ["cargo"]`, as TOML for the top of a file; none if nothing does.
    pub line: Option<String>,
    /// File of that line, such as `in lanes.d/news.toml`; none if the line goes into the policy itself.
    pub place: Option<String>,
}

/// The lane of a run, whose file names hosts for its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneHosts {
    /// Name of the lane; its file has the same name.
    pub name: String,
    /// True if the operator has a file for the lane. A built-in lane has none.
    pub has_file: bool,
    /// The hosts that it names.
    pub hosts: BTreeSet<HostRule>,
}

impl LaneHosts {
    /// Returns true if the lane's hosts cover a target.
    pub fn names(&self, target: &Target) -> bool {
        permit(&self.hosts, target)
    }

    fn location(&self) -> String {
        let name = &self.name;
        if self.has_file {
            format!("in lanes.d/{name}.toml")
        } else {
            format!("in a file lanes.d/{name}.toml that extends {name}")
        }
    }
}

/// Returns the line of a list of hosts with one more host. Only the first of many are repeated, and a comment says that
/// there are others.
fn hosts_line(key: &str, known: &BTreeSet<HostRule>, more: &Target) -> String {
    let repeated = known.iter().take(REPEATED).map(ToString::to_string);
    let hosts: Vec<String> = repeated.chain([more.to_string()]).collect();
    let others = if known.len() > REPEATED { " # and the others" } else { "" };
    format!("{key} = {hosts:?}{others}")
}

/// Home directories in which people have toolchains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Homes {
    /// Home of the worker's user, or the home that the policy names.
    pub own: Option<PathBuf>,
    /// The homes of other users.
    pub others: Vec<PathBuf>,
}

impl Policy {
    /// Returns the denial of a path, by the answer of [`Policy::explain`]; none if the policy grants the path. A path beneath one
    /// of `homes` may belong to a toolchain, and the line then names the toolchain.
    pub fn denial(&self, path: &Path, want: Want, context: &RunContext, homes: &Homes) -> Option<Denial> {
        match self.explain(path, want, context) {
            AccessDecision::Granted(_) | AccessDecision::Unconfined => return None,
            AccessDecision::Denied => {}
        }
        let act = match want {
            Want::Read => "reading",
            Want::Write => "writing to",
            Want::Execute => "executing",
        };
        let line = self.line_for(path, want, context, homes);
        Some(Denial { act: format!("{act} {}", path.display()), line, place: None })
    }

    /// Returns the denial of a connection to a target. `named` is the host that the policy would have to name: the target itself,
    /// or the address that its name resolved to. The line for a built-in policy goes into the run's lane.
    pub fn host_denial(&self, target: &Target, named: &Target, lane: Option<&LaneHosts>) -> Denial {
        let broker = self.brokers_of(target).next().filter(|_| target == named);
        if let Some(broker) = broker {
            let act = format!("connecting to {target}, which is asked at {} or over TLS alone", broker.url());
            return Denial { act, line: None, place: None };
        }
        let resolved = if target == named { String::new() } else { format!(", which is {}", named.host) };
        let act = format!("connecting to {target}{resolved}");
        if named.is_own_proxy() {
            // A line that names this address would not help: in the run it is the proxy itself.
            return Denial { act, line: None, place: None };
        }
        let (added, place) = match lane.filter(|_| self.is_builtin()) {
            Some(lane) => (hosts_line("hosts", &lane.hosts, named), Some(lane.location())),
            None => (hosts_line("network.hosts", &self.network.hosts, named), None),
        };
        Denial { act, line: Some(added), place }
    }

    /// Returns true for a built-in policy, which has no file to add a line to.
    fn is_builtin(&self) -> bool {
        presets::NAMES.contains(&self.name())
    }

    fn line_for(&self, path: &Path, want: Want, context: &RunContext, homes: &Homes) -> Option<String> {
        let closed = context.closed.places.iter().chain(&context.closed.tasks);
        if closed.into_iter().any(|place| path.starts_with(place)) {
            return None;
        }
        // Files that the supervisor arranges for a run, such as the `.git` of its worktree, do not depend on the
        // policy's grants.
        let mut steps = context.arrangement.steps.iter();
        let made = steps.any(|step| matches!(step, Arrange::Fresh { at } if path.starts_with(at)));
        if made {
            return None;
        }
        let device = Device::ALL.into_iter().find(|device| device.path() == path);
        if let Some(device) = device {
            let mut all: Vec<&str> = self.filesystem.devices.iter().map(|device| device.name()).collect();
            all.push(device.name());
            return Some(format!("filesystem.devices = {all:?}"));
        }
        if path.starts_with("/proc") {
            return (want == Want::Read).then(|| "filesystem.proc = \"host\"".to_owned());
        }
        if path.starts_with("/dev/shm") {
            return Some("filesystem.shm = \"private\"".to_owned());
        }
        let known = |home: &PathBuf| Some((home.clone(), Toolchain::holding(path.strip_prefix(home).ok()?)?));
        let toolchain = homes.own.iter().chain(&homes.others).find_map(known);
        if let (Some((home, toolchain)), true) = (toolchain, want != Want::Write) {
            let is_own_home = homes.own.as_ref() == Some(&home);
            let toolchains = format!("toolchains = [\"{}\"]", toolchain.name());
            return Some(if is_own_home {
                format!("filesystem.{toolchains}")
            } else {
                format!("filesystem = {{ {toolchains}, toolchain_home = \"{}\" }}", home.display())
            });
        }
        let (key, place) = match want {
            Want::Read => ("ro", path.to_owned()),
            Want::Write => ("rw", if path.is_dir() { path.to_owned() } else { above(path) }),
            Want::Execute => ("rox", above(&leads_to(path))),
        };
        Some(format!("filesystem.add.{key} = [\"{}\"]", place.display()))
    }

    /// Describes a denial of this policy, with the line that would allow the act.
    pub fn describe(&self, denial: &Denial) -> String {
        let Denial { act, line, place } = denial;
        let name = self.name();
        let Some(line) = line else {
            return format!("the sandbox denied {act}: no policy allows it");
        };
        let place = match place {
            Some(place) => place.clone(),
            None if self.is_builtin() => format!("in a policy of your own that extends {name}"),
            None => format!("in the policy {name}"),
        };
        format!("the sandbox denied {act}: the policy {name} does not allow it; {line} {place} does")
    }
}

fn above(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrange::Arrangement;

    #[test]
    fn the_line_for_a_host_adds_it_to_those_that_are_there() {
        let text = "version = 1\n[network]\nmode = 'proxy'\nhosts = ['a.example:443']";
        let policy = Policy::from_toml(text, Path::new("narrow.toml")).unwrap();
        let target = |text| Target::parse(text, None).unwrap();
        let denial = policy.host_denial(&target("b.example:443"), &target("b.example:443"), None);
        assert_eq!(
            policy.describe(&denial),
            "the sandbox denied connecting to b.example:443: the policy narrow does not allow it; network.hosts = \
             [\"a.example:443\", \"b.example:443\"] in the policy narrow does"
        );
        let denial = policy.host_denial(&target("b.example:443"), &target("10.0.0.1:443"), None);
        assert_eq!(denial.act, "connecting to b.example:443, which is 10.0.0.1");
        assert_eq!(denial.line.unwrap(), r#"network.hosts = ["a.example:443", "10.0.0.1:443"]"#);
        let denial = policy.host_denial(&target("b.example:3128"), &target("127.0.0.1:3128"), None);
        assert_eq!(denial.line, None, "in a run that is its own proxy");
    }

    #[test]
    fn under_a_built_in_policy_the_file_of_the_lane_names_the_host() {
        let hosts = ["a.example:443".parse().unwrap()].into();
        let lane = LaneHosts { name: "news".to_owned(), has_file: true, hosts };
        let target = |text| Target::parse(text, None).unwrap();
        let (asked, agent) = (target("b.example:80"), Policy::builtin("agent").unwrap());
        let denial = agent.host_denial(&asked, &asked, Some(&lane));
        assert_eq!(
            agent.describe(&denial),
            "the sandbox denied connecting to b.example:80: the policy agent does not allow it; hosts = \
             [\"a.example:443\", \"b.example:80\"] in lanes.d/news.toml does"
        );
        let read: toml::Table = denial.line.unwrap().parse().unwrap();
        assert_eq!(read["hosts"].as_array().unwrap().len(), 2);
        let built_in = LaneHosts { name: "codex".to_owned(), has_file: false, ..lane.clone() };
        let described = agent.describe(&agent.host_denial(&asked, &asked, Some(&built_in)));
        assert!(described.ends_with("in a file lanes.d/codex.toml that extends codex does"), "{described}");
        let text = "version = 1\n[network]\nmode = 'proxy'";
        let own = Policy::from_toml(text, Path::new("narrow.toml")).unwrap();
        let described = own.describe(&own.host_denial(&asked, &asked, Some(&lane)));
        assert!(
            described.ends_with("network.hosts = [\"b.example:80\"] in the policy narrow does"),
            "{described}"
        );
        assert!(lane.names(&target("a.example:443")) && !lane.names(&asked));
    }

    #[test]
    fn a_host_that_a_broker_asks_is_reached_through_it() {
        let text = "version = 1\n[network]\nmode = 'proxy'\n[[broker]]\nhost = 'api.example'\nheader = 'x-api-key'\nsecret = 'key'";
        let policy = Policy::from_toml(text, Path::new("narrow.toml")).unwrap();
        let target = |text| Target::parse(text, None).unwrap();
        let asked = policy.host_denial(&target("api.example:443"), &target("api.example:443"), None);
        assert_eq!(
            asked.act,
            "connecting to api.example:443, which is asked at http://127.0.0.1:3128/api.example or over TLS alone"
        );
        assert_eq!(asked.line, None);
        let resolved = policy.host_denial(&target("api.example:443"), &target("10.0.0.1:443"), None);
        assert_eq!(resolved.line.unwrap(), r#"network.hosts = ["10.0.0.1:443"]"#);
    }

    #[test]
    fn of_many_hosts_the_first_are_repeated_and_the_others_mentioned() {
        for (count, others) in [
            (REPEATED - 1, ""),
            (REPEATED, ""),
            (REPEATED + 1, " # and the others"),
            (20, " # and the others"),
        ] {
            let hosts: Vec<String> = (0..count).map(|at| format!("h{at:02}.example:443")).collect();
            let text = format!("version = 1\n[network]\nmode = 'proxy'\nhosts = {hosts:?}");
            let policy = Policy::from_toml(&text, Path::new("narrow.toml")).unwrap();
            let new = Target::parse("b.example:443", None).unwrap();
            let repeated = [&hosts[..count.min(REPEATED)], &["b.example:443".to_owned()]].concat();
            let line = policy.host_denial(&new, &new, None).line.unwrap();
            assert_eq!(line, format!("network.hosts = {repeated:?}{others}"));
            let own = format!("{line}\nversion = 1\nextends = 'agent'");
            let own = Policy::from_toml(&own, Path::new("own.toml")).unwrap();
            assert!(own.network.permits(&new), "{line}");
        }
    }

    fn line(path: &str, want: Want, preset: &str) -> Option<String> {
        let context = RunContext {
            closed: crate::ClosedPaths { places: vec!["/srv/sv".into()], ..crate::ClosedPaths::default() },
            arrangement: Arrangement {
                steps: vec![Arrange::Fresh { at: "/srv/code/.git".into() }],
                ..Arrangement::default()
            },
            ..crate::run_context::bare(Path::new("/no/such/run"))
        };
        let policy = Policy::builtin(preset).unwrap();
        let homes = Homes { own: Some("/home/ann".into()), others: vec!["/home/bob".into()] };
        let denial = policy.denial(Path::new(path), want, &context, &homes)?;
        Some(denial.line.unwrap_or_default())
    }

    #[test]
    fn the_line_that_allows_an_act_is_named() {
        let table = [
            ("/home/ann/.cargo/bin/cargo", Want::Execute, "default", "filesystem.toolchains = [\"cargo\"]"),
            (
                "/home/bob/.pyenv/bin/pyenv",
                Want::Execute,
                "default",
                "filesystem = { toolchains = [\"pyenv\"], toolchain_home = \"/home/bob\" }",
            ),
            ("/home/ann/bin/x", Want::Execute, "default", "filesystem.add.rox = [\"/home/ann/bin\"]"),
            ("/srv/data/x", Want::Read, "default", "filesystem.add.ro = [\"/srv/data/x\"]"),
            ("/srv/data/x", Want::Write, "default", "filesystem.add.rw = [\"/srv/data\"]"),
            ("/proc/self/maps", Want::Read, "strict", "filesystem.proc = \"host\""),
            ("/dev/shm/x", Want::Write, "strict", "filesystem.shm = \"private\""),
            ("/srv/sv/operator.key", Want::Read, "default", ""),
            ("/srv/code/.git/config", Want::Write, "default", ""),
        ];
        for (path, want, preset, expected) in table {
            assert_eq!(line(path, want, preset).as_deref(), Some(expected), "{path}");
        }
        let devices = line("/dev/ptmx", Want::Read, "strict").unwrap();
        assert!(devices.starts_with("filesystem.devices = [") && devices.ends_with("\"ptmx\"]"), "{devices}");
        assert_eq!(line("/usr/bin/env", Want::Execute, "default"), None, "it is granted");
        assert_eq!(line("/srv/data/x", Want::Read, "unconfined"), None, "nothing is denied");
    }

    #[test]
    fn a_line_that_is_named_is_one_that_a_policy_takes() {
        for named in ["filesystem.add.ro = [\"/srv/data/x\"]", "filesystem.toolchains = [\"cargo\"]"] {
            let text = format!("{named}\nversion = 1\nextends = 'default'\n");
            let policy = Policy::from_toml(&text, Path::new("own.toml")).unwrap();
            let context = RunContext {
                toolchain_home: Some("/home/ann".into()),
                ..crate::run_context::bare(Path::new("/no/such/run"))
            };
            let path = if named.contains("cargo") { "/home/ann/.cargo/bin/cargo" } else { "/srv/data/x" };
            assert!(
                matches!(policy.explain(Path::new(path), Want::Read, &context), AccessDecision::Granted(_)),
                "{text}"
            );
            assert!(matches!(
                policy.explain(Path::new("/usr/x"), Want::Read, &context),
                AccessDecision::Granted(_)
            ));
        }
    }
}
