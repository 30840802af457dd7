//! Licences, sources and versions of the crates that the project is built from, against the rules of `deny.toml`. The rules are
//! those of cargo-deny, which takes minutes to build; this test reads the part of its file that the project uses.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde::Deserialize;

use crate::house::house;

const RULES: &str = include_str!("../deny.toml");
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

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

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for a crate of this repository.
    source: Option<String>,
}

/// Returns every crate that a build for one of the targets of `deny.toml` uses, tests included.
fn packages(rules: &Rules) -> BTreeSet<Package> {
    let mut all = BTreeSet::new();
    for target in &rules.graph.targets {
        let listed = Command::new(env!("CARGO"))
            .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target])
            .current_dir(house())
            .output()
            .unwrap();
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        all.extend(serde_json::from_slice::<Metadata>(&listed.stdout).unwrap().packages);
    }
    assert!(all.len() > 100, "{} crates are not all", all.len());
    all
}

fn rules() -> Rules {
    toml::from_str(RULES).unwrap()
}

impl Package {
    fn is_foreign(&self) -> bool {
        self.source.is_some()
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
    let wrong: Vec<_> = foreign
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(|text| is_allowed(text, allow)))
        .collect();
    assert!(wrong.is_empty(), "licences that deny.toml does not allow: {wrong:#?}");
}

#[test]
fn every_dependency_comes_from_the_registry() {
    let wrong: Vec<_> = packages(&rules())
        .into_iter()
        .filter(|package| package.source.as_ref().is_some_and(|source| source != REGISTRY))
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
