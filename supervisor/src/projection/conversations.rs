//! The conversations of the program: the database that it keeps them in outlives the run where its lane has a directory for that, and says what
//! they have used.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kernel::ProjectedUse;

use crate::environment;
use crate::lanes::usage_line;

/// The directory in the home of the run that outlives it: `state` of the lane `hermes`.
const KEPT: &str = ".hermes-sessions";
/// The variable that names the directory of the program, and the directory in the home of the run where it is not set.
const OWN: (&str, &str) = ("HERMES_HOME", ".hermes");
/// The database in its directory.
const DATABASE: &str = "state.db";

/// The database, and what it said before the program began.
pub(super) struct Conversations {
    path: PathBuf,
    before: ProjectedUse,
}

impl Conversations {
    /// Leads the program to the database that outlives the run, if there is a place for one.
    pub(super) fn prepare() -> io::Result<Self> {
        let home = PathBuf::from(environment::text("HOME").unwrap_or_default());
        let own = environment::text(OWN.0).map_or_else(|| home.join(OWN.1), PathBuf::from);
        Self::between(&home.join(KEPT), &own)
    }

    fn between(kept: &Path, own: &Path) -> io::Result<Self> {
        let path = if kept.is_dir() {
            let (path, link) = (kept.join(DATABASE), own.join(DATABASE));
            std::fs::create_dir_all(own)?;
            // The home is new in each run: what is there comes from the lane's own files.
            if link.symlink_metadata().is_err() {
                symlink(&path, &link)?;
            }
            path
        } else {
            own.join(DATABASE)
        };
        let before = ProjectedUse::read(&path).unwrap_or_default();
        Ok(Conversations { path, before })
    }

    /// The line that says what was used since by a program that has ended with a code; none where it has had no conversation.
    pub(super) fn used(&self, code: u8) -> Option<String> {
        let used = ProjectedUse::read(&self.path).ok()?;
        used.spent.session.is_some().then(|| usage_line(used.since(&self.before), code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_finds_the_database_of_the_last_run_where_its_lane_keeps_one() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, own) = (dir.path().join("kept"), dir.path().join("own"));
        let alone = Conversations::between(&kept, &own).unwrap();
        assert_eq!(alone.path, own.join(DATABASE));
        assert!(!own.exists() && alone.used(0).is_none());
        std::fs::create_dir(&kept).unwrap();
        for _ in 0..2 {
            let linked = Conversations::between(&kept, &own).unwrap();
            assert_eq!(linked.path, kept.join(DATABASE));
            std::fs::write(own.join(DATABASE), "rows").unwrap();
            assert_eq!(std::fs::read_to_string(kept.join(DATABASE)).unwrap(), "rows");
            assert!(linked.used(0).is_none(), "it is no database");
        }
    }
}
