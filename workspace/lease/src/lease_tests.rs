//! Leases: who has a directory, who waits, and who is refused.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::*;

fn holder(run: i64) -> LeaseHolder {
    LeaseHolder::Run { board: "default".to_owned(), run, task: Some("t_0badcafe".to_owned()) }
}

fn place(path: &Path) -> FileIdentity {
    FileIdentity::from_stat(&rustix::fs::stat(path).unwrap())
}

fn acquire(dir: &Path, run: i64) -> Result<Lease, LeaseError> {
    let root = Path::new("/");
    Lease::acquire(dir, root, place(root), &holder(run))
}

/// A directory to lease, one inside it, and where the leases are.
struct Nest {
    leases: tempfile::TempDir,
    dir: tempfile::TempDir,
}

impl Nest {
    fn new() -> Self {
        let nest = Self { leases: tempfile::tempdir().unwrap(), dir: tempfile::tempdir().unwrap() };
        fs_err::create_dir_all(nest.inner()).unwrap();
        nest
    }

    fn outer(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("outer")
    }

    fn inner(&self) -> PathBuf {
        self.outer().join("inner")
    }

    /// A lease on a directory; `wait` is what happens when it waits.
    fn take(
        &self,
        path: &Path,
        holder: &LeaseHolder,
        wait: impl FnMut() -> bool,
    ) -> Result<Lease, LeaseError> {
        let place = place(path);
        Lease::acquire_within(self.leases.path(), path, place, holder, wait)
    }
}

fn removal() -> LeaseHolder {
    LeaseHolder::Removal { removed_by_board: "default".to_owned() }
}

fn never() -> bool {
    panic!("nobody waits for work")
}

#[test]
fn a_removal_is_waited_for_by_runs_and_removals_there_above_and_inside() {
    for (removed, asked) in [(false, false), (true, false), (false, true)] {
        for holder in [holder(7), removal()] {
            let nest = Nest::new();
            let path = |is_inner| if is_inner { nest.inner() } else { nest.outer() };
            let mut first = Some(nest.take(&path(removed), &removal(), never).unwrap());
            // The removal ends while it is waited for, and leaves what it was asked to look at.
            let lease = nest.take(&path(asked), &holder, || first.take().is_some());
            assert!(lease.is_ok(), "{holder} {removed} {asked}: {lease:?}");
            assert!(first.is_none(), "{holder} {removed} {asked}: it did not wait");
        }
    }
}

#[test]
fn what_was_removed_while_it_was_waited_for_is_gone() {
    for holder in [holder(7), removal()] {
        let nest = Nest::new();
        let mut first = Some(nest.take(&nest.inner(), &removal(), never).unwrap());
        let end = || {
            fs_err::remove_dir(nest.inner()).unwrap();
            first.take().is_some()
        };
        let error = nest.take(&nest.inner(), &holder, end).unwrap_err();
        assert!(matches!(error, LeaseError::Gone { .. }), "{error}");
    }
}

#[test]
fn a_removal_that_goes_on_for_ever_is_not_waited_for_as_long() {
    let nest = Nest::new();
    let _first = nest.take(&nest.inner(), &removal(), never).unwrap();
    let error = nest.take(&nest.inner(), &holder(7), || false).unwrap_err();
    assert!(matches!(error, LeaseError::Removing { .. }), "{error}");
}

#[test]
fn a_removal_is_refused_where_a_run_works_and_names_it() {
    let nest = Nest::new();
    let run = nest.take(&nest.inner(), &holder(7), never).unwrap();
    let error = nest.take(&nest.inner(), &removal(), never).unwrap_err();
    assert!(error.to_string().ends_with("is in use by run 7 of board default (task t_0badcafe)"), "{error}");
    assert!(matches!(nest.take(&nest.outer(), &removal(), never), Err(LeaseError::HeldInside { .. })));
    drop(run);
    nest.take(&nest.outer(), &removal(), never).unwrap();
}

#[test]
fn a_holder_that_an_earlier_release_wrote_is_read() {
    let text = r#"{"board":"default","run":7,"task":"t_0badcafe"}"#;
    assert_eq!(serde_json::from_str::<LeaseHolder>(text).unwrap(), holder(7));
    assert_eq!(serde_json::to_string(&holder(7)).unwrap(), text);
    let text = serde_json::to_string(&removal()).unwrap();
    assert_eq!(serde_json::from_str::<LeaseHolder>(&text).unwrap(), removal());
}

