//! Lanes: how a class of worker is started and how its ending is read. Profiles are assignees that name a lane.
//!
//! The `shell` lane is built in. `lanes.d/*.toml` of the configuration adds others, one file a lane, named by the file.

mod lane;

use std::collections::BTreeMap;
use std::path::Path;

use kernel::Profile;
pub(crate) use lane::{CleanExit, Lane, Prompt, RateLimit};
use policies::{Boundary, Policy, Source};

use crate::exit::Code;
use crate::failure::Failure;
use crate::paths::Root;

const SHELL: &str = include_str!("builtin/shell.toml");

/// What can be spawned on this host, and under which policies.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    lanes: BTreeMap<String, Lane>,
    policies: BTreeMap<String, Policy>,
}

impl Lanes {
    /// The built-in lanes and those of the configuration.
    pub(crate) fn load(root: &Root) -> Result<Self, Failure> {
        let shell = Lane::parse(SHELL, Path::new("the built-in lane shell"))?;
        let mut lanes = BTreeMap::from([("shell".to_owned(), shell)]);
        let mut policies = BTreeMap::new();
        for name in Policy::builtin_names() {
            if let Some(policy) = Policy::builtin(name) {
                policies.insert((*name).to_owned(), policy);
            }
        }
        let sources: BTreeMap<String, Source> = definitions(&root.policies_dir())?
            .into_iter()
            .map(|(name, origin, text)| (name, Source { origin, text }))
            .collect();
        let boundary = Boundary::around(&root.closed())
            .map_err(|e| Failure::failed(format!("failed to read the table of mounts: {e}")))?;
        for (name, source) in &sources {
            let policy = Policy::from_source(source, &sources)
                .and_then(|policy| policy.check_closed(source, &boundary).map(|()| policy))
                .map_err(|e| {
                    Failure::usage(with_causes(&e)).hint("the keys are described in docs/policies.md")
                })?;
            policies.insert(name.clone(), policy);
        }
        for (name, path, text) in definitions(&root.lanes_dir())? {
            name.parse::<Profile>().map_err(|e| {
                Failure::usage(format!("{}: {e}", path.display()))
                    .hint("the file's name is the lane's name, which tasks are assigned to")
            })?;
            lanes.insert(name, Lane::parse(&text, &path)?);
        }
        Ok(Lanes { lanes, policies })
    }

    /// The lane that an assignee names.
    pub(crate) fn get(&self, assignee: &Profile) -> Option<&Lane> {
        self.lanes.get(assignee.as_str())
    }

    /// The names of all lanes.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.lanes.keys().map(String::as_str).collect()
    }

    /// The account of each lane that names one.
    pub(crate) fn accounts(&self) -> kernel::Accounts {
        let named =
            self.lanes.iter().filter_map(|(name, lane)| Some((name.parse().ok()?, lane.account.clone()?)));
        named.collect()
    }

    /// The policy of a name.
    pub(crate) fn policy(&self, name: &str) -> Result<&Policy, Failure> {
        self.policies.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.policies.keys().map(String::as_str).collect();
            Failure::new(Code::Usage, format!("there is no policy `{name}`"))
                .hint(format!("the policies are: {}", known.join(", ")))
        })
    }
}

/// The `*.toml` files of a directory: name, path and text of each.
fn definitions(dir: &Path) -> Result<Vec<(String, std::path::PathBuf, String)>, Failure> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Failure::file("list", dir, &e)),
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let (Some(stem), Some("toml")) =
            (path.file_stem().and_then(|s| s.to_str()), path.extension().and_then(|s| s.to_str()))
        else {
            continue;
        };
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::file("read", &path, &e))?;
        found.push((stem.to_owned(), path.clone(), text));
    }
    found.sort();
    Ok(found)
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
