//! Part of a policy about files. Opens the paths that its words name.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::paths::{Kind, Link, Opened, PathError, is_plain};
use crate::run_context::{BoardAccess, RunContext};
use crate::toolchains::{ToolchainEnvironment, Toolchains};

/// Files and devices that a policy grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// Readable.
    pub ro: Vec<Grant>,
    /// Readable and executable.
    pub rox: Vec<Grant>,
    /// Readable and writable.
    pub rw: Vec<Grant>,
    /// Readable, writable and executable.
    pub rwx: Vec<Grant>,
    /// Paths granted besides the lists of this policy and of its bases.
    #[serde(skip_serializing_if = "Added::is_empty")]
    pub add: Added,
    /// Toolchains beneath a home directory, readable and executable, with the variables that point to them.
    #[serde(skip_serializing_if = "Toolchains::is_empty")]
    pub toolchains: Toolchains,
    /// Owner of the toolchains: a home directory; the home of the worker's user by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolchain_home: Option<PathBuf>,
    /// Device nodes, readable and writable.
    pub devices: Vec<Device>,
    /// True if `/proc` is shown.
    pub proc: Proc,
    /// True if `/dev/shm` is shown.
    pub shm: Shm,
}

/// Paths that are granted in addition. A list of a policy replaces the list of its base, and these lists are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Added {
    /// Readable.
    pub ro: Vec<Grant>,
    /// Readable and executable.
    pub rox: Vec<Grant>,
    /// Readable and writable.
    pub rw: Vec<Grant>,
    /// Readable, writable and executable.
    pub rwx: Vec<Grant>,
}

impl Added {
    fn is_empty(&self) -> bool {
        self.ro.is_empty() && self.rox.is_empty() && self.rw.is_empty() && self.rwx.is_empty()
    }
}

