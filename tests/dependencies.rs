//! Licences, sources and versions of the crates that the project is built from, against the rules of `deny.toml`. The rules are
//! those of cargo-deny, which takes minutes to build; this test reads the part of its file that the project uses.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde::Deserialize;

use crate::house::house;

const RULES: &str = include_str!("../deny.toml");

#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

/// A crate that may stand beside another version of itself, as `NAME@VERSION`, where the version may be shortened.
#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    spec: String,
}

/// A crate as `cargo tree` lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    /// SPDX expression; empty if the crate names no licence.
    license: String,
    /// Path, repository or other registry that the crate comes from; none for the usual registry.
    source: Option<String>,
}

/// Returns every crate that a build for one of the targets of `deny.toml` uses, tests included.
fn packages(rules: &Rules) -> BTreeSet<Package> {
    let mut all = BTreeSet::new();
    for target in &rules.graph.targets {
        let listed = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--workspace", "--target", target, "--edges", "normal,build,dev"])
            .args(["--prefix", "none", "--format", "{p};{l}"])
            .current_dir(house())
            .output()
            .unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        all.extend(
            str::from_utf8(&listed.stdout)
                .unwrap()
                .lines()
                .filter(|line| !line.is_empty())
                .map(Package::read),
        );
    }
    assert!(all.len() > 100, "{} crates are not all", all.len());
    all
}

fn rules() -> Rules {
    toml::from_str(RULES).unwrap()
}

impl Package {
    /// Reads a line such as `serde_derive v1.0.228 (proc-macro);MIT OR Apache-2.0 (*)`.
    fn read(line: &str) -> Self {
        let (package, license) = line.split_once(';').unwrap();
        let mut words = package.splitn(3, ' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        let source =
            words.next().map(|rest| rest.replace("(proc-macro)", "")).filter(|rest| !rest.trim().is_empty());
        Package {
            name: name.to_owned(),
            version: version.trim_start_matches('v').to_owned(),
            license: license.trim_end_matches("(*)").trim().to_owned(),
            source,
        }
    }

    /// Returns true for a crate that is not of this repository.
    fn is_foreign(&self) -> bool {
        !self.source.as_ref().is_some_and(|source| source.contains(house().to_str().unwrap()))
    }

    /// Returns true if an entry of `skip` names this version.
    fn is_skipped(&self, rules: &Rules) -> bool {
        rules.bans.skip.iter().any(|skip| {
            let (name, version) = skip.spec.split_once('@').unwrap();
            name == self.name
                && self
                    .version
                    .strip_prefix(version)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

/// Returns true if a choice among the licences of an SPDX expression is allowed.
fn is_allowed(expression: &str, allow: &[String]) -> bool {
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX).unwrap();
    parsed.evaluate(|licence| allow.iter().any(|name| *name == licence.to_string()))
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let rules = rules();
    let allow = &rules.licenses.allow;
    assert!(is_allowed("GPL-3.0-only OR MIT", allow) && !is_allowed("GPL-3.0-only AND MIT", allow));
    let foreign: Vec<_> = packages(&rules).into_iter().filter(Package::is_foreign).collect();
    let wrong: Vec<_> = foreign.iter().filter(|package| !is_allowed(&package.license, allow)).collect();
    assert!(wrong.is_empty(), "licences that deny.toml does not allow: {wrong:#?}");
}

#[test]
fn every_dependency_comes_from_the_registry() {
    let wrong: Vec<_> = packages(&rules())
        .into_iter()
        .filter(|package| package.is_foreign() && package.source.is_some())
        .collect();
    assert!(wrong.is_empty(), "crates from another source: {wrong:#?}");
}

#[test]
fn each_dependency_has_one_version() {
    let rules = rules();
    let all = packages(&rules);
    let unused: Vec<_> = (rules.bans.skip.iter())
        .filter(|skip| {
            let only = Rules { bans: Bans { skip: vec![Skip { spec: skip.spec.clone() }] }, ..self::rules() };
            !all.iter().any(|package| package.is_skipped(&only))
        })
        .map(|skip| &skip.spec)
        .collect();
    assert!(unused.is_empty(), "deny.toml excuses crates that nothing uses: {unused:?}");

    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in all.iter().filter(|package| !package.is_skipped(&rules)) {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let doubled: Vec<_> = versions.iter().filter(|(_, versions)| versions.len() > 1).collect();
    assert!(doubled.is_empty(), "crates of several versions: {doubled:?}");
}

#[test]
fn each_dependency_has_a_version() {
    let manifest: toml::Table = toml::from_str(include_str!("../Cargo.toml")).unwrap();
    let all = manifest["workspace"]["dependencies"].as_table().unwrap();
    let is_open = |value: &toml::Value| {
        let version = value.as_str().or_else(|| value.get("version")?.as_str());
        value.get("path").is_none() && version.is_none_or(|version| version.contains('*'))
    };
    let open: Vec<_> = all.iter().filter(|(_, value)| is_open(value)).map(|(name, _)| name).collect();
    assert!(open.is_empty(), "dependencies of any version: {open:?}");
}
