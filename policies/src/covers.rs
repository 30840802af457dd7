//! Finds the paths beneath the granted directories that the file system view must cover, and refuses grants in which it
//! cannot.
//!
//! Landlock grants a directory with all that it contains. So the view covers the forbidden paths in it, or the run does not
//! start.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::boundary::{Boundary, ClosedPaths, Held, PathRelation};
use crate::paths::{Kind, Opened};
use crate::refusal::PlanError;

/// The kernel's list of Unix sockets, with the paths to which they were bound (`proc_net(5)`).
const SOCKETS: &str = "/proc/net/unix";

/// Path that the view covers, so that the run cannot reach it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cover {
    pub(crate) at: PathBuf,
    pub(crate) what: Covered,
}

/// Kind of a covered path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Covered {
    /// A path of the supervisor. A run in which it cannot be covered does not start.
    Supervisor,
    /// The directory of another task, or the socket of another process. Its owner can move it at any time, and at its new
    /// path it is not covered.
    Foreign,
}

/// Returns the paths to cover beneath the granted paths. `no_view` is the reason why this run has no view that could
/// cover them.
///
/// # Errors
/// A granted path is in a directory of the supervisor, contains one and is granted for writing, or contains a path that
/// cannot be covered.
pub(crate) fn covers(
    granted: &[(Opened, Access)],
    closed: &ClosedPaths,
    no_view: Option<&str>,
) -> Result<Vec<Cover>, PlanError> {
    let supervisor = Boundary::around(&closed.places).map_err(PlanError::Mounts)?;
    let tasks = supervisor.with_named(&closed.tasks);
    let mut covers = Vec::new();
    for (opened, access) in granted {
        let path = &opened.path;
        if opened.kind == Kind::Device || closed.own.iter().any(|own| path.starts_with(own)) {
            continue;
        }
        let held = match supervisor.relation_of_real(path) {
            PathRelation::Apart => Vec::new(),
            PathRelation::Inside(place) => return Err(PlanError::Closed { path: path.clone(), place }),
            PathRelation::Holds(held) if access.writes() => {
                let place = held.into_iter().next().map(|held| held.place).unwrap_or_default();
                return Err(PlanError::Around { path: path.clone(), place });
            }
            PathRelation::Holds(held) => held,
        };
        // A policy that grants the directory of a task itself, or a directory around it for writing, does so on purpose.
        let others = match tasks.relation_of_real(path) {
            PathRelation::Holds(held) if !access.writes() => held,
            PathRelation::Holds(_) | PathRelation::Inside(_) | PathRelation::Apart => Vec::new(),
        };
        if let (Some(why), Some(first)) = (no_view, held.iter().chain(&others).next()) {
            let (path, place, why) = (path.clone(), first.place.clone(), why.to_owned());
            return Err(PlanError::Uncovered { path, place, why });
        }
        let cover = |what| move |Held { at, .. }| Cover { at, what };
        covers.extend(held.into_iter().map(cover(Covered::Supervisor)));
        covers.extend(others.into_iter().map(cover(Covered::Foreign)));
    }
    Ok(covers)
}

/// Returns covers for the sockets that exist now in directories that the run may read but not write.
pub(crate) fn sockets(granted: &[(Opened, Access)], closed: &ClosedPaths) -> Result<Vec<Cover>, PlanError> {
    let text = std::fs::read(SOCKETS).map_err(PlanError::Mounts)?;
    let bound: Vec<PathBuf> = bound_paths(&text).into_iter().filter(|path| is_socket(path)).collect();
    let sockets = Boundary::around(&bound).map_err(PlanError::Mounts)?;
    let is_open = |access: Access| access.writes() || access == Access::Socket;
    let open = granted.iter().filter(|(_, access)| is_open(*access)).map(|(opened, _)| &opened.path);
    let open: Vec<&PathBuf> = open.chain(&closed.own).collect();
    let mut covers = Vec::new();
    for (opened, _) in granted.iter().filter(|(_, access)| !is_open(*access)) {
        let at = match sockets.relation_of_real(&opened.path) {
            PathRelation::Apart => continue,
            PathRelation::Inside(_) => vec![opened.path.clone()],
            PathRelation::Holds(held) => held.into_iter().map(|held| held.at).collect(),
        };
        let foreign = at.into_iter().filter(|at| !open.iter().any(|open| at.starts_with(open)));
        covers.extend(foreign.map(|at| Cover { at, what: Covered::Foreign }));
    }
    Ok(covers)
}

