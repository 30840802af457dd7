//! Stores parts of workers' homes: login files and agents' memories, for each assignee and tenant.
//!
//! Only the daemon's user can access `kept/no-tenant/ASSIGNEE/` and `kept/tenants/TENANT/ASSIGNEE/`, and no policy
//! grants them. A run gets copies that its worker owns. So no run reads another run's writes directly, and everything
//! planted by a run is a regular file here.
//!
//! See decision 0113.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kernel::{Profile, Tenant};
use policies::Identity;

use super::job::{self, Taking};
use base::failure::Failure;
use base::paths::{Root, make_dir};

/// Size limit of a kept file, in bytes.
pub const LARGEST: u64 = 256 << 10;

/// Retained files of one assignee in one tenant, or without a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedHome {
    dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedFile {
    pub bytes: Vec<u8>,
    pub changed: SystemTime,
}

impl RetainedHome {
    /// Returns the store of an assignee, which may be empty.
    pub fn for_assignee(root: &Root, assignee: &Profile, tenant: Option<&Tenant>) -> Self {
        RetainedHome { dir: root.retained_homes().join(within(tenant)).join(file_name(assignee.as_str())) }
    }

    /// Returns its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the existing stores of an assignee in all tenants.
    pub fn all_of(root: &Root, assignee: &Profile) -> Vec<Self> {
        let name = file_name(assignee.as_str());
        let of_tenants =
            std::fs::read_dir(root.retained_homes().join(TENANTS)).into_iter().flatten().flatten();
        let dirs = of_tenants.map(|entry| entry.path()).chain([root.retained_homes().join(NO_TENANT)]);
        let mut stores: Vec<PathBuf> = dirs.map(|dir| dir.join(&name)).filter(|dir| dir.is_dir()).collect();
        stores.sort();
        stores.into_iter().map(|dir| RetainedHome { dir }).collect()
    }

    /// Returns the modification time of each of these files that exists.
    pub fn modification_times(&self, files: &BTreeSet<PathBuf>) -> BTreeMap<PathBuf, SystemTime> {
        let changed = |path: &PathBuf| {
            let meta = std::fs::symlink_metadata(self.dir.join(path)).ok()?;
            Some((path.clone(), meta.modified().ok().filter(|_| meta.is_file())?))
        };
        files.iter().filter_map(changed).collect()
    }

    /// Reads the files among these that exist.
    pub fn read(&self, files: &BTreeSet<PathBuf>) -> Result<BTreeMap<PathBuf, RetainedFile>, Failure> {
        let mut files_read = BTreeMap::new();
        for path in files {
            let whole = self.dir.join(path);
            match read(&whole) {
                Ok(file) => drop(files_read.insert(path.clone(), file)),
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(e) => return Err(Failure::file("read", &whole, &e)),
            }
        }
        Ok(files_read)
    }

    /// Stores a file atomically: a concurrent reader sees the old file or the new.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        let whole = self.dir.join(path);
        let dir = whole.parent().unwrap_or(&self.dir);
        make_private(dir)?;
        let put = || -> io::Result<()> {
            let mut draft = tempfile::NamedTempFile::new_in(dir)?;
            draft.write_all(bytes)?;
            draft.as_file().sync_all()?;
            draft.persist(&whole).map_err(|e| e.error)?;
            std::fs::File::open(dir)?.sync_all()
        };
        put().map_err(|e| Failure::file("write", &whole, &e))
    }

    /// Deletes the store. Returns true if it existed.
    pub fn forget(&self) -> Result<bool, Failure> {
        match std::fs::remove_dir_all(&self.dir) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Failure::file("remove", &self.dir, &e)),
        }
    }
}

/// Returns the files for a worker's home: of each the newer of the assignee's and the lane's version, within the
/// worker's tenant. A login kept for a lane serves all its profiles.
pub fn for_run(
    root: &Root,
    assignee: &Profile,
    lane: &Profile,
    tenant: Option<&Tenant>,
    files: &BTreeSet<PathBuf>,
) -> Result<BTreeMap<PathBuf, RetainedFile>, Failure> {
    let mut retained = RetainedHome::for_assignee(root, assignee, tenant).read(files)?;
    if lane != assignee {
        for (path, of_lane) in RetainedHome::for_assignee(root, lane, tenant).read(files)? {
            if retained.get(&path).is_none_or(|own| own.changed < of_lane.changed) {
                retained.insert(path, of_lane);
            }
        }
    }
    Ok(retained)
}

/// State of a file after a worker's use.
#[derive(Debug)]
pub enum FileAfterRun {
    File(Vec<u8>),
    Nothing,
    /// A file that cannot be kept, with the reason.
    Unfit(String),
}

