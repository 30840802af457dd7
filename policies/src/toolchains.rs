//! Toolchains that people install beneath their home, and that a policy grants by name: their directories, and the
//! variables that point to them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A toolchain beneath a home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Toolchain {
    /// Programs of `~/.cargo/bin`, and the Rust toolchains behind them.
    Cargo,
    /// Rust toolchains of `~/.rustup`, and the programs that choose one of them.
    Rustup,
    /// Versions of Node in `~/.nvm`.
    Nvm,
    /// Versions of Python in `~/.pyenv`.
    Pyenv,
}

/// Toolchains of a home that a policy grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toolchains {
    /// These toolchains, which have to be installed.
    Named(BTreeSet<Toolchain>),
    /// All toolchains that are installed in the home, if there is a home: `"installed"`.
    Installed,
}

const INSTALLED: &str = "installed";

impl Default for Toolchains {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl Toolchains {
    /// Returns true if the policy grants no toolchain.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first toolchain that has to be installed, if any.
    pub fn required(&self) -> Option<Toolchain> {
        match self {
            Self::Named(named) => named.first().copied(),
            Self::Installed => None,
        }
    }

    /// Returns the granted toolchains of a home.
    fn in_home(&self, home: &Path) -> Vec<Toolchain> {
        match self {
            Self::Named(named) => named.iter().copied().collect(),
            Self::Installed => {
                let is_there = |toolchain: &Toolchain| home.join(toolchain.own_directory()).is_dir();
                Toolchain::ALL.into_iter().filter(is_there).collect()
            }
        }
    }

    /// Returns the directories of the granted toolchains of a home. The flag is true for a directory that may be
    /// missing.
    pub(crate) fn places(&self, home: &Path) -> Vec<(PathBuf, bool)> {
        let needed = self.in_home(home).into_iter().flat_map(Toolchain::needs);
        let may_be_missing = *self == Self::Installed;
        needed.map(|needed| (home.join(needed.directory), needed.optional || may_be_missing)).collect()
    }

    /// Returns the variables for the toolchains of a home.
    pub fn environment(&self, home: &Path) -> ToolchainEnvironment {
        let mut all = ToolchainEnvironment::default();
        for toolchain in self.in_home(home) {
            let ToolchainEnvironment { path, set } = toolchain.environment(home);
            all.path.extend(path.into_iter().filter(|path| !all.path.contains(path)).collect::<Vec<_>>());
            all.set.extend(set);
        }
        all
    }
}

impl Serialize for Toolchains {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(named) => named.serialize(serializer),
            Self::Installed => INSTALLED.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Toolchains {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Toolchains {
    fn schema_name() -> Cow<'static, str> {
        "Toolchains".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let named = generator.subschema_for::<BTreeSet<Toolchain>>();
        json_schema!({ "anyOf": [{ "const": INSTALLED }, named] })
    }
}

/// Reads the word or a list of names.
struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Toolchains;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Toolchain::ALL.map(Toolchain::name).join(", ");
        write!(f, "`\"{INSTALLED}\"` or a list of {names}")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Toolchains, E> {
        match word {
            INSTALLED => Ok(Toolchains::Installed),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Toolchains, A::Error> {
        BTreeSet::deserialize(SeqAccessDeserializer::new(list)).map(Toolchains::Named)
    }
}

/// Variables of a run for its toolchains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainEnvironment {
    /// Directories for the front of `PATH`.
    pub path: Vec<PathBuf>,
    /// Variables.
    pub set: BTreeMap<String, OsString>,
}

/// A directory that a toolchain needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needed {
    pub(crate) directory: &'static str,
    pub(crate) optional: bool,
}

/// Limit on the examined versions of Node.
const VERSIONS: usize = 1000;
/// Limit on the name of a version, in bytes.
const ALIAS: u64 = 256;

const CARGO: &str = ".cargo/bin";
const RUSTUP: &str = ".rustup";
const NVM: &str = ".nvm";
const PYENV: &str = ".pyenv";

impl Toolchain {
    pub const ALL: [Self; 4] = [Self::Cargo, Self::Rustup, Self::Nvm, Self::Pyenv];

