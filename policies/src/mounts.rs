//! File system view that holds only the granted paths, at the same absolute paths.
//!
//! The view is a mount namespace of its own: an empty tmpfs as the root, the granted paths bound into it, and the old
//! root detached. A path outside of the view cannot be stat'ed, watched, chmod'ed or connected to.
//!
//! The temporary directory of the run is always `/tmp`, because many programs write there whatever `TMPDIR` says; a
//! granted path beneath `/tmp` is mounted in it. Directories above such a path are read-only and cannot be listed, so
//! the run finds none of its own names at a path of the host.
//!
//! See decision 0002.

mod making;

use std::path::Path;

pub(crate) use self::making::show_own_processes;
use crate::access::Access;
use crate::arrange::Arranged;
use crate::covers::Cover;
use crate::mounting::ProbeError;
use crate::namespaces::PidNamespace;
use crate::paths::{Link, Opened, PathError};
use crate::support::{Support, View};
use crate::user_names::Replaced;

/// Mount point of the new root before it becomes the root; the directory exists on every host (hier(7)).
const STAGE: &str = "/tmp";
const PROC: &str = "/proc";

/// A file system view, planned.
#[derive(Debug)]
pub(crate) struct Plan {
    how: How,
    steps: Vec<ViewMount>,
    links: Vec<Link>,
    arranged: Vec<Arranged>,
    replaced: Vec<Replaced>,
    shm: bool,
    terminals: bool,
    processes: Processes,
    tmp: Option<OpenedPath>,
}

/// Privileges by which the view is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Own,
    UserNamespace,
    /// The caller was born in a user namespace, and uses its privileges there.
    Entered,
}

/// Processes that `/proc` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processes {
    Host,
    /// Processes of the caller's pid namespace, under the numbers that they have there.
    Own,
}

/// Mount of the view. Mounts are made in the order of their paths: a later mount lies beneath an earlier one or apart from it.
#[derive(Debug)]
enum ViewMount {
    Bind(OpenedPath),
    Cover(Cover),
}

impl ViewMount {
    fn path(&self) -> &Path {
        match self {
            Self::Bind(place) => &place.opened.path,
            Self::Cover(cover) => &cover.at,
        }
    }

    /// Returns the order among mounts on one path: the cover, then a writable mount over it, then a read-only one.
    fn rank(&self) -> u8 {
        match self {
            Self::Cover(_) => 0,
            Self::Bind(place) if place.writable => 1,
            Self::Bind(_) => 2,
        }
    }
}

#[derive(Debug)]
struct OpenedPath {
    opened: Opened,
    writable: bool,
}

/// Contents of a view beside the granted paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    /// Covers beneath the granted paths.
    pub(crate) covers: Vec<Cover>,
    /// Files with another content than the host's.
    pub(crate) replaced: Vec<Replaced>,
    /// A `/dev/shm` of its own.
    pub(crate) shm: bool,
    /// A `/dev/pts` of its own, with `/dev/ptmx`.
    pub(crate) terminals: bool,
    /// The pid namespace that the caller is in, if it is not the host's.
    pub(crate) pid_namespace: Option<PidNamespace>,
}

impl Plan {
    /// Plans a view of these paths. `tmp` is also shown as `/tmp`, unless the host's `/tmp` is granted. Granted paths
    /// beneath `/tmp` are shown in it.
    pub(crate) fn new<'a>(
        view: &View,
        granted: impl Iterator<Item = (&'a Opened, Access)>,
        links: &[Link],
        extras: Extras,
        tmp: Option<&Opened>,
    ) -> Result<Option<Self>, PathError> {
        let how = match (view, extras.pid_namespace) {
            (View::Privileged, _) => How::Own,
            (View::UserNamespace, None) => How::UserNamespace,
            (View::UserNamespace, Some(_)) => How::Entered,
            (View::Unavailable { .. }, _) => return Ok(None),
        };
        let processes = if extras.pid_namespace.is_some() { Processes::Own } else { Processes::Host };
        let mut wanted: Vec<ViewMount> = extras.covers.into_iter().map(ViewMount::Cover).collect();
        for (opened, access) in granted {
            wanted.push(ViewMount::Bind(OpenedPath { opened: opened.again()?, writable: access.writes() }));
        }
        // Shorter paths first, so that a mount never hides an earlier one.
        wanted.sort_by(|a, b| a.path().cmp(b.path()).then(a.rank().cmp(&b.rank())));
        let mut steps: Vec<ViewMount> = Vec::new();
        for step in wanted {
            let above = steps.iter().rev().find(|above| step.path().starts_with(above.path()));
            let needed = match (&step, above) {
                // A path beneath a bound path is bound with it.
                (ViewMount::Bind(place), Some(ViewMount::Bind(above))) => place.writable && !above.writable,
                (ViewMount::Bind(_), _) => true,
                // A writable mount belongs to the run. A missing place, and a place in a covered directory, need no
                // cover.
                (ViewMount::Cover(_), Some(ViewMount::Bind(above))) => !above.writable,
                (ViewMount::Cover(_), _) => false,
            };
            if needed {
                steps.push(step);
            }
        }
        let bound = |path: &Path| {
            steps
                .iter()
                .any(|step| matches!(step, ViewMount::Bind(place) if path.starts_with(&place.opened.path)))
        };
        let tmp = match tmp {
            Some(tmp) if !steps.iter().any(|step| step.path() == Path::new(STAGE)) => {
                Some(OpenedPath { opened: tmp.again()?, writable: true })
            }
            _ => None,
        };
        let links = links.iter().filter(|link| !bound(&link.at)).cloned().collect();
        let replaced = extras.replaced.into_iter().filter(|file| bound(file.at)).collect();
        Ok(Some(Self {
            how,
            steps,
            links,
            arranged: Vec::new(),
            replaced,
            shm: extras.shm,
            terminals: extras.terminals,
            processes,
            tmp,
        }))
    }

