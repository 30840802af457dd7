//! Definitions from a directory of the configuration, one file per name: lanes, policies, profiles, skills, tenants,
//! schedules, chats and plugins.
//!
//! An unusable file disables its own definition alone. A daemon that has read an earlier, usable version of the file keeps
//! that version.

mod defect;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::settings;
use base::paths::Root;

pub use self::defect::{Defect, Effect, Subject};

/// A definition in a file of its own. The file or its directory has the name of the definition.
pub trait FileDefinition: Clone {
    const SUBJECT: fn(String) -> Subject;
    /// Limit on the files of the directory.
    const MOST: Option<FileLimit> = None;

    /// Returns the directory of the files.
    fn directory(root: &Root) -> PathBuf;

    /// Returns the definitions that need no file.
    fn builtin() -> Vec<(String, Result<Self, Defect>)> {
        Vec::new()
    }

    /// Returns the name and the file of a directory entry that holds a definition.
    fn file_of(entry: &Path) -> Option<NamedFile> {
        with_ending(entry, &["toml"])
    }

    /// Refuses a name or a directory. The file is not read yet.
    fn check(_name: &str, _path: &Path) -> Result<(), String> {
        Ok(())
    }

    /// Parses the text of a file.
    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect>;

    /// Reads and parses a file.
    fn from_file(name: &str, path: &Path) -> Result<Self, Defect> {
        let text = settings::read(path)
            .map_err(|e| Defect::unreadable((Self::SUBJECT)(name.to_owned()), path, &e))?;
        Self::from_text(name, path, &text)
    }
}

/// Limit on the files of a directory.
#[derive(Clone, Copy, Debug)]
pub struct FileLimit {
    pub files: usize,
    /// Plural noun of the definitions.
    pub noun: &'static str,
}

/// A file, and the name that it defines.
#[derive(Debug)]
pub struct NamedFile {
    pub name: String,
    pub path: PathBuf,
}

/// Definitions by name.
#[derive(Clone, Debug)]
pub struct Definitions<T> {
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

/// Definition that a name stands for, if there is one.
#[derive(Debug)]
pub enum Lookup<'a, T> {
    Usable(&'a T),
    /// The file of the definition is unusable.
    Disabled(&'a Defect),
    /// No definition has this name.
    Absent,
}

impl<T> Default for Definitions<T> {
    fn default() -> Self {
        Definitions { named: BTreeMap::new(), unlisted: None }
    }
}

impl<T: FileDefinition> Definitions<T> {
    /// Loads the built-in definitions and the files of the configuration.
    pub fn load(root: &Root) -> Self {
        Definitions::read(&T::directory(root))
    }

    /// Loads the files again. Definitions that are defective now and were good in `before` keep their last good
    /// version.
    pub fn reload(root: &Root, before: &Self) -> Self {
        let mut now = Definitions::load(root);
        now.keep(before);
        now
    }

    /// Makes the built-in definitions, and reads the files of a directory.
    pub(crate) fn read(dir: &Path) -> Self {
        let mut definitions = Definitions::builtin(T::builtin());
        let files = match files_of(dir, T::file_of) {
            Ok(files) => files,
            Err(defect) => {
                definitions.not_listed(defect);
                return definitions;
            }
        };
        let mut seen = BTreeSet::new();
        for (position, NamedFile { name, path }) in files.into_iter().enumerate() {
            let subject = || (T::SUBJECT)(name.clone());
            let refused = |why: String| Err(Defect::new(subject(), &path, why));
            let read = match T::MOST {
                Some(limit) if position >= limit.files => {
                    refused(format!("there are more than {} {}", limit.files, limit.noun))
                }
                _ if !seen.insert(name.clone()) => {
                    refused(format!("another file defines {} as well; remove one of them", subject()))
                }
                _ => T::check(&name, &path).map_or_else(refused, |()| T::from_file(&name, &path)),
            };
            definitions.define(&name, read);
        }
        definitions
    }
}

impl<T> Definitions<T> {
    /// Makes the built-in definitions.
    pub(crate) fn builtin(named: impl IntoIterator<Item = (String, Result<T, Defect>)>) -> Self {
        let mut definitions = Definitions::default();
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

    pub fn find<N: AsRef<str> + ?Sized>(&self, name: &N) -> Lookup<'_, T> {
        match self.named.get(name.as_ref()) {
            Some(Definition::Good(value) | Definition::Kept(value, _)) => Lookup::Usable(value),
            Some(Definition::Disabled(defect)) => Lookup::Disabled(defect),
            None => Lookup::Absent,
        }
    }

    /// Returns the definition of a name if it is usable.
    pub fn get<N: AsRef<str> + ?Sized>(&self, name: &N) -> Option<&T> {
        match self.find(name) {
            Lookup::Usable(value) => Some(value),
            Lookup::Disabled(_) | Lookup::Absent => None,
        }
    }

    /// Returns true if a name is defined, usable or not.
    pub fn has<N: AsRef<str> + ?Sized>(&self, name: &N) -> bool {
        self.named.contains_key(name.as_ref())
    }

    /// Returns true if the directory could be listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.unlisted.is_none()
    }

    /// Returns the names of the unusable definitions.
    pub(crate) fn disabled(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| matches!(self.find(name), Lookup::Disabled(_)))
    }

    /// Returns all definitions by name, including unusable ones.
    pub fn all(&self) -> impl Iterator<Item = (&str, Lookup<'_, T>)> {
        self.names().map(|name| (name, self.find(name)))
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
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the usable definitions by name.
    pub fn usable(&self) -> impl Iterator<Item = (&str, &T)> {
        self.named.iter().filter_map(|(name, definition)| match definition {
            Definition::Good(value) | Definition::Kept(value, _) => Some((name.as_str(), value)),
            Definition::Disabled(_) => None,
        })
    }

    /// Returns all defects.
    pub fn defects(&self) -> impl Iterator<Item = &Defect> {
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

/// Returns the name and the path of a file if its name has one of the endings.
pub(crate) fn with_ending(path: &Path, endings: &[&str]) -> Option<NamedFile> {
    let ending = path.extension()?.to_str()?;
    let name = path.file_stem().filter(|_| endings.contains(&ending))?.to_str()?;
    Some(NamedFile { name: name.to_owned(), path: path.to_owned() })
}

/// Returns the files that `file_of` finds for the entries of a directory, in the order of the entries.
///
/// # Errors
/// The directory cannot be listed. A missing directory counts as empty.
pub(crate) fn files_of(
    dir: &Path,
    file_of: impl Fn(&Path) -> Option<NamedFile>,
) -> Result<Vec<NamedFile>, Defect> {
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
