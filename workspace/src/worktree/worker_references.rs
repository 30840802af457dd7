//! Keeps the tags and stashes of a worker in the repository, under names of its task, and restores them for its next run.
//!
//! In git, all worktrees of a repository share tags and stashes. A worker's git writes them to a private directory of the
//! worktree instead, so that it can neither use nor move the tags and stashes of other workers. After the run they are
//! published as `refs/tags/task/<id>/<name>` and `refs/stashes/<id>/<number>`.
//!
//! Only the log of `refs/stash` names the older stashes. Each stash gets a reference here, without which `git gc` would
//! remove it. Branches outside of `task/` are refused, because commits on them would be lost without a report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use git2::{Oid, Reference};

use super::objects::{Fault, Objects};
use super::private::Private;
use super::{PREFIX, WorktreeError, beside};
use crate::git::Source;
use crate::links;
use crate::name::Name;

/// Limit on the kept tags of a task, and on its kept stashes.
const MOST: usize = 256;
/// Limit on the slashes in the name of a tag.
const DEPTH: usize = 16;
/// Message in the reflog of a kept reference.
const TOLD: &str = "supervisor: kept from the run";

/// Returns the prefix of a task's tags.
fn tags_of(id: &Name) -> String {
    format!("refs/tags/{PREFIX}/{id}/")
}

/// Returns the prefix of a task's stashes.
fn stashes_of(id: &Name) -> String {
    format!("refs/stashes/{id}/")
}

/// Removes the kept references of a task.
pub(crate) fn forget_references(source: &Source, id: &Name) -> Result<(), WorktreeError> {
    keep_only(source, id, &BTreeMap::new())
}

impl Private<'_> {
    fn own_tags(&self) -> PathBuf {
        self.dir().join("refs/tags")
    }

    fn stash(&self) -> PathBuf {
        self.dir().join("refs/stash")
    }

    fn stash_log(&self) -> PathBuf {
        self.dir().join("logs/refs/stash")
    }

    /// Writes the kept references of the task to the private directory in which the worker's git looks for them.
    pub(crate) fn provide_kept(&self, source: &Source) -> Result<(), WorktreeError> {
        let failed = |path: PathBuf| move |source| WorktreeError::Private { path, source };
        for (name, tag) in under(source, &tags_of(self.id))? {
            let path = self.own_tags().join(&name);
            let written = fs::create_dir_all(path.parent().unwrap_or(&path))
                .and_then(|()| fs::write(&path, format!("{tag}\n")));
            written.map_err(failed(path))?;
        }
        let mut stashes: Vec<(usize, Oid)> = under(source, &stashes_of(self.id))?
            .into_iter()
            .filter_map(|(name, stash)| Some((name.parse().ok()?, stash)))
            .collect();
        // The newest stash has the lowest number, and is the last entry of a log.
        stashes.sort_by(|a, b| b.cmp(a));
        let Some((_, newest)) = stashes.last() else { return Ok(()) };
        let mut log = Vec::new();
        let mut before = Oid::ZERO_SHA1;
        for (_, stash) in &stashes {
            let Ok(commit) = source.git().find_commit(*stash) else { continue };
            let summary = commit.summary().ok().flatten().unwrap_or_default().to_owned();
            let time = commit.time().seconds();
            log.push(format!(
                "{before} {stash} {PREFIX} <{PREFIX}@supervisor.invalid> {time} +0000\t{summary}\n"
            ));
            before = *stash;
        }
        fs::write(self.stash_log(), log.concat()).map_err(failed(self.stash_log()))?;
        fs::write(self.stash(), format!("{newest}\n")).map_err(failed(self.stash()))
    }

    /// Publishes the tags and stashes of the worker, and removes the published ones that the worker has removed.
    ///
    /// # Errors
    /// [`WorktreeError::KeptIncomplete`] if an object is missing; nothing is then changed.
    /// [`WorktreeError::KeptTooMany`] if there are more than the limit; the others are kept.
    pub(crate) fn keep(&self, source: &Source, objects: &mut Objects<'_>) -> Result<(), WorktreeError> {
        let mut tags = BTreeMap::new();
        let mut more = collect(&self.own_tags(), &tags_of(self.id), DEPTH, &mut tags);
        let packed = self.packed_references();
        for (name, tag) in &packed {
            let Some(name) = name.strip_prefix("refs/tags/").map(|name| tags_of(self.id) + name) else {
                continue;
            };
            // A tag in a file of its own hides a packed tag of the same name (gitrepository-layout(5)).
            if tags.contains_key(&name) || !Reference::is_valid_name(&name) {
                continue;
            }
            if tags.len() >= MOST {
                more += 1;
            } else {
                tags.insert(name, *tag);
            }
        }
        let stashes = self.stashes(packed.get("refs/stash").copied());
        let more = more + stashes.len().saturating_sub(MOST);
        let numbered = stashes.into_iter().take(MOST).enumerate();
        let mut references = tags;
        references.extend(numbered.map(|(n, stash)| (format!("{}{n}", stashes_of(self.id)), stash)));
        if let Some(Fault { object, why }) = references.values().find_map(|tip| objects.fault(*tip)) {
            let task = self.id.clone();
            return Err(WorktreeError::KeptIncomplete { task, object: object.to_string(), why });
        }
        keep_only(source, self.id, &references)?;
        if more > 0 {
            return Err(WorktreeError::KeptTooMany { task: self.id.clone(), most: MOST, more });
        }
        Ok(())
    }

    /// Returns the stashes, newest first. Only the log names the others. The newest is `packed` if it is not in a file of
    /// its own.
    fn stashes(&self, packed: Option<Oid>) -> Vec<Oid> {
        let loose = links::read(&self.stash()).and_then(|text| Oid::from_str(&text).ok());
        let Some(newest) = loose.or(packed) else { return Vec::new() };
        let text = links::read_whole(&self.stash_log()).unwrap_or_default();
        let mut all: Vec<Oid> =
            text.lines().filter_map(|line| Oid::from_str(line.split(' ').nth(1)?).ok()).collect();
        if all.last() != Some(&newest) {
            all.push(newest);
        }
        all.reverse();
        all
    }
}

