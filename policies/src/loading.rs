//! Reads a policy: its text and the policies that it extends, and refuses contents that no policy may have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::boundary::{Boundary, PathRelation};
use crate::broker::Broker;
use crate::environment::is_reserved;
use crate::error::{PolicyError, line_of_key};
use crate::files::GrantPath;
use crate::policy::Policy;
use crate::presets;

/// Prefix that means a shipped policy, even if a file has the same name.
const BUILTIN: &str = "builtin:";

/// Text of a policy, and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file, for errors. Its name without the extension is the name of the policy.
    pub origin: PathBuf,
    /// TOML of this one file.
    pub text: String,
}

/// Policy in a chain of bases.
struct Ancestor {
    /// Name in the chain.
    label: String,
    source: Source,
}

impl Policy {
    /// Reads a policy that extends shipped policies alone. Errors name `origin`, which also gives the name if the text
    /// has none.
    ///
    /// # Errors
    /// As [`Policy::from_source`].
    pub fn from_toml(text: &str, origin: &Path) -> Result<Self, PolicyError> {
        let source = Source { origin: origin.to_owned(), text: text.to_owned() };
        Self::from_source(&source, &BTreeMap::new())
    }

    /// Reads a policy that extends shipped policies or `others`, by their names. A name means one of `others` before a
    /// shipped policy, but never the policy itself; `builtin:NAME` always means the shipped policy.
    ///
    /// # Errors
    /// Names the file, the line and the key of the defect, in this policy or in a base: a text that is no policy, an
    /// unknown base, a chain that leads back to itself, a name that differs from the file's, a grant of everything, or
    /// a variable that the supervisor sets.
    pub fn from_source(source: &Source, others: &BTreeMap<String, Source>) -> Result<Self, PolicyError> {
        let chain = chain(source, others)?;
        let mut merged = toml::Table::new();
        for Ancestor { source: Source { origin, text }, .. } in chain.iter().rev() {
            let fail = |error| PolicyError::from_toml(text, origin, &error);
            let mut table: toml::Table = toml::from_str(text).map_err(fail)?;
            table.remove("extends");
            merged.remove("name");
            merge(&mut merged, table);
        }
        let fail = |error| PolicyError::from_toml(&source.text, &source.origin, &error);
        let mut policy: Self = merged.try_into().map_err(fail)?;
        let file = stem(&source.origin);
        if policy.name.is_empty() {
            policy.name = file;
        } else if policy.name != file && source.origin.extension().is_some() {
            return Err(PolicyError::Name {
                origin: source.origin.clone(),
                line: line_of_key(&source.text, "name"),
                found: policy.name,
                file,
            });
        }
        policy.check(source)?;
        Ok(policy)
    }

    /// Refuses a grant that no run can get: a path in a closed place, or a path that lets a run write around such a
    /// place.
    ///
    /// # Errors
    /// Names the file, the line and the key.
    pub fn check_closed(&self, source: &Source, boundary: &Boundary) -> Result<(), PolicyError> {
        for (key, grants, access) in self.filesystem.lists() {
            for grant in grants {
                let GrantPath::Absolute(path) = &grant.path else { continue };
                let (relation, place) = match boundary.relation(path) {
                    PathRelation::Inside(place) => ("lies in", place),
                    PathRelation::Holds(held) if access.writes() => {
                        ("holds", held.into_iter().next().map(|held| held.place).unwrap_or_default())
                    }
                    PathRelation::Holds(_) | PathRelation::Apart => continue,
                };
                let (origin, line) = (source.origin.clone(), line_of_key(&source.text, plain(key)));
                let path = path.clone();
                return Err(PolicyError::Closed { origin, line, key, path, relation, place });
            }
        }
        Ok(())
    }

    /// Refuses settings that this release could not enforce.
    fn check(&self, source: &Source) -> Result<(), PolicyError> {
        for (key, grants, _) in self.filesystem.lists() {
            if grants.iter().any(|grant| grant.path == GrantPath::Absolute("/".into())) {
                let (origin, line) = (source.origin.clone(), line_of_key(&source.text, plain(key)));
                return Err(PolicyError::Everything { origin, line, key });
            }
        }
        if let Some(message) = Broker::defect_of(&self.broker, self.has_proxy()) {
            let line = source.text.lines().position(|line| line.trim() == "[[broker]]").map_or(1, |n| n + 1);
            return Err(PolicyError::Broker { origin: source.origin.clone(), line, message });
        }
        let names =
            self.env.set.keys().chain(self.env.secret.keys()).chain(self.env.pass.iter().map(AsRef::as_ref));
        if let Some(name) = names.into_iter().find(|name| is_reserved(name, self.network.mode)) {
            return Err(PolicyError::Variable {
                origin: source.origin.clone(),
                line: line_of_key(&source.text, name),
                name: name.clone(),
            });
        }
        Ok(())
    }
}

