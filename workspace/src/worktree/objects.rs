//! Objects that a run made, examined one by one before they reach the repository.
//!
//! Git fails at a broken object in the repository, even if no reference leads to it: `gc` and `repack` fail at a tree
//! with a file in place of a directory, `fsck` fails at a commit without an author. The id of an object is the digest
//! of its content, which does not exclude such defects.
//!
//! See decision 0269.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use git2::{ObjectType, Odb, Oid};

use super::WorktreeError;
use crate::git::Source;

/// Defect: git cannot read the object.
const UNREADABLE: &str = "cannot be read";
/// Defect: the object does not exist.
const MISSING: &str = "is missing";
/// Defect: the object is malformed for its kind.
const MALFORMED: &str = "has not the form that git gives to such an object";
/// Defect: the object names an object of another kind, such as a tree in place of a file.
const MISNAMED: &str = "names an object of another kind";
/// Defect: the tree leads out of a working tree.
const HOSTILE: &str = "has an entry that git refuses to check out";
/// Length of an object id, in bytes.
const NAME: usize = 20;

/// Object that keeps a reference from being taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) object: Oid,
    /// Defect as the rest of a sentence about the object.
    pub(crate) why: &'static str,
}

/// Objects of a run. The repository has all complete objects among them.
pub(crate) struct Objects<'a> {
    own: Odb<'static>,
    shared: Odb<'a>,
    names: HashSet<Oid>,
    broken: HashMap<Oid, &'static str>,
    /// Faults of the examined objects; none for a complete object.
    looked: HashMap<Oid, Option<Fault>>,
    /// Complete objects of the run, each after the objects in it.
    whole: Vec<Oid>,
}

impl<'a> Objects<'a> {
    /// Copies the objects of a directory into the repository, except broken and incomplete objects, because the objects
    /// of the repository count as complete in every later run.
    ///
    /// # Errors
    /// [`WorktreeError::Store`] if the repository cannot be written.
    pub(super) fn take(dir: &Path, source: &'a Source) -> Result<Self, WorktreeError> {
        let failed = |source| WorktreeError::Publish { path: dir.to_owned(), source };
        let not_stored = |error| WorktreeError::Store { path: source.common.join("objects"), source: error };
        let private_objects = Odb::new().map_err(failed)?;
        private_objects.add_disk_alternate(&dir.to_string_lossy()).map_err(failed)?;
        let mut names = HashSet::new();
        private_objects
            .foreach(|name| {
                names.insert(*name);
                true
            })
            .map_err(failed)?;
        let shared = source.git().odb().map_err(not_stored)?;
        let (mut broken, mut naming) = (HashMap::new(), HashSet::new());
        let mut kinds = Kinds { own: &private_objects, shared: &shared, found: HashMap::new() };
        for name in &names {
            let Ok(object) = private_objects.read(*name) else {
                broken.insert(*name, UNREADABLE);
                continue;
            };
            match kinds.examine(object.kind(), object.data()) {
                // A blob names no other objects, so it is complete.
                Ok(()) if object.kind() == ObjectType::Blob => {
                    shared.write(object.kind(), object.data()).map_err(not_stored)?;
                }
                Ok(()) => drop(naming.insert(*name)),
                Err(why) => drop(broken.insert(*name, why)),
            }
        }
        let mut objects =
            Self { own: private_objects, shared, names, broken, looked: HashMap::new(), whole: Vec::new() };
        for name in &naming {
            objects.fault(*name);
        }
        // The order matters: after an interruption, the repository has no object without the objects that it names.
        for name in objects.whole.iter().filter(|name| naming.contains(name)) {
            let object = objects.own.read(*name).map_err(failed)?;
            objects.shared.write(object.kind(), object.data()).map_err(not_stored)?;
        }
        Ok(objects)
    }

    /// Returns the reason why an object, or an object that it names, is not complete in the repository; none if all
    /// are. Objects that the repository had before count as complete.
    pub(crate) fn fault(&mut self, tip: Oid) -> Option<Fault> {
        // Path from the tip to the present object. Each object on it has the ids that are still to be followed. A
        // recursion would overflow the stack on a long history.
        let mut way = vec![(tip, vec![tip])];
        while let Some((at, left)) = way.last_mut() {
            let Some(next) = left.pop() else {
                let at = *at;
                way.pop();
                if self.looked.insert(at, None).is_none() && self.names.contains(&at) {
                    self.whole.push(at);
                }
                continue;
            };
            let found = match self.looked.get(&next) {
                Some(known) => *known,
                None if self.names.contains(&next) => match self.named_by(next) {
                    Ok(named) => {
                        way.push((next, named));
                        None
                    }
                    Err(why) => Some(Fault { object: next, why }),
                },
                None => {
                    let is_there = self.shared.exists(next);
                    let fault = (!is_there).then_some(Fault { object: next, why: MISSING });
                    self.looked.insert(next, fault);
                    fault
                }
            };
            if let Some(fault) = found {
                // Each object on the path names the next, so all of them have the fault.
                self.looked.extend(way.into_iter().map(|(id, _)| (id, Some(fault))));
                return Some(fault);
            }
        }
        None
    }

