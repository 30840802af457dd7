//! Changes that the file system view of a run makes to its granted paths: another file, an empty directory, or a link.
//!
//! Landlock cannot remove rights beneath a path that it grants, but a bind mount in the view of the run can. With it, a part of
//! a granted tree becomes read-only or is replaced for this run, and other processes see no change.

use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::paths::{Opened, PathError};
use crate::report::{Layer, LayerReport, State};

/// Steps that change the view of a run, and the grants that replace them in a run without a view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrangement {
    /// Steps, in the order in which they are applied.
    #[serde(default)]
    pub steps: Vec<Arrange>,
    /// Further paths that a run without a view may read.
    #[serde(default)]
    pub read_without_view: Vec<PathBuf>,
    /// Further paths that a run without a view may read and write.
    #[serde(default)]
    pub write_without_view: Vec<PathBuf>,
    /// Gap of a run without a view: acts that the steps would prevent.
    pub open_without_view: Option<String>,
}

/// Step that changes the view. Its paths have no symbolic links. The crate `workspace` has its own type for the same steps
/// (`workspace::Shown`), because neither crate depends on the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrange {
    /// Shows an empty directory, which later steps fill.
    Fresh {
        /// Existing directory that is replaced.
        at: PathBuf,
    },
    /// Shows a file or directory for reading.
    Show {
        at: PathBuf,
        /// Its path on the host.
        source: PathBuf,
    },
    /// Shows a file or directory for reading and writing.
    Lend {
        at: PathBuf,
        /// Its path on the host.
        source: PathBuf,
    },
    /// Shows a symbolic link in an empty directory of an earlier step.
    Link {
        at: PathBuf,
        /// Path that the link contains.
        target: PathBuf,
    },
}

/// Step whose paths were opened.
#[derive(Debug)]
pub(crate) enum Arranged {
    Fresh { at: PathBuf, uid: u32, gid: u32 },
    Bind { at: PathBuf, source: Opened, access: Access },
    Link { at: PathBuf, target: PathBuf },
}

impl Arrangement {
    pub(crate) fn open(&self) -> Result<Vec<Arranged>, PathError> {
        let bind = |at: &Path, source: &Path, access| {
            Ok(Arranged::Bind { at: at.to_owned(), source: Opened::real(source)?, access })
        };
        let open = |step: &Arrange| match step {
            Arrange::Fresh { at } => {
                let opened = Opened::real(at)?.directory()?;
                // The empty directory gets the owner of the original, because programs check it.
                let stat = fstat(&opened).map_err(|source| PathError::Open { path: at.clone(), source })?;
                Ok(Arranged::Fresh { at: at.clone(), uid: stat.st_uid, gid: stat.st_gid })
            }
            Arrange::Show { at, source } => bind(at, source, Access::Read),
            Arrange::Lend { at, source } => bind(at, source, Access::Write),
            Arrange::Link { at, target } => Ok(Arranged::Link { at: at.clone(), target: target.clone() }),
        };
        self.steps.iter().map(open).collect()
    }