    /// Adds steps that come after everything else.
    pub(crate) fn arranged(self, arranged: Vec<Arranged>) -> Self {
        Self { arranged, ..self }
    }

    /// Returns the paths that those steps show.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&Opened, Access)> {
        self.arranged.iter().filter_map(Arranged::granted)
    }

    /// Returns the files that the run sees with another content than the host's.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = &'static Path> {
        self.replaced.iter().map(|file| file.at)
    }

    /// Returns true if the run gets a user namespace of its own.
    pub(crate) fn makes_user_namespace(&self) -> bool {
        self.how != How::Own
    }
}

/// Gives the calling process a view with the host's `/usr`, to test whether this host permits views. Call it in a
/// single-threaded process that exits afterwards.
///
/// # Errors
/// Names the step that is not permitted.
pub fn probe_view() -> Result<(), ProbeError> {
    let view = Support::detect().view;
    if let View::Unavailable { why } = view {
        return Err(ProbeError::Unavailable { why });
    }
    let usr = Opened::real(Path::new("/usr"))?;
    let proc = Opened::real(Path::new("/proc"))?;
    let null = Opened::real(Path::new("/dev/null"))?;
    let extras = Extras { shm: true, terminals: true, ..Extras::default() };
    let granted = [(&usr, Access::Execute), (&proc, Access::Read), (&null, Access::Device)];
    match Plan::new(&view, granted.into_iter(), &[], extras, None)? {
        Some(plan) => plan.enter(),
        None => Ok(()),
    }
}

#[cfg(test)]
impl Plan {
    /// Returns true if the run sees an empty file or directory in place of a path.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.steps.iter().any(|step| matches!(step, ViewMount::Cover(cover) if cover.at == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Opened {
        Opened::real(path).unwrap()
    }

    #[test]
    fn what_lies_beneath_a_bound_path_is_not_bound_again_unless_it_is_wider() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b/c")).unwrap();
        let [a, b, c] = ["a", "a/b", "a/b/c"].map(|name| opened(&dir.path().join(name)));
        let granted = [(&c, Access::Read), (&b, Access::Write), (&a, Access::Read)];
        let plan =
            Plan::new(&View::Privileged, granted.into_iter(), &[], Extras::default(), None).unwrap().unwrap();
        assert_eq!(shown(&plan), [(a.path.as_path(), "ro"), (b.path.as_path(), "rw")]);
        let twice = [(&a, Access::Read), (&a, Access::Write)];
        let plan =
            Plan::new(&View::Privileged, twice.into_iter(), &[], Extras::default(), None).unwrap().unwrap();
        assert_eq!(shown(&plan), [(a.path.as_path(), "rw")]);
    }

    #[test]
    fn what_is_the_runs_own_is_bound_over_a_cover_and_never_covered() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/sv/own/inner")).unwrap();
        std::fs::create_dir_all(dir.path().join("b")).unwrap();
        let [a, sv, own, inner] =
            ["a", "a/sv", "a/sv/own", "a/sv/own/inner"].map(|name| opened(&dir.path().join(name)));
        let what = crate::covers::Covered::Supervisor;
        let cover = |path: &Path| Cover { at: path.to_owned(), what };
        let covers = vec![cover(&sv.path), cover(&inner.path), cover(&dir.path().join("b"))];
        let extras = Extras { covers, ..Extras::default() };
        let granted = [(&a, Access::Read), (&own, Access::Write)];
        let plan = Plan::new(&View::Privileged, granted.into_iter(), &[], extras, None).unwrap().unwrap();
        let expected = [(a.path.as_path(), "ro"), (sv.path.as_path(), "covered"), (own.path.as_path(), "rw")];
        assert_eq!(shown(&plan), expected);
    }

    fn shown(plan: &Plan) -> Vec<(&Path, &'static str)> {
        let word = |step: &ViewMount| match step {
            ViewMount::Cover(_) => "covered",
            ViewMount::Bind(place) if place.writable => "rw",
            ViewMount::Bind(_) => "ro",
        };
        plan.steps.iter().map(|step| (step.path(), word(step))).collect()
    }

    #[test]
    fn no_view_is_planned_where_none_can_be_had() {
        let view = View::Unavailable { why: "no".into() };
        assert!(Plan::new(&view, std::iter::empty(), &[], Extras::default(), None).unwrap().is_none());
    }
}