    fn named_by(&self, id: Oid) -> Result<Vec<Oid>, &'static str> {
        if let Some(why) = self.broken.get(&id) {
            return Err(why);
        }
        // A blob names no other objects, and may be large.
        if self.own.read_header(id).is_ok_and(|(_, kind)| kind == ObjectType::Blob) {
            return Ok(Vec::new());
        }
        let object = self.own.read(id).map_err(|_| UNREADABLE)?;
        let parts = parts(object.kind(), object.data())?;
        Ok(parts.into_iter().map(|part| part.id).collect())
    }
}

/// Kinds of objects that other objects name.
struct Kinds<'a> {
    own: &'a Odb<'static>,
    shared: &'a Odb<'a>,
    found: HashMap<Oid, Option<ObjectType>>,
}

impl Kinds<'_> {
    /// Refuses an object at which git fails.
    fn examine(&mut self, kind: ObjectType, data: &[u8]) -> Result<(), &'static str> {
        let parts = parts(kind, data)?;
        let is_right = parts.iter().all(|part| self.kind_of(part.id).is_none_or(|kind| kind == part.kind));
        if is_right { Ok(()) } else { Err(MISNAMED) }
    }

    fn kind_of(&mut self, id: Oid) -> Option<ObjectType> {
        let (own, shared) = (self.own, self.shared);
        let header = || own.read_header(id).or_else(|_| shared.read_header(id));
        *self.found.entry(id).or_insert_with(|| header().ok().map(|(_, kind)| kind))
    }
}

/// Object that another object names.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    id: Oid,
    kind: ObjectType,
}

/// Returns the ids in an object, or its defect. The commit of a submodule is in another repository, and left out.
fn parts(kind: ObjectType, data: &[u8]) -> Result<Vec<Part>, &'static str> {
    match kind {
        ObjectType::Commit => of_commit(data).ok_or(MALFORMED),
        ObjectType::Tag => of_tag(data).ok_or(MALFORMED),
        ObjectType::Tree => of_tree(data),
        ObjectType::Blob | ObjectType::Any => Ok(Vec::new()),
    }
}

fn of_commit(data: &[u8]) -> Option<Vec<Part>> {
    let (tree, mut rest) = header(data, b"tree ")?;
    let mut parts = vec![Part { id: tree, kind: ObjectType::Tree }];
    while let Some((id, after)) = header(rest, b"parent ") {
        parts.push(Part { id, kind: ObjectType::Commit });
        rest = after;
    }
    let after = rest.strip_prefix(b"author ")?;
    let end = after.iter().position(|byte| *byte == b'\n')?;
    after[end..].starts_with(b"\ncommitter ").then_some(parts)
}

fn of_tag(data: &[u8]) -> Option<Vec<Part>> {
    let (id, rest) = header(data, b"object ")?;
    let rest = rest.strip_prefix(b"type ")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let kind = ObjectType::from_str(std::str::from_utf8(&rest[..end]).ok()?)?;
    rest[end..].starts_with(b"\ntag ").then(|| vec![Part { id, kind }])
}

/// Returns the id in a line of an object that begins with the word, and the rest of the object.
fn header<'a>(data: &'a [u8], word: &[u8]) -> Option<(Oid, &'a [u8])> {
    let (id, rest) = data.strip_prefix(word)?.split_at_checked(2 * NAME)?;
    let id = Oid::from_str(std::str::from_utf8(id).ok()?).ok()?;
    Some((id, rest.strip_prefix(b"\n")?))
}