    /// Returns the paths of this host that the steps and the grants name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let steps = self.steps.iter().flat_map(|step| match step {
            Arrange::Fresh { at } | Arrange::Link { at, .. } => [Some(at), None],
            Arrange::Show { at, source } | Arrange::Lend { at, source } => [Some(at), Some(source)],
        });
        let grants = self.read_without_view.iter().chain(&self.write_without_view);
        steps.flatten().chain(grants).map(PathBuf::as_path)
    }

    /// Opens the further paths of a run without a view.
    pub(crate) fn without_view(&self) -> Result<Vec<(Opened, Access)>, PathError> {
        let lists = [(&self.read_without_view, Access::Read), (&self.write_without_view, Access::Write)];
        let each = lists.into_iter().flat_map(|(paths, access)| paths.iter().map(move |path| (path, access)));
        each.map(|(path, access)| Ok((Opened::real(path)?, access))).collect()
    }

    /// Adds a gap to the report of the file layer, for a run without a view.
    pub(crate) fn reported_without_view(&self, report: LayerReport) -> LayerReport {
        match (&self.open_without_view, report.layer, report.state) {
            (Some(open), Layer::Files, State::Enforced | State::Partial) => {
                let gaps: Vec<String> = report.why.into_iter().chain([open.clone()]).collect();
                LayerReport::unless(Layer::Files, &gaps)
            }
            _ => report,
        }
    }

    /// Returns the directories that exist only in the view. Their rules are added to the ruleset once the view exists.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = (PathBuf, Access)> + '_ {
        self.steps.iter().filter_map(|step| match step {
            Arrange::Fresh { at } => Some((at.clone(), Access::Read)),
            Arrange::Show { .. } | Arrange::Lend { .. } | Arrange::Link { .. } => None,
        })
    }
}

impl Arranged {
    /// Returns the grant that the step needs in the ruleset; none if it needs none.
    pub(crate) fn granted(&self) -> Option<(&Opened, Access)> {
        match self {
            Self::Bind { source, access, .. } => Some((source, *access)),
            Self::Fresh { .. } | Self::Link { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_not_followed_on_the_way_to_what_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc", dir.join("link")).unwrap();
        for step in [
            Arrange::Show { at: dir.clone(), source: dir.join("link") },
            Arrange::Lend { at: dir.clone(), source: dir.join("link/passwd") },
            Arrange::Fresh { at: dir.join("link") },
        ] {
            let arrangement = Arrangement { steps: vec![step], ..Arrangement::default() };
            assert!(matches!(arrangement.open(), Err(PathError::Linked { .. })), "{arrangement:?}");
        }
    }

    #[test]
    fn what_is_granted_where_there_is_no_view_is_read_or_written() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["read", "written"] {
            std::fs::create_dir(dir.join(name)).unwrap();
        }
        let arrangement = Arrangement {
            read_without_view: vec![dir.join("read")],
            write_without_view: vec![dir.join("written")],
            ..Arrangement::default()
        };
        let granted = arrangement.without_view().unwrap();
        let granted: Vec<(&Path, Access)> =
            granted.iter().map(|(opened, access)| (opened.path.as_path(), *access)).collect();
        assert_eq!(granted, [(&*dir.join("read"), Access::Read), (&*dir.join("written"), Access::Write)]);
    }

    #[test]
    fn a_report_of_files_without_a_view_says_what_is_open() {
        let arrangement =
            Arrangement { open_without_view: Some("open".to_owned()), ..Arrangement::default() };
        let absent = LayerReport::absent(Layer::Files, "no Landlock");
        let network = LayerReport::enforced(Layer::Network);
        for (report, told) in [
            (LayerReport::enforced(Layer::Files), LayerReport::partial(Layer::Files, "open")),
            (LayerReport::partial(Layer::Files, "a gap"), LayerReport::partial(Layer::Files, "a gap; open")),
            (absent.clone(), absent),
            (network.clone(), network),
        ] {
            assert_eq!(arrangement.reported_without_view(report.clone()), told);
            assert_eq!(Arrangement::default().reported_without_view(report.clone()), report);
        }
    }

    #[test]
    fn a_shown_path_is_read_and_a_lent_one_written() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let arrangement = Arrangement {
            steps: vec![
                Arrange::Show { at: dir.clone(), source: dir.clone() },
                Arrange::Lend { at: dir.clone(), source: dir.clone() },
                Arrange::Link { at: dir.join("a"), target: "b".into() },
            ],
            ..Arrangement::default()
        };
        let granted: Vec<Access> = arrangement
            .open()
            .unwrap()
            .iter()
            .filter_map(|step| step.granted().map(|(_, access)| access))
            .collect();
        assert_eq!(granted, [Access::Read, Access::Write]);
    }
}