/// Returns a policy and its bases, the policy itself first.
fn chain(source: &Source, others: &BTreeMap<String, Source>) -> Result<Vec<Ancestor>, PolicyError> {
    let mut chain = vec![Ancestor { label: stem(&source.origin), source: source.clone() }];
    while let Some(Ancestor { source: Source { origin, text }, label }) = chain.last() {
        // The text is parsed by itself first, so that an error has its file and line.
        let fail = |error| PolicyError::from_toml(text, origin, &error);
        let line = line_of_key(text, "version");
        let another = |found| PolicyError::Version { origin: origin.clone(), line, found };
        let keys: toml::Table = toml::from_str(text).map_err(fail)?;
        if !keys.contains_key("version") {
            return Err(another(None));
        }
        let read: Policy = toml::from_str(text).map_err(fail)?;
        if read.version != 1 {
            return Err(another(Some(read.version)));
        }
        let Some(base) = read.extends else { break };
        let place = || (origin.clone(), line_of_key(text, "extends"));
        let shipped = base.strip_prefix(BUILTIN);
        let other = others.get(&base).filter(|_| shipped.is_none() && *label != base);
        let name = shipped.unwrap_or(&base);
        let step = match (other, presets::text(name)) {
            (Some(other), _) => Ancestor { label: base.clone(), source: other.clone() },
            (None, Some(text)) => {
                let origin = Path::new("builtin").join(name);
                Ancestor {
                    label: format!("{BUILTIN}{name}"),
                    source: Source { origin, text: text.to_owned() },
                }
            }
            (None, None) if *label == base => {
                let (origin, line) = place();
                return Err(PolicyError::Cycle { origin, line, chain: format!("{base} → {base}") });
            }
            (None, None) => {
                let (origin, line) = place();
                let mut known: Vec<String> = presets::NAMES.iter().map(|name| (*name).to_owned()).collect();
                known.extend(others.keys().filter(|name| *name != label).cloned());
                return Err(PolicyError::Base { origin, line, base, known });
            }
        };
        if chain.iter().any(|before| before.label == step.label) {
            let (origin, line) = place();
            let labels: Vec<&str> = chain.iter().chain([&step]).map(|step| step.label.as_str()).collect();
            return Err(PolicyError::Cycle { origin, line, chain: labels.join(" → ") });
        }
        chain.push(step);
    }
    Ok(chain)
}

/// Returns a key without the table `add`.
fn plain(key: &str) -> &str {
    key.strip_prefix("add.").unwrap_or(key)
}