/// Adds the tags in a directory to `tags`, by full name. Returns the number of tags beyond the limit.
fn collect(dir: &Path, prefix: &str, depth: usize, tags: &mut BTreeMap<String, Oid>) -> usize {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let mut more = 0;
    for entry in entries.flatten() {
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else { continue };
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && depth > 0 {
            more += collect(&entry.path(), &format!("{name}/"), depth - 1, tags);
        } else if !is_directory && Reference::is_valid_name(&name) {
            let tag = links::read(&entry.path()).and_then(|text| Oid::from_str(&text).ok());
            match tag {
                Some(_) if tags.len() >= MOST => more += 1,
                Some(tag) => drop(tags.insert(name, tag)),
                None => {}
            }
        }
    }
    more
}

/// Returns the references with a prefix, by the rest of their names.
fn under(source: &Source, prefix: &str) -> Result<BTreeMap<String, Oid>, WorktreeError> {
    let failed = |error| WorktreeError::Publish { path: source.common.clone(), source: error };
    let mut references = BTreeMap::new();
    for reference in source.git().references_glob(&format!("{prefix}*")).map_err(failed)? {
        let reference = reference.map_err(failed)?;
        let rest =
            std::str::from_utf8(reference.name_bytes()).ok().and_then(|name| name.strip_prefix(prefix));
        if let (Some(rest), Some(target)) = (rest, reference.target()) {
            references.insert(rest.to_owned(), target);
        }
    }
    Ok(references)
}

/// Sets the kept references of a task to the given ones, and removes all others.
fn keep_only(source: &Source, id: &Name, kept: &BTreeMap<String, Oid>) -> Result<(), WorktreeError> {
    let git = source.git();
    let failed = |error| WorktreeError::Publish { path: source.common.clone(), source: error };
    for prefix in [tags_of(id), stashes_of(id)] {
        for (rest, target) in under(source, &prefix)? {
            let name = format!("{prefix}{rest}");
            if kept.get(&name) != Some(&target) {
                let removed = || git.find_reference(&name).and_then(|mut found| found.delete());
                beside::patiently(removed).map_err(failed)?;
            }
        }
    }
    for (name, target) in kept {
        beside::patiently(|| git.reference(name, *target, true, TOLD)).map_err(failed)?;
    }
    Ok(())
}