    /// Returns the word that a policy uses for the toolchain.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Rustup => "rustup",
            Self::Nvm => "nvm",
            Self::Pyenv => "pyenv",
        }
    }

    /// Returns the toolchain in which a path lies, given relative to a home directory.
    pub(crate) fn holding(inside: &Path) -> Option<Self> {
        [(CARGO, Self::Cargo), (RUSTUP, Self::Rustup), (NVM, Self::Nvm), (PYENV, Self::Pyenv)]
            .into_iter()
            .find_map(|(directory, toolchain)| inside.starts_with(directory).then_some(toolchain))
    }

    /// Returns the directory beneath the home whose existence shows that the toolchain is installed.
    fn own_directory(self) -> &'static str {
        match self {
            Self::Cargo => CARGO,
            Self::Rustup => RUSTUP,
            Self::Nvm => NVM,
            Self::Pyenv => PYENV,
        }
    }

    /// Returns the directories beneath the home that the toolchain needs. Only the programs of `~/.cargo` are among
    /// them, because its other files contain credentials.
    pub(crate) fn needs(self) -> Vec<Needed> {
        let needed = |directory| Needed { directory, optional: false };
        let optional = |directory| Needed { directory, optional: true };
        match self {
            Self::Cargo => vec![needed(CARGO), optional(RUSTUP)],
            Self::Rustup => vec![needed(RUSTUP), optional(CARGO)],
            Self::Nvm => vec![needed(NVM)],
            Self::Pyenv => vec![needed(PYENV)],
        }
    }

    /// Returns the variables for this toolchain of a home.
    pub fn environment(self, home: &Path) -> ToolchainEnvironment {
        let at = |inside: &str| home.join(inside);
        let set = |name: &str, inside: &str| (name.to_owned(), at(inside).into_os_string());
        match self {
            Self::Cargo | Self::Rustup => ToolchainEnvironment {
                path: vec![at(CARGO)],
                set: BTreeMap::from([set("RUSTUP_HOME", RUSTUP)]),
            },
            Self::Nvm => ToolchainEnvironment {
                path: node(&at(NVM)).into_iter().collect(),
                set: BTreeMap::from([set("NVM_DIR", NVM)]),
            },
            Self::Pyenv => ToolchainEnvironment {
                path: vec![at(PYENV).join("shims"), at(PYENV).join("bin")],
                set: BTreeMap::from([set("PYENV_ROOT", PYENV)]),
            },
        }
    }
}

/// Returns the program directory of nvm's default version of Node, or of the newest version if the default is not
/// installed.
fn node(nvm: &Path) -> Option<PathBuf> {
    let versions = nvm.join("versions/node");
    let chosen = alias(&nvm.join("alias/default")).unwrap_or_default();
    let chosen = numbers(chosen.trim());
    let entries = std::fs::read_dir(&versions).ok()?.flatten().take(VERSIONS);
    let there: Vec<(Vec<u64>, PathBuf)> = entries
        .filter_map(|entry| Some((numbers(entry.file_name().to_str()?), entry.path())))
        .filter(|(version, _)| !version.is_empty())
        .collect();
    let fits = |version: &[u64]| !chosen.is_empty() && version.starts_with(&chosen);
    let best = there.iter().max_by_key(|(version, _)| (fits(version), version.clone()))?;
    Some(best.1.join("bin"))
}

/// Reads the name of a version from a regular file. `O_NONBLOCK` keeps the opening of a FIFO from blocking.
fn alias(path: &Path) -> Option<String> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().ok().filter(|meta| meta.is_file())?;
    let mut text = String::new();
    file.take(ALIAS).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Parses a version such as `v20.11.1`. Returns no numbers for another text, such as `lts/*`.
fn numbers(text: &str) -> Vec<u64> {
    let text = text.strip_prefix('v').unwrap_or(text);
    text.split('.').map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_version_of_node_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["v18.20.0", "v20.9.0", "v20.11.1", "v22.1.0"] {
            std::fs::create_dir_all(dir.path().join("versions/node").join(version)).unwrap();
        }
        let found = || node(dir.path()).unwrap();
        assert!(found().ends_with("v22.1.0/bin"), "without a default the newest");
        std::fs::create_dir(dir.path().join("alias")).unwrap();
        for (alias, version) in
            [("20\n", "v20.11.1/bin"), ("v18.20.0", "v18.20.0/bin"), ("lts/*", "v22.1.0/bin")]
        {
            std::fs::write(dir.path().join("alias/default"), alias).unwrap();
            assert!(found().ends_with(version), "{alias}");
        }
    }

    #[test]
    fn a_path_is_known_by_its_toolchain_and_credentials_by_none() {
        assert_eq!(Toolchain::holding(Path::new(".cargo/bin/cargo")), Some(Toolchain::Cargo));
        assert_eq!(Toolchain::holding(Path::new(".cargo/credentials.toml")), None);
    }

    #[test]
    fn what_a_home_has_is_granted_by_one_word_and_what_is_named_has_to_be_there() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".cargo/bin")).unwrap();
        let read = |text: &str| {
            toml::from_str::<BTreeMap<String, Toolchains>>(text).map(|mut all| all.remove("a").unwrap())
        };
        let installed = read("a = 'installed'").unwrap();
        assert_eq!((installed.clone(), installed.required()), (Toolchains::Installed, None));
        let places = installed.places(home.path());
        assert_eq!(places, [(home.path().join(CARGO), true), (home.path().join(RUSTUP), true)]);
        assert_eq!(installed.environment(home.path()).path, [home.path().join(CARGO)]);
        let named = read("a = ['nvm']").unwrap();
        assert_eq!((named.required(), named.is_empty()), (Some(Toolchain::Nvm), false));
        assert_eq!(named.places(home.path()), [(home.path().join(NVM), false)]);
        assert!(read("a = []").unwrap().is_empty());
        for wrong in ["a = 'all'", "a = ['gcc']", "a = 1"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("rustup"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_schema_names_the_word_and_the_list() {
        let schema = schemars::schema_for!(crate::Files).to_value();
        let toolchains = &schema["$defs"]["Toolchains"]["anyOf"];
        assert_eq!(toolchains[0]["const"], "installed");
        assert_eq!(toolchains[1]["type"], "array");
    }
}