/// Granted path: text, or a table with `path` and `optional`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "GrantForm")]
#[schemars(with = "GrantForm")]
pub struct Grant {
    pub path: GrantPath,
    /// True if the path may be missing.
    pub optional: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum GrantForm {
    Path(String),
    /// A path that may be missing.
    Table(Table),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    path: GrantPath,
    #[serde(default)]
    optional: bool,
}

impl From<Grant> for GrantForm {
    fn from(grant: Grant) -> Self {
        if grant.optional {
            Self::Table(Table { path: grant.path, optional: true })
        } else {
            Self::Path(grant.path.into())
        }
    }
}

impl<'de> Deserialize<'de> for Grant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Grant;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, or a table with `path` and `optional`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Grant, E> {
                let path = GrantPath::try_from(text.to_owned()).map_err(E::custom)?;
                Ok(Grant { path, optional: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Grant, A::Error> {
                let Table { path, optional } = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Grant { path, optional })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A path of a policy: absolute, or beginning with `{workspace}`, `{home}` or `{tmp}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum GrantPath {
    /// A path of the host.
    Absolute(PathBuf),
    /// A path in the run's workspace.
    Workspace(PathBuf),
    /// A path in the run's home.
    Home(PathBuf),
    /// A path in the run's directory for temporary files.
    Tmp(PathBuf),
}

impl TryFrom<String> for GrantPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let path = Path::new(&text);
        let word = path.iter().next().unwrap_or_default().to_string_lossy().into_owned();
        let inside: PathBuf = path.iter().skip(1).collect();
        if !is_plain(&Path::new("/").join(&inside)) {
            return Err(format!("`{text}` contains `..`"));
        }
        match word.as_str() {
            "{workspace}" => Ok(Self::Workspace(inside)),
            "{home}" => Ok(Self::Home(inside)),
            "{tmp}" => Ok(Self::Tmp(inside)),
            "/" => Ok(Self::Absolute(path.to_owned())),
            _ => Err(format!(
                "`{text}` is neither absolute nor begins with {{workspace}}, {{home}} or {{tmp}}"
            )),
        }
    }
}

impl From<GrantPath> for String {
    fn from(path: GrantPath) -> Self {
        let (word, inside) = match path {
            GrantPath::Absolute(path) => return path.to_string_lossy().into_owned(),
            GrantPath::Workspace(inside) => ("{workspace}", inside),
            GrantPath::Home(inside) => ("{home}", inside),
            GrantPath::Tmp(inside) => ("{tmp}", inside),
        };
        if inside.as_os_str().is_empty() { word.to_owned() } else { format!("{word}/{}", inside.display()) }
    }
}

/// A device node that may be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// `/dev/null`
    Null,
    /// `/dev/zero`
    Zero,
    /// `/dev/full`
    Full,
    /// `/dev/random`
    Random,
    /// `/dev/urandom`
    Urandom,
    /// `/dev/tty`
    Tty,
    /// `/dev/ptmx` and the terminals made with it
    Ptmx,
}

impl Device {
    /// Every device that may be granted.
    pub(crate) const ALL: [Self; 7] =
        [Self::Null, Self::Zero, Self::Full, Self::Random, Self::Urandom, Self::Tty, Self::Ptmx];

    /// Returns the word that a policy file uses for the device.
    pub(crate) fn name(self) -> &'static str {
        self.path().file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    pub(crate) fn path(self) -> &'static Path {
        Path::new(match self {
            Self::Null => "/dev/null",
            Self::Zero => "/dev/zero",
            Self::Full => "/dev/full",
            Self::Random => "/dev/random",
            Self::Urandom => "/dev/urandom",
            Self::Tty => "/dev/tty",
            Self::Ptmx => "/dev/ptmx",
        })
    }
}

/// Visibility of `/proc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Proc {
    /// `/proc` is not shown.
    #[default]
    None,
    /// The `/proc` of the host, readable. It shows the processes of the host with their arguments. Their memory,
    /// environment and descriptors stay closed.
    Host,
}

/// Visibility of `/dev/shm`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shm {
    /// `/dev/shm` is not shown.
    #[default]
    None,
    /// An instance that belongs to the run. It needs a mount namespace.
    Private,
}

#[derive(Debug, Default)]
pub(crate) struct Granted {
    pub(crate) paths: Vec<(Opened, Access)>,
    pub(crate) links: Vec<Link>,
}

/// Open directories of a run.
struct Bases {
    workspace: Opened,
    home: Opened,
    tmp: Opened,
    writable: Vec<PathBuf>,
}

impl Bases {
    fn open(context: &RunContext) -> Result<Self, PathError> {
        let open = |path: &Path| Opened::real(path)?.directory();
        let run_directories = [&context.workspace, &context.home, &context.tmp];
        Ok(Self {
            workspace: open(&context.workspace)?,
            home: open(&context.home)?,
            tmp: open(&context.tmp)?,
            writable: run_directories.into_iter().chain(&context.write).cloned().collect(),
        })
    }

    fn find(&self, path: &GrantPath) -> Result<(Opened, Vec<Link>), PathError> {
        let (base, inside) = match path {
            GrantPath::Absolute(path) => return Opened::followed(path, &self.writable),
            GrantPath::Workspace(inside) => (&self.workspace, inside),
            GrantPath::Home(inside) => (&self.home, inside),
            GrantPath::Tmp(inside) => (&self.tmp, inside),
        };
        let opened = if inside.as_os_str().is_empty() { base.again() } else { base.beneath(inside) };
        Ok((opened?, Vec::new()))
    }
}

impl Files {
    /// Opens every path that the policy or the run grants.
    pub(crate) fn open(&self, context: &RunContext) -> Result<Granted, PathError> {
        let bases = Bases::open(context)?;
        let mut granted = Granted::default();
        for (_, grants, access) in self.lists() {
            for grant in grants {
                match bases.find(&grant.path) {
                    Ok((opened, links)) => granted.add(opened, links, access),
                    Err(error) if grant.optional && error.is_missing() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for (place, optional) in self.toolchain_places(context) {
            match Opened::followed(&place, &bases.writable) {
                Ok((opened, links)) => granted.add(opened, links, Access::Execute),
                Err(error) if optional && error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        for (paths, access) in [(&context.read, Access::Read), (&context.execute, Access::Execute)] {
            for path in paths {
                let (opened, links) = Opened::followed(path, &bases.writable)?;
                granted.add(opened, links, access);
            }
        }
        // A worker may have written above these paths in an earlier run, so no link is followed.
        for path in &context.write {
            granted.add(Opened::real(path)?, Vec::new(), Access::Write);
        }
        if let BoardAccess::Socket(path) = &context.board {
            // The directory is granted, because a restarted daemon makes a new socket in it.
            let parent = path.parent().unwrap_or(path);
            let (opened, links) = Opened::followed(parent, &bases.writable)?;
            granted.add(opened, links, Access::Socket);
        }
        if self.proc == Proc::Host {
            granted.add(Opened::real(Path::new("/proc"))?.directory()?, Vec::new(), Access::Read);
        }
        Ok(granted)
    }

    /// Returns each list of grants with its key.
    pub(crate) fn lists(&self) -> [(&'static str, &[Grant], Access); 8] {
        let add = &self.add;
        [
            ("rox", &self.rox, Access::Execute),
            ("ro", &self.ro, Access::Read),
            ("rw", &self.rw, Access::Write),
            ("rwx", &self.rwx, Access::WriteExecute),
            ("add.rox", &add.rox, Access::Execute),
            ("add.ro", &add.ro, Access::Read),
            ("add.rw", &add.rw, Access::Write),
            ("add.rwx", &add.rwx, Access::WriteExecute),
        ]
    }

    /// Returns the home directory whose toolchains are granted.
    pub(crate) fn tools_home<'a>(&'a self, context: &'a RunContext) -> Option<&'a Path> {
        self.toolchain_home.as_deref().or(context.toolchain_home.as_deref())
    }

    /// Returns the directories of the toolchains. The flag is true for a directory that may be missing.
    pub(crate) fn toolchain_places(&self, context: &RunContext) -> Vec<(PathBuf, bool)> {
        let Some(home) = self.tools_home(context) else { return Vec::new() };
        self.toolchains.places(home)
    }

    /// Returns the variables for the toolchains.
    pub(crate) fn toolchain_environment(&self, context: &RunContext) -> ToolchainEnvironment {
        self.tools_home(context).map(|home| self.toolchains.environment(home)).unwrap_or_default()
    }

    /// Opens the device nodes that exist, except `ptmx`, which needs its own file system.
    pub(crate) fn open_devices(&self) -> Result<Vec<(Opened, Access)>, PathError> {
        let plain = self.devices.iter().filter(|device| **device != Device::Ptmx);
        plain.filter_map(|device| open_device(device.path()).transpose()).collect()
    }
}

fn open_device(path: &Path) -> Result<Option<(Opened, Access)>, PathError> {
    match Opened::real(path) {
        Ok(opened) if opened.kind == Kind::Device => Ok(Some((opened, Access::Device))),
        Ok(opened) => Err(PathError::Kind { path: opened.path, wanted: "device" }),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Granted {
    fn add(&mut self, opened: Opened, links: Vec<Link>, access: Access) {
        self.paths.push((opened, access));
        for link in links {
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_path_are_read_and_written_back() {
        for text in ["/usr", "{workspace}", "{workspace}/target/debug", "{home}", "{tmp}/x"] {
            let path = GrantPath::try_from(text.to_owned()).unwrap();
            assert_eq!(String::from(path), text);
        }
        for text in ["usr", "", "{root}/x", "{workspace}/../x", "/a/../b"] {
            assert!(GrantPath::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_granted_besides_is_written_where_there_is_any() {
        let grant = Grant { path: GrantPath::Tmp("x".into()), optional: false };
        assert!(serde_json::to_value(Files::default()).unwrap().get("add").is_none());
        for list in 0..4 {
            let [ro, rox, rw, rwx] = [0, 1, 2, 3].map(|at| vec![grant.clone(); usize::from(at == list)]);
            let files = Files { add: Added { ro, rox, rw, rwx }, ..Files::default() };
            let written = serde_json::to_value(&files).unwrap();
            assert_eq!(serde_json::from_value::<Files>(written).unwrap(), files);
        }
    }

    #[test]
    fn what_is_no_grant_is_refused_with_what_one_is() {
        let error = serde_json::from_value::<Grant>(serde_json::json!(7)).unwrap_err().to_string();
        assert!(error.contains("expected a path, or a table with `path` and `optional`"), "{error}");
    }

    #[test]
    fn a_device_is_called_by_the_name_of_its_node() {
        for device in Device::ALL {
            assert_eq!(serde_json::to_value(device).unwrap(), device.name());
            assert_eq!(device.path(), Path::new("/dev").join(device.name()));
        }
    }

    #[test]
    fn a_node_that_is_no_device_is_refused_and_one_that_is_not_there_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::write(dir.join("null"), "").unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.join("link")).unwrap();
        let opened = open_device(Path::new("/dev/null")).unwrap();
        assert!(opened.is_some_and(|(_, access)| access == Access::Device));
        assert!(open_device(&dir.join("none")).unwrap().is_none());
        assert!(matches!(open_device(&dir.join("null")), Err(PathError::Kind { .. })));
        assert!(matches!(open_device(&dir.join("link")), Err(PathError::Linked { .. })));
    }
}