#[test]
fn a_second_holder_is_refused_and_told_of_the_first_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let lease = acquire(dir.path(), 7).unwrap();
    assert_eq!(lease.path(), lease_path(dir.path(), place(Path::new("/"))));
    let error = acquire(dir.path(), 8).unwrap_err();
    assert_eq!(error.to_string(), "/ is in use by run 7 of board default (task t_0badcafe)");
    drop(lease);
    acquire(dir.path(), 8).unwrap();
}

#[test]
fn a_lease_of_another_process_is_respected_and_its_holder_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "lease::tests::holds_a_lease_until_stdin_ends"])
        .env("LEASES_DIR", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("held")));
    let Err(LeaseError::Held { holder: Some(found), .. }) = acquire(dir.path(), 8) else {
        panic!("the lease of another process was not respected");
    };
    assert_eq!(found, holder(7));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    acquire(dir.path(), 8).unwrap();
}

#[test]
#[ignore = "the other process of a_lease_of_another_process_is_respected_and_its_holder_named"]
fn holds_a_lease_until_stdin_ends() {
    let Some(dir) = std::env::var_os("LEASES_DIR") else { return };
    let _lease = acquire(Path::new(&dir), 7).unwrap();
    println!("held");
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

#[test]
fn a_child_process_does_not_inherit_the_lease() {
    let dir = tempfile::tempdir().unwrap();
    let lease = acquire(dir.path(), 7).unwrap();
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    drop(lease);
    acquire(dir.path(), 8).unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_directory_and_one_inside_it_are_not_leased_together_and_two_side_by_side_are() {
    let nest = Nest::new();
    let (outer, inner, other) = (nest.outer(), nest.inner(), nest.outer().join("other"));
    fs_err::create_dir(&other).unwrap();
    let take = |path: &Path, run| nest.take(path, &holder(run), never);
    let first = take(&outer, 7).unwrap();
    let error = take(&inner, 8).unwrap_err();
    assert!(matches!(&error, LeaseError::HeldAbove { above, .. } if *above == outer), "{error}");
    assert!(error.to_string().contains("run 7 of board default"), "{error}");
    drop(first);
    let inside = take(&inner, 8).unwrap();
    let beside = take(&other, 9).unwrap();
    assert!(matches!(take(&outer, 7), Err(LeaseError::HeldInside { .. })));
    drop((inside, beside));
    take(&outer, 7).unwrap();
}

#[test]
fn a_sweep_takes_the_files_that_nobody_holds() {
    let dir = tempfile::tempdir().unwrap();
    let removed = tempfile::tempdir().unwrap();
    let removed = removed.path();
    drop(Lease::acquire(dir.path(), removed, place(removed), &removal()).unwrap());
    let other = tempfile::tempdir().unwrap();
    let other = other.path();
    let kept = Lease::acquire(dir.path(), other, place(other), &holder(9)).unwrap();
    fs_err::write(dir.path().join("unrelated"), "").unwrap();
    assert!(sweep(dir.path()).unwrap() > 1);
    assert!(kept.path().exists() && dir.path().join("unrelated").exists());
    drop(kept);
    sweep(dir.path()).unwrap();
    assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_run_takes_a_free_lease_without_removal_locks_and_a_removed_directory_has_none() {
    let nest = Nest::new();
    let gates = || {
        let names = fs_err::read_dir(nest.leases.path()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|extension| extension == "gate")).count()
    };
    let lease = nest.take(&nest.inner(), &holder(1), never).unwrap();
    assert_eq!(gates(), 0);
    // The second run looks whether the first one is a removal.
    let refused = nest.take(&nest.inner(), &holder(2), never);
    assert!(matches!(refused, Err(LeaseError::Held { .. })) && gates() > 0);
    drop(lease);
    let place = place(&nest.inner());
    fs_err::rename(nest.inner(), nest.outer().join("moved")).unwrap();
    fs_err::create_dir(nest.inner()).unwrap();
    let gone = Lease::acquire_within(nest.leases.path(), &nest.inner(), place, &holder(3), never);
    assert!(matches!(gone, Err(LeaseError::Gone { .. })));
    assert!(nest.take(&nest.inner(), &holder(4), never).is_ok());
}