fn stem(origin: &Path) -> String {
    origin.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The table whose lists are joined.
const JOINED: &str = "add";

/// Lays `over` on `under`: tables are merged, the lists of `add` are joined, and everything else is replaced.
fn merge(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) if key == JOINED => {
                join(below, above);
            }
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

fn join(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Array(below)), toml::Value::Array(above)) => below.extend(above),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf(files: &[(&str, &str)]) -> BTreeMap<String, Source> {
        let source = |name: &str, text: &str| Source {
            origin: format!("/etc/policies.d/{name}.toml").into(),
            text: format!("version = 1\n{text}"),
        };
        files.iter().map(|(name, text)| ((*name).to_owned(), source(name, text))).collect()
    }

    fn read(files: &[(&str, &str)], name: &str) -> Result<Policy, PolicyError> {
        let shelf = shelf(files);
        Policy::from_source(&shelf[name], &shelf)
    }

    #[test]
    fn the_whole_chain_is_merged() {
        let default = Policy::builtin("default").unwrap();
        let network = Policy::builtin("network").unwrap();
        let own = read(&[("own", "extends = 'network'\n[limits]\npids = 7")], "own").unwrap();
        assert_eq!(own.filesystem.rox, default.filesystem.rox, "what `network` has of `default`");
        assert_eq!(own.network, network.network);
        assert_eq!(own.limits.pids, Some(7));
        assert_eq!(own.name(), "own");
    }

    #[test]
    fn what_a_policy_adds_comes_to_what_the_others_grant() {
        let files = [
            ("a", "extends = 'b'\n[filesystem.add]\nro = ['/a']"),
            ("b", "extends = 'default'\n[filesystem.add]\nro = ['/b']\nrw = ['/c']"),
        ];
        let policy = read(&files, "a").unwrap();
        let paths: Vec<String> =
            policy.filesystem.add.ro.iter().map(|grant| grant.path.clone().into()).collect();
        assert_eq!(paths, ["/b", "/a"]);
        assert_eq!(policy.filesystem.add.rw.len(), 1);
        assert_eq!(policy.filesystem.ro, Policy::builtin("default").unwrap().filesystem.ro);
    }

    #[test]
    fn files_extend_each_other_and_shipped_policies() {
        let files = [
            ("default", "extends = 'default'\n[limits]\nfiles = 9"),
            ("team", "extends = 'default'\n[limits]\npids = 8"),
            ("plain", "extends = 'builtin:default'"),
        ];
        let shipped = Policy::builtin("default").unwrap();
        let team = read(&files, "team").unwrap();
        assert_eq!((team.limits.files, team.limits.pids), (Some(9), Some(8)));
        assert_eq!(team.filesystem, shipped.filesystem);
        assert_eq!(read(&files, "plain").unwrap().limits.files, shipped.limits.files);
    }

    #[test]
    fn a_chain_that_comes_back_to_itself_is_an_error_that_names_it() {
        let files = [("a", "extends = 'b'"), ("b", "extends = 'c'"), ("c", "extends = 'a'")];
        let error = read(&files, "a").unwrap_err().to_string();
        assert!(error.contains("/etc/policies.d/c.toml:2 (extends)"), "{error}");
        assert!(error.contains("a → b → c → a"), "{error}");
        let error = read(&[("a", "extends = 'a'")], "a").unwrap_err().to_string();
        assert!(error.contains("a → a"), "{error}");
    }

    #[test]
    fn a_base_that_is_not_there_is_an_error_that_names_what_there_is() {
        let files = [("a", "extends = 'nope'"), ("b", "")];
        let PolicyError::Base { base, known, .. } = read(&files, "a").unwrap_err() else {
            panic!("another error")
        };
        let expected: Vec<&str> = presets::NAMES.iter().copied().chain(["b"]).collect();
        assert_eq!((base.as_str(), known), ("nope", expected.iter().map(ToString::to_string).collect()));
    }

    #[test]
    fn an_error_of_a_base_names_the_bases_file() {
        let error = read(&[("a", "extends = 'b'"), ("b", "nonsense = 1")], "a").unwrap_err().to_string();
        assert!(error.starts_with("read policy /etc/policies.d/b.toml:2 (nonsense)"), "{error}");
    }

    #[test]
    fn a_name_that_is_not_the_files_is_refused() {
        let error = read(&[("a", "name = 'b'")], "a").unwrap_err().to_string();
        assert!(error.starts_with("read policy /etc/policies.d/a.toml:2 (name)"), "{error}");
        assert!(error.contains("`b`") && error.contains("`a`"), "{error}");
        assert!(read(&[("a", "name = 'a'")], "a").is_ok());
    }

    #[test]
    fn a_grant_of_everything_is_refused_by_its_key() {
        let error = read(&[("a", "[filesystem]\nrwx = ['/']")], "a").unwrap_err().to_string();
        assert!(error.starts_with("read policy /etc/policies.d/a.toml:3 (rwx): `/`"), "{error}");
        assert!(error.contains("unconfined"), "{error}");
    }

    #[test]
    fn a_grant_of_a_closed_place_is_refused_by_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(dir.join("sv/boards")).unwrap();
        let boundary = Boundary::around(&[dir.join("sv")]).unwrap();
        let check = |key: &str, path: &Path| {
            let text = format!("[filesystem]\n{key} = ['{}']", path.display());
            let shelf = shelf(&[("a", &text)]);
            Policy::from_source(&shelf["a"], &shelf).unwrap().check_closed(&shelf["a"], &boundary)
        };
        let error = check("ro", &dir.join("sv/boards")).unwrap_err().to_string();
        assert!(error.contains("a.toml:3 (ro)") && error.contains("lies in"), "{error}");
        assert!(check("rw", &dir).unwrap_err().to_string().contains("holds"));
        assert!(check("ro", &dir).is_ok(), "it is covered");
        assert!(check("rwx", &dir.join("other")).is_ok());
    }

    #[test]
    fn variables_that_the_supervisor_sets_are_refused_and_path_is_not() {
        for (text, name) in [
            ("[env]\nset = { HOME = '/x' }", "HOME"),
            ("[env]\npass = ['TMPDIR']", "TMPDIR"),
            ("[env]\nset = { SUPERVISOR_TOKEN = 'x' }", "SUPERVISOR_TOKEN"),
        ] {
            let error = read(&[("a", text)], "a").unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
        assert!(read(&[("a", "[env]\nset = { PATH = '/x' }")], "a").is_ok());
    }
}