/// Copies a file out of a worker's directory, under the worker's user. Blocking.
pub fn copy_out(dir: &Path, path: &Path, identity: Option<Identity>) -> Result<FileAfterRun, Failure> {
    if dir.join(path).symlink_metadata().is_err() {
        return Ok(FileAfterRun::Nothing);
    }
    let failed = |e: io::Error| Failure::failed(format!("failed to copy {}: {e}", path.display()));
    let mut spool = tempfile::tempfile().map_err(failed)?;
    let sink = spool.try_clone().map_err(failed)?;
    let taking = Taking { workspace: dir.to_owned(), path: path.to_owned(), limit: LARGEST };
    match job::take(identity, taking, sink) {
        Ok(()) => {}
        Err(failure) if failure.cause == job::Cause::NotTaken => {
            return Ok(FileAfterRun::Unfit(failure.message));
        }
        Err(failure) => return Err(Failure::failed(failure.message)),
    }
    let mut bytes = Vec::new();
    spool.rewind().and_then(|()| spool.read_to_end(&mut bytes)).map_err(failed)?;
    Ok(FileAfterRun::File(bytes))
}

const NO_TENANT: &str = "no-tenant";
const TENANTS: &str = "tenants";

fn within(tenant: Option<&Tenant>) -> PathBuf {
    match tenant {
        Some(tenant) => Path::new(TENANTS).join(file_name(tenant.as_str())),
        None => PathBuf::from(NO_TENANT),
    }
}

/// Returns a name as a safe file name. Names of profiles and tenants are safe already, except for a leading dot.
fn file_name(name: &str) -> String {
    let is_plain = !name.starts_with('.')
        && !name.starts_with('%')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_plain { name.to_owned() } else { format!("%{}", hex::encode(name)) }
}

fn read(path: &Path) -> io::Result<RetainedFile> {
    let file = std::fs::File::open(path)?;
    let meta = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it has more than {LARGEST} bytes")));
    }
    Ok(RetainedFile { bytes, changed: meta.modified()? })
}

/// Makes a directory and its parents, closed to other users.
fn make_private(dir: &Path) -> Result<(), Failure> {
    if !dir.is_dir() {
        if let Some(above) = dir.parent() {
            make_private(above)?;
        }
        make_dir(dir, 0o700)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;
    use base::paths::RootChoice;

    fn root(dir: &Path) -> Root {
        let root =
            RootChoice { root: Some(dir.to_owned()), ..RootChoice::default() }.resolve(|_| None).unwrap();
        root.create().unwrap();
        root
    }

    fn files() -> BTreeSet<PathBuf> {
        [PathBuf::from(".x/auth.json"), PathBuf::from("notes")].into()
    }

    #[test]
    fn what_is_kept_for_one_assignee_and_tenant_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        let [ann, bob]: [Profile; 2] = ["ann", "bob"].map(|name| name.parse().unwrap());
        let tenant: Tenant = "no-tenant".parse().unwrap();
        let own = RetainedHome::for_assignee(&root, &ann, Some(&tenant));
        own.write(Path::new(".x/auth.json"), b"of ann").unwrap();
        let get = |who: &Profile, tenant| {
            let found = for_run(&root, who, &"agent".parse().unwrap(), tenant, &files()).unwrap();
            found.into_values().map(|file| String::from_utf8(file.bytes).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(get(&ann, Some(&tenant)), ["of ann"]);
        assert!(get(&ann, None).is_empty() && get(&bob, Some(&tenant)).is_empty());
        assert_eq!(RetainedHome::all_of(&root, &ann), std::slice::from_ref(&own));
        for made in [own.dir(), root.retained_homes().as_path()] {
            assert_eq!(std::fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700, "{made:?}");
        }
        assert!(own.forget().unwrap() && !own.forget().unwrap());
        assert!(get(&ann, Some(&tenant)).is_empty());
    }

    #[test]
    fn of_each_file_the_newest_one_of_assignee_and_lane_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        let [ann, lane]: [Profile; 2] = ["ann", "agent"].map(|name| name.parse().unwrap());
        let auth = Path::new(".x/auth.json");
        let put = |who: &Profile, text: &str, age: u64| {
            let home = RetainedHome::for_assignee(&root, who, None);
            home.write(auth, text.as_bytes()).unwrap();
            let file = std::fs::File::open(home.dir().join(auth)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        };
        let get = || for_run(&root, &ann, &lane, None, &files()).unwrap()[auth].bytes.clone();
        put(&lane, "of the lane", 100);
        assert_eq!(get(), b"of the lane");
        put(&ann, "her own", 50);
        assert_eq!(get(), b"her own");
        put(&lane, "logged in again", 10);
        assert_eq!(get(), b"logged in again");
    }
}