/// Returns the absolute paths in the kernel's list: its eighth column, which may contain blanks. Each connection has a line
/// with the path of its listener. The set has each path once, so that the open connections of one worker do not slow down
/// the start of another.
fn bound_paths(text: &[u8]) -> BTreeSet<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let paths = lines.filter_map(|line| {
        let start = line.windows(2).position(|two| two == b" /")?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(line.get(start + 1..)?)))
    });
    paths.collect()
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(path: &Path, access: Access) -> Vec<(Opened, Access)> {
        vec![(Opened::real(path).unwrap(), access)]
    }

    /// A directory `opt` with a root and a task's directory in it.
    fn opt() -> (tempfile::TempDir, PathBuf, ClosedPaths) {
        let dir = tempfile::tempdir().unwrap();
        let opt = dir.path().canonicalize().unwrap().join("opt");
        std::fs::create_dir_all(opt.join("sv/boards")).unwrap();
        std::fs::create_dir_all(opt.join("sv/home")).unwrap();
        std::fs::create_dir_all(opt.join("app")).unwrap();
        let closed = ClosedPaths {
            places: vec![opt.join("sv")],
            own: vec![opt.join("sv/home")],
            tasks: vec![opt.join("app")],
        };
        (dir, opt, closed)
    }

    #[test]
    fn what_lies_beneath_a_grant_for_reading_is_covered_or_the_grant_refused() {
        let (_dir, opt, closed) = opt();
        let covered = covers(&grant(&opt, Access::Execute), &closed, None).unwrap();
        let at: Vec<&Path> = covered.iter().map(|cover| cover.at.as_path()).collect();
        assert_eq!(at, [opt.join("sv"), opt.join("app")]);
        let error = covers(&grant(&opt, Access::Read), &closed, Some("no view here")).unwrap_err();
        assert!(matches!(error, PlanError::Uncovered { .. }), "{error}");
        assert!(error.to_string().contains("no view here"), "{error}");
        let without = ClosedPaths { places: vec![], ..closed };
        let error = covers(&grant(&opt, Access::Read), &without, Some("no view here")).unwrap_err();
        assert!(error.to_string().contains("opt/app"), "{error}");
    }

    #[test]
    fn no_grant_for_writing_holds_the_root_and_none_lies_in_it() {
        let (_dir, opt, closed) = opt();
        let error = covers(&grant(&opt, Access::WriteExecute), &closed, None).unwrap_err();
        assert!(matches!(error, PlanError::Around { .. }), "{error}");
        for access in [Access::Read, Access::Write] {
            for path in [opt.join("sv"), opt.join("sv/boards")] {
                let error = covers(&grant(&path, access), &closed, None).unwrap_err();
                assert!(matches!(error, PlanError::Closed { .. }), "{error}");
            }
        }
        assert_eq!(covers(&grant(&opt.join("sv/home"), Access::Write), &closed, None).unwrap(), []);
        assert_eq!(covers(&grant(&opt.join("app"), Access::Read), &closed, None).unwrap(), []);
    }

    #[test]
    fn a_task_beneath_a_grant_for_writing_is_granted_on_purpose() {
        let (_dir, opt, closed) = opt();
        let closed = ClosedPaths { places: vec![], ..closed };
        assert_eq!(covers(&grant(&opt, Access::Write), &closed, None).unwrap(), []);
    }

    #[test]
    fn what_has_taken_the_place_of_a_socket_is_not_covered() {
        let (_dir, opt, closed) = opt();
        let place = opt.join("x.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&place).unwrap();
        std::fs::remove_file(&place).unwrap();
        std::fs::write(&place, "").unwrap();
        assert_eq!(sockets(&grant(&opt, Access::Read), &closed).unwrap(), []);
    }

    #[test]
    fn the_kernels_list_of_sockets_is_understood() {
        let text = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff: 00000002 00000000 00010000 0001 01 17 /run/a b.sock\n\
            ffff: 00000003 00000000 00000000 0001 03 18\n\
            ffff: 00000003 00000000 00000000 0001 03 20 /run/a b.sock\n\
            ffff: 00000002 00000000 00010000 0001 01 19 @abstract\n";
        assert_eq!(bound_paths(text), BTreeSet::from([PathBuf::from("/run/a b.sock")]), "once");
        let (_dir, opt, closed) = opt();
        let _listener = std::os::unix::net::UnixListener::bind(opt.join("x.sock")).unwrap();
        let found = sockets(&grant(&opt, Access::Execute), &closed).unwrap();
        assert_eq!(found, [Cover { at: opt.join("x.sock"), what: Covered::Foreign }]);
        assert_eq!(sockets(&grant(&opt, Access::Write), &closed).unwrap(), []);
        let both = [grant(&opt, Access::Read), grant(&opt.join("sv"), Access::Socket)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>();
        let _board = std::os::unix::net::UnixListener::bind(opt.join("sv/board.sock")).unwrap();
        let found = sockets(&both, &closed).unwrap();
        assert_eq!(found, [Cover { at: opt.join("x.sock"), what: Covered::Foreign }], "the board stays");
    }
}
