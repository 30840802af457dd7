//! The index of a worktree as a run left it. `git gc` and `repack` of the repository read it, and fail at a missing
//! object in it.
//!
//! In addition to its entries, an index has extensions (gitformat-index(5)), some of which name objects as well.

use std::collections::HashSet;
use std::path::Path;

use fs_err as fs;
use git2::{Index, ObjectType, Odb, Oid, TreeWalkMode, TreeWalkResult};

use crate::git::Source;
use crate::links;

/// Mode of an entry that stands for a submodule.
pub(super) const SUBMODULE: u32 = 0o160_000;
/// Length of an object id, and of the digest at the end of the file, in bytes.
const NAME: usize = 20;
/// Length of an entry before its name, without the second flags, in bytes.
const FIXED: usize = 62;
/// Flag of an entry that has second flags.
const EXTENDED: u16 = 0x4000;

/// Leaves only ids of objects of the repository in an index. Returns true if the index had to be removed.
///
/// # Errors
/// Fails if the file cannot be removed or written.
pub(super) fn settle(path: &Path, source: &Source, branch: &str) -> std::io::Result<bool> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(false) };
    if meta.is_dir() {
        return fs::remove_dir_all(path).map(|()| true);
    }
    let is_settled = || -> Option<()> {
        let odb = source.git().odb().ok()?;
        // An index that libgit2 cannot read, such as a split index, is removed.
        let mut index = Index::open(path).ok()?;
        let known = blobs(source, branch).unwrap_or_default();
        let is_blob = |id: Oid| id.is_zero() || known.contains(&id) || is(&odb, id, ObjectType::Blob);
        if !index.iter().all(|entry| entry.mode == SUBMODULE || is_blob(entry.id)) {
            return None;
        }
        let bytes = links::read_bytes(path)?;
        if are_extensions_good(&bytes, &odb) == Some(true) {
            return Some(());
        }
        // The index is written without extensions; git makes them again.
        let entries: Vec<_> = index.iter().collect();
        index.clear().ok()?;
        entries.iter().try_for_each(|entry| index.add(entry)).ok()?;
        index.write().ok()
    };
    if is_settled().is_some() {
        return Ok(false);
    }
    fs::remove_file(path).map(|()| true)
}

/// Returns the files of a branch. They exist, and most entries of an index are among them.
fn blobs(source: &Source, branch: &str) -> Option<HashSet<Oid>> {
    let git = source.git();
    let tree = git.find_commit(source.tip(branch).ok()??).ok()?.tree().ok()?;
    let mut names = HashSet::new();
    let walked = tree.walk(TreeWalkMode::PreOrder, |_, entry| {
        if entry.kind() == Some(ObjectType::Blob) {
            names.insert(entry.id());
        }
        TreeWalkResult::Ok
    });
    walked.ok().map(|()| names)
}

fn is(odb: &Odb<'_>, id: Oid, kind: ObjectType) -> bool {
    odb.read_header(id).is_ok_and(|(_, found)| found == kind)
}

/// Returns true if git finds the objects that the extensions of an index name; none if an extension is malformed.
fn are_extensions_good(bytes: &[u8], odb: &Odb<'_>) -> Option<bool> {
    let starts = starts(bytes)?;
    let (entries, end) = (&starts[..starts.len() - 1], *starts.last()?);
    let mut rest = bytes.get(end..bytes.len().checked_sub(NAME)?)?;
    let mut is_good = true;
    while !rest.is_empty() {
        let (name, after) = rest.split_at_checked(4)?;
        let (length, after) = number(after)?;
        let (content, after) = after.split_at_checked(length)?;
        is_good &= match name {
            b"TREE" => trees(content)?.into_iter().all(|id| is(odb, id, ObjectType::Tree)),
            b"REUC" => resolved(content)?.into_iter().all(|id| is(odb, id, ObjectType::Blob)),
            // Positions in the file, at which git begins to read.
            b"EOIE" => number(content)?.0 == end,
            b"IEOT" => are_blocks(content, entries)?,
            b"UNTR" => true,
            _ => false,
        };
        rest = after;
    }
    Some(is_good)
}