fn of_tree(mut data: &[u8]) -> Result<Vec<Part>, &'static str> {
    let mut parts = Vec::new();
    let mut names = HashSet::new();
    let mut before: Option<Vec<u8>> = None;
    while !data.is_empty() {
        let Entry { mode, name, id, rest } = Entry::read(data).ok_or(MALFORMED)?;
        if is_hostile(name) {
            return Err(HOSTILE);
        }
        let kind = match mode & 0o170_000 {
            0o040_000 => Some(ObjectType::Tree),
            0o100_000 | 0o120_000 => Some(ObjectType::Blob),
            _ => None,
        };
        // Two programs would read different files under a name that appears twice.
        let mut sorted = name.to_vec();
        sorted.extend((kind == Some(ObjectType::Tree)).then_some(b'/'));
        if !names.insert(name) || before.is_some_and(|before| before >= sorted) {
            return Err(MALFORMED);
        }
        before = Some(sorted);
        parts.extend(kind.map(|kind| Part { id, kind }));
        data = rest;
    }
    Ok(parts)
}

/// First entry of the rest of a tree.
struct Entry<'a> {
    mode: u32,
    name: &'a [u8],
    id: Oid,
    rest: &'a [u8],
}

impl<'a> Entry<'a> {
    fn read(data: &'a [u8]) -> Option<Self> {
        let space = data.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&data[..space]).ok()?, 8).ok()?;
        let data = &data[space + 1..];
        let end = data.iter().position(|byte| *byte == 0)?;
        let (id, rest) = data[end + 1..].split_at_checked(NAME)?;
        Some(Self { mode, name: &data[..end], id: Oid::from_bytes(id).ok()?, rest })
    }
}

/// Returns true if git refuses to check out an entry of this name (`git fsck`: `hasDot`, `hasDotdot`, `hasDotgit`,
/// `fullPathname`).
fn is_hostile(name: &[u8]) -> bool {
    name.is_empty() || matches!(name, b"." | b"..") || name.contains(&b'/') || is_git_on_ntfs(name)
}

/// Returns true for `.git` and its short name on NTFS, also with the endings that NTFS ignores. Git checks out none of
/// them on any host (git-config(1), `core.protectNTFS`).
fn is_git_on_ntfs(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    [&b".git"[..], b"git~1"].into_iter().filter_map(|git| name.strip_prefix(git)).any(|rest| {
        let end = rest.iter().find(|byte| !matches!(byte, b' ' | b'.'));
        end.is_none_or(|byte| matches!(byte, b':' | b'\\'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_told_from_one_that_git_stops_at() {
        use ObjectType::{Blob, Commit, Tag, Tree};

        let id = "12".repeat(NAME);
        let oid = Oid::from_str(&id).unwrap();
        let entry = |mode: &str, name: &str| [format!("{mode} {name}\0").as_bytes(), oid.as_bytes()].concat();
        let commit = format!("tree {id}\nparent {id}\nauthor a\ncommitter a\n\n");
        let tag = format!("object {id}\ntype commit\ntag v1\n");
        let tree = [entry("100644", "a.c"), entry("40000", "a"), entry("100755", "a0")].concat();
        let kinds = |kind, data: &[u8]| {
            parts(kind, data).map(|parts| parts.into_iter().map(|part| part.kind).collect::<Vec<_>>())
        };
        assert_eq!(kinds(Commit, commit.as_bytes()), Ok(vec![Tree, Commit]));
        assert_eq!(kinds(Tag, tag.as_bytes()), Ok(vec![Commit]));
        assert_eq!(kinds(Tree, &tree), Ok(vec![Blob, Tree, Blob]));
        assert_eq!(kinds(Tree, &entry("160000", "module")), Ok(vec![]));
        let twice = [entry("100644", "a"), entry("40000", "a")].concat();
        let backwards = [entry("100644", "b"), entry("100644", "a")].concat();
        for (kind, data) in [
            (Commit, format!("tree {id}\n\nno author").into_bytes()),
            (Commit, format!("parent {id}\n").into_bytes()),
            (Commit, format!("tree {}\nauthor a\ncommitter a\n", &id[1..]).into_bytes()),
            (Tag, format!("object {id}\ntype thing\ntag v1\n").into_bytes()),
            (Tree, twice),
            (Tree, backwards),
            (Tree, b"100644 a\0short".to_vec()),
        ] {
            assert_eq!(kinds(kind, &data), Err(MALFORMED), "{}", data.escape_ascii());
        }
        for name in ["..", ".", "", "a/b", ".GIT", ".git. .", ".git::$INDEX_ALLOCATION", "Git~1", "git~1 "] {
            assert_eq!(kinds(Tree, &entry("40000", name)), Err(HOSTILE), "{name}");
        }
        for name in [".gitignore", ".git-x", "git~10", "...", "git"] {
            assert_eq!(kinds(Tree, &entry("40000", name)), Ok(vec![Tree]), "{name}");
        }
    }
}
