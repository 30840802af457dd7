//! Definitions from a directory of the configuration, one file per name: lanes, policies, profiles, tenants.
//!
//! An unusable file disables its own definition alone. A daemon that has read an earlier, usable version of the file keeps
//! that version.

mod defect;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::defect::{Defect, Effect, Subject};

/// Definitions by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definitions<T> {
    named: BTreeMap<String, Definition<T>>,
    /// Reason why the directory could not be listed; none if it was.
    unlisted: Option<Defect>,
}

/// State of the definition of one name.
#[derive(Clone, Debug)]
enum Definition<T> {
    Good(T),
    /// Last usable version; the file now has this defect.
    Kept(T, Defect),
    Disabled(Defect),
}

/// Result of a lookup.
#[derive(Debug)]
pub enum Lookup<'a, T> {
    Usable(&'a T),
    /// The file of the definition is unusable.
    Disabled(&'a Defect),
    /// No definition has this name.
    Absent,
}

impl<T> Definitions<T> {
    /// Makes the built-in definitions.
    pub(crate) fn builtin(named: impl IntoIterator<Item = (String, Result<T, Defect>)>) -> Self {
        let mut definitions = Definitions { named: BTreeMap::new(), unlisted: None };
        for (name, read) in named {
            definitions.define(&name, read);
        }
        definitions
    }

    /// Defines a name. Replaces an earlier definition, such as a built-in one.
    pub(crate) fn define(&mut self, name: &str, read: Result<T, Defect>) {
        let definition = match read {
            Ok(value) => Definition::Good(value),
            Err(defect) => Definition::Disabled(defect),
        };
        self.named.insert(name.to_owned(), definition);
    }

    /// Records that the directory could not be listed.
    pub(crate) fn not_listed(&mut self, defect: Defect) {
        self.unlisted = Some(defect);
    }

    pub(crate) fn find(&self, name: &str) -> Lookup<'_, T> {
        match self.named.get(name) {
            Some(Definition::Good(value) | Definition::Kept(value, _)) => Lookup::Usable(value),
            Some(Definition::Disabled(defect)) => Lookup::Disabled(defect),
            None => Lookup::Absent,
        }
    }

    /// Returns the reason why a name is unusable, or why it is not known if the name is defined.
    pub(crate) fn defect(&self, name: &str) -> Option<&Defect> {
        match self.find(name) {
            Lookup::Usable(_) => None,
            Lookup::Disabled(defect) => Some(defect),
            Lookup::Absent => self.unlisted.as_ref().filter(|defect| defect.effect == Effect::Disabled),
        }
    }

    /// Returns all names, including names of unusable definitions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the usable definitions by name.
    pub(crate) fn usable(&self) -> impl Iterator<Item = (&str, &T)> {
        self.named.iter().filter_map(|(name, definition)| match definition {
            Definition::Good(value) | Definition::Kept(value, _) => Some((name.as_str(), value)),
            Definition::Disabled(_) => None,
        })
    }

    /// Returns all defects.
    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        let of_files = self.named.values().filter_map(|definition| match definition {
            Definition::Kept(_, defect) | Definition::Disabled(defect) => Some(defect),
            Definition::Good(_) => None,
        });
        self.unlisted.iter().chain(of_files)
    }
}

impl<T: Clone> Definitions<T> {
    /// Keeps the usable definitions of `before` whose files now have defects. If the directory cannot be listed, keeps all of
    /// them.
    pub(crate) fn keep(&mut self, before: &Self) {
        for (name, value) in before.usable() {
            match self.named.get(name) {
                Some(Definition::Disabled(defect)) => {
                    let defect = Defect { effect: Effect::KeptLast, ..defect.clone() };
                    self.named.insert(name.to_owned(), Definition::Kept(value.clone(), defect));
                }
                None if self.unlisted.is_some() => {
                    self.named.insert(name.to_owned(), Definition::Good(value.clone()));
                }
                Some(_) | None => {}
            }
        }
        if let Some(defect) = &mut self.unlisted {
            defect.effect = Effect::KeptLast;
        }
    }
}

/// Reads each file with the extension, and passes its name without the extension, its path and its text to `take`.
///
/// # Errors
/// The directory cannot be listed. A missing directory counts as empty.
pub fn read_all(
    dir: &Path,
    extension: &str,
    subject: fn(String) -> Subject,
    mut take: impl FnMut(&str, &Path, Result<String, Defect>),
) -> Result<(), Defect> {
    let file_of = |path: &Path| {
        let has_extension = path.extension().and_then(|s| s.to_str()) == Some(extension);
        let stem = path.file_stem().filter(|_| has_extension)?.to_str()?;
        Some((stem.to_owned(), path.to_owned()))
    };
    read_each(dir, &file_of, subject, &mut take)
}

/// Reads the file of each directory entry for which `file_of` returns a name and a path, and passes name, path and text to
/// `take`.
///
/// # Errors
/// The directory cannot be listed. A missing directory counts as empty.
pub(crate) fn read_each(
    dir: &Path,
    file_of: &dyn Fn(&Path) -> Option<(String, PathBuf)>,
    subject: fn(String) -> Subject,
    mut take: impl FnMut(&str, &Path, Result<String, Defect>),
) -> Result<(), Defect> {
    for (name, path) in files_of(dir, file_of)? {
        let text =
            super::settings::read(&path).map_err(|e| Defect::unreadable(subject(name.clone()), &path, &e));
        take(&name, &path, text);
    }
    Ok(())
}

/// Returns the names and paths that `file_of` gives for the entries of a directory, in the order of the entries.
///
/// # Errors
/// The directory cannot be listed. A missing directory counts as empty.
pub(crate) fn files_of(
    dir: &Path,
    file_of: &dyn Fn(&Path) -> Option<(String, PathBuf)>,
) -> Result<Vec<(String, PathBuf)>, Defect> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = std::fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths)
    };
    match list() {
        Ok(paths) => Ok(paths.iter().filter_map(|path| file_of(path)).collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Defect::new(Subject::Directory, dir, format!("it cannot be listed: {e}"))),
    }
}