/// Returns the position of each entry, and of the end of all entries.
fn starts(bytes: &[u8]) -> Option<Vec<usize>> {
    let (version, rest) = number(bytes.strip_prefix(b"DIRC")?)?;
    let (count, _) = number(rest)?;
    let mut at = 12;
    let mut starts = vec![at];
    for _ in 0..count {
        let entry = bytes.get(at..)?;
        let flags = u16::from_be_bytes(entry.get(FIXED - 2..FIXED)?.try_into().ok()?);
        let mut name = if flags & EXTENDED == 0 { FIXED } else { FIXED + 2 };
        if version == 4 {
            // The number of bytes that this name does not share with the name before it, seven bits in each byte.
            name += entry.get(name..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
        }
        let end = name + entry.get(name..)?.iter().position(|byte| *byte == 0)?;
        at += if version == 4 { end + 1 } else { (end + 8) / 8 * 8 };
        starts.push(at);
    }
    Some(starts)
}

/// Returns the trees of the cached tree extension.
fn trees(mut content: &[u8]) -> Option<Vec<Oid>> {
    let mut ids = Vec::new();
    while !content.is_empty() {
        let (_, rest) = until(content, 0)?;
        let (entries, rest) = until(rest, b' ')?;
        let (_, rest) = until(rest, b'\n')?;
        content = rest;
        // A tree with -1 entries is not written.
        if !entries.starts_with(b"-") {
            let (id, rest) = content.split_at_checked(NAME)?;
            ids.push(Oid::from_bytes(id).ok()?);
            content = rest;
        }
    }
    Some(ids)
}

/// Returns the files of resolved conflicts.
fn resolved(mut content: &[u8]) -> Option<Vec<Oid>> {
    let mut ids = Vec::new();
    while !content.is_empty() {
        let (_, mut rest) = until(content, 0)?;
        let mut stages = 0;
        for _ in 0..3 {
            let (mode, after) = until(rest, 0)?;
            stages += usize::from(mode != b"0");
            rest = after;
        }
        for _ in 0..stages {
            let (id, after) = rest.split_at_checked(NAME)?;
            ids.push(Oid::from_bytes(id).ok()?);
            rest = after;
        }
        content = rest;
    }
    Some(ids)
}

/// Returns true if each block of a table begins at an entry, and the blocks have all entries.
fn are_blocks(content: &[u8], entries: &[usize]) -> Option<bool> {
    let (_, mut rest) = number(content)?;
    let mut next = 0;
    let mut is_right = true;
    while !rest.is_empty() {
        let (place, after) = number(rest)?;
        let (count, after) = number(after)?;
        is_right &= entries.get(next) == Some(&place);
        next = next.checked_add(count)?;
        rest = after;
    }
    Some(is_right && next == entries.len())
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (word, rest) = bytes.split_at_checked(4)?;
    Some((usize::try_from(u32::from_be_bytes(word.try_into().ok()?)).ok()?, rest))
}

fn until(bytes: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == end)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Base;
    use crate::testing::Fixture;

    /// A repository with files and a directory, and its index.
    fn fixture() -> (Fixture, std::path::PathBuf) {
        let fixture = Fixture::new();
        for name in ["a", "d/b", "d/c/long-name-of-a-file", "e"] {
            let path = fixture.root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        fixture.commit(&fixture.root, "files");
        let index = fixture.root.join(".git/index");
        (fixture, index)
    }

    fn settled(fixture: &Fixture, index: &Path) -> bool {
        let source = Source::open(&fixture.root).unwrap();
        !settle(index, &source, "main").unwrap()
    }

    #[test]
    fn an_index_of_git_stays_as_it_is_in_every_version() {
        for (version, threads) in [("2", "1"), ("3", "1"), ("4", "1"), ("4", "2")] {
            let (fixture, index) = fixture();
            fixture.git(&["config", "index.threads", threads]);
            // Version 3 has second flags.
            fs::write(fixture.root.join("later"), "").unwrap();
            fixture.git(&["add", "--intent-to-add", "later"]);
            fixture.git(&["update-index", "--index-version", version]);
            fixture.git(&["update-index", "--untracked-cache"]);
            fixture.git(&["write-tree"]);
            let before = fs::read(&index).unwrap();
            assert!(settled(&fixture, &index), "{version}");
            assert_eq!(fs::read(&index).unwrap(), before, "{version}");
        }
    }

    #[test]
    fn the_files_of_a_resolved_conflict_are_kept() {
        let (fixture, index) = fixture();
        fixture.git(&["switch", "-qc", "other"]);
        fs::write(fixture.root.join("a"), "other").unwrap();
        fixture.git(&["commit", "-qam", "other"]);
        fixture.git(&["switch", "-q", "main"]);
        fs::write(fixture.root.join("a"), "main").unwrap();
        fixture.git(&["commit", "-qam", "main"]);
        let merge = fixture.command(&fixture.root).args(["merge", "other"]).output().unwrap();
        assert!(!merge.status.success());
        assert!(settled(&fixture, &index), "a conflict");
        fixture.git(&["add", "a"]);
        let before = fs::read(&index).unwrap();
        assert!(before.windows(4).any(|part| part == b"REUC"));
        assert!(settled(&fixture, &index));
        assert_eq!(fs::read(&index).unwrap(), before);
    }

    #[test]
    fn an_extension_that_names_what_is_not_there_is_left_out() {
        let (fixture, index) = fixture();
        fixture.git(&["write-tree"]);
        let tree = fixture.git(&["rev-parse", "HEAD^{tree}"]);
        let mut bytes = fs::read(&index).unwrap();
        let id = hex::decode(&tree).unwrap();
        let at = bytes.windows(NAME).position(|part| part == id).unwrap();
        bytes[at] ^= 1;
        let length = bytes.len() - NAME;
        let source = Source::open(&fixture.root).unwrap();
        let odb = source.git().odb().unwrap();
        assert_eq!(are_extensions_good(&bytes, &odb), Some(false));
        // The digest at the end, as git computes it.
        fs::write(&index, &bytes[..length]).unwrap();
        let digest = std::process::Command::new("sha1sum").arg(&index).output().unwrap().stdout;
        bytes.truncate(length);
        bytes.extend(hex::decode(&digest[..2 * NAME]).unwrap());
        fs::write(&index, &bytes).unwrap();
        assert!(settled(&fixture, &index));
        assert_eq!(fixture.git(&["status", "--porcelain"]), "");
        for args in [&["fsck", "--full"][..], &["repack", "-adq"], &["gc", "-q", "--prune=now"]] {
            fixture.git(args);
        }
    }

    #[test]
    fn an_index_with_a_tree_in_the_place_of_a_file_and_a_directory_are_removed() {
        let (fixture, index) = fixture();
        let tree = fixture.git(&["rev-parse", "HEAD^{tree}"]);
        fixture.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{tree},x")]);
        assert!(!settled(&fixture, &index));
        assert!(!index.exists());
        fs::create_dir(&index).unwrap();
        fs::write(index.join("x"), "").unwrap();
        assert!(!settled(&fixture, &index));
        assert!(!index.exists() && settled(&fixture, &index));
        fixture.worktree("t_1").prepare(&Base::Head, None).unwrap();
    }
}
