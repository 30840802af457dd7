//! Files that git changes when it reads or writes them, by a program or an encoding (gitattributes(5), `filter` and
//! `working-tree-encoding`). A checkout does neither, so these files are as the repository stores them.
//!
//! The contents of filtered files are not fetched: they would take the space of all large files for each task, and most
//! tasks need none. If a filter is required and cannot run, git refuses changed files by name, so a repository with
//! encrypted files gets no clear text.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, AttrValue, Index, IndexTime, Repository};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

/// Limit on the entries of an index that are examined.
const MOST: usize = 500_000;
/// Limit on the size of a file of attributes, in bytes.
const LONGEST: usize = 1 << 20;
/// Age of an unfiltered file, in seconds. Git compares a file with its object unless the file is older than the index,
/// and would start the filter for that.
const AGE: i64 = 10;
/// Name of the filter of Git LFS.
const LFS: &str = "lfs";
/// Directories in the `PATH` of every run.
const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Attributes that change the content of files between the repository and a working tree. libgit2 knows neither.
const ATTRIBUTES: [&str; 2] = [FILTER, "working-tree-encoding"];
/// Attribute that names a filter.
const FILTER: &str = "filter";

/// Files of a worktree that git would have written in another form, by the attribute and its value.
#[derive(Debug, Default)]
pub(super) struct Filtered(BTreeMap<(&'static str, String), Vec<PathBuf>>);

impl Filtered {
    /// Finds the files in the index of a working tree.
    pub(super) fn find(git: &Repository) -> Result<Self, git2::Error> {
        let index = git.index()?;
        let mut filters = Self::default();
        if !names_an_attribute(git, &index) {
            return Ok(filters);
        }
        for entry in index.iter().take(MOST) {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            for name in ATTRIBUTES {
                let attribute = git.get_attr(path, name, AttrCheckFlags::INDEX_ONLY);
                if let Ok(AttrValue::String(value)) = attribute.map(AttrValue::from_string) {
                    filters.0.entry((name, value.to_owned())).or_default().push(path.to_owned());
                }
            }
        }
        Ok(filters)
    }

    pub(super) fn has_lfs(&self) -> bool {
        self.0.keys().any(|(name, value)| *name == FILTER && value == LFS)
    }

    /// Makes the files of a new working tree older than its index, so that git starts no filter for unchanged files.
    pub(super) fn age(&self, git: &Repository) -> Result<(), git2::Error> {
        let Some(tree) = git.workdir().filter(|_| !self.0.is_empty()) else { return Ok(()) };
        let mut index = git.index()?;
        for path in self.0.values().flatten() {
            let Some(mut entry) = index.get_path(path, 0) else { continue };
            let seconds = i64::from(entry.mtime.seconds()).saturating_sub(AGE);
            let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            if utimensat(CWD, tree.join(path), &times, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                continue;
            }
            let Ok(meta) = tree.join(path).symlink_metadata() else { continue };
            let part = |seconds: i64| i32::try_from(seconds).unwrap_or_default();
            entry.mtime = IndexTime::new(part(seconds), 0);
            entry.ctime =
                IndexTime::new(part(meta.ctime()), u32::try_from(meta.ctime_nsec()).unwrap_or_default());
            index.add(&entry)?;
        }
        index.write()
    }

    /// Returns the settings by which git in a run finds Git LFS, if the repository leaves them to the settings of its
    /// user.
    pub(super) fn settings(&self, git: &Repository) -> Vec<(&'static str, &'static str)> {
        let is_known =
            git.config().and_then(|all| all.open_level(git2::ConfigLevel::Local)).is_ok_and(|own| {
                own.get_entry("filter.lfs.clean").is_ok() || own.get_entry("filter.lfs.process").is_ok()
            });
        let is_installed = PATH.iter().any(|dir| Path::new(dir).join("git-lfs").exists());
        if is_known || !is_installed || !self.has_lfs() {
            return Vec::new();
        }
        vec![
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("filter.lfs.smudge", "git-lfs smudge -- %f"),
            ("filter.lfs.process", "git-lfs filter-process"),
            ("filter.lfs.required", "true"),
        ]
    }

    /// Returns a sentence about the files of each filter, for the worker and for people.
    pub(super) fn notes(&self) -> Vec<String> {
        let described = |((name, value), paths): (&(&str, String), &Vec<PathBuf>)| {
            let first = paths.first().map(|path| plain(&path.display().to_string())).unwrap_or_default();
            let (files, is, has) = match paths.len() {
                1 => (format!("The file `{first}`"), "is a pointer", "has"),
                count => (format!("{count} files (the first is `{first}`)"), "are pointers", "have"),
            };
            if *name == FILTER && value == LFS {
                return format!(
                    "{files} {is} of Git LFS, a few lines of text in place of the content. `git lfs checkout` replaces pointers by the \
                     contents that the repository has here; an unchanged pointer can be committed as it is."
                );
            }
            format!(
                "{files} {has} the attribute `{name}={}`, which was not applied at the checkout: the content is as the repository stores \
                 it, and git applies the attribute to what is changed.",
                plain(value)
            )
        };
        self.0.iter().map(described).collect()
    }
}

/// Returns a name of the repository in a form for sentences, without characters that could end its quotes.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && *c != '`').take(200).collect()
}

/// Returns true if a file of attributes names one of these attributes. A question to git about each file of the tree
/// would take long.
fn names_an_attribute(git: &Repository, index: &Index) -> bool {
    let names = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        ATTRIBUTES.iter().any(|name| text.contains(&format!("{name}=")))
    };
    let tracked = index.iter().take(MOST).filter(|entry| {
        entry.path.strip_suffix(b".gitattributes").is_some_and(|dir| dir.is_empty() || dir.ends_with(b"/"))
    });
    let info = git.commondir().join("info/attributes");
    crate::links::read_whole(&info).is_some_and(|text| names(text.as_bytes()))
        || tracked
            .filter_map(|entry| git.find_blob(entry.id).ok())
            .any(|blob| blob.size() <= LONGEST && names(blob.content()))
}
