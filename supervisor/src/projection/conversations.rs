//! Database of the program's conversations, which contains the usage. The database outlives the run if its lane keeps a
//! directory for it.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kernel::ProjectedUse;

use base::environment;
use setup::lanes::usage_line;

/// Directory in the run's home that outlives the run: `state` of the lane `hermes`.
const KEPT: &str = ".hermes-sessions";
/// Variable that names the program's directory, and the default directory in the run's home.
const OWN: (&str, &str) = ("HERMES_HOME", ".hermes");
const DATABASE: &str = "state.db";

/// The database, with its usage before the program began.
pub(super) struct Conversations {
    path: PathBuf,
    before: ProjectedUse,
}

impl Conversations {
    /// Links the program to the database that outlives the run, if there is a directory for it.
    pub(super) fn prepare() -> io::Result<Self> {
        let home = PathBuf::from(environment::text("HOME").unwrap_or_default());
        let program_home = environment::text(OWN.0).map_or_else(|| home.join(OWN.1), PathBuf::from);
        Self::between(&home.join(KEPT), &program_home)
    }

    fn between(kept: &Path, program_home: &Path) -> io::Result<Self> {
        let path = if kept.is_dir() {
            let (path, link) = (kept.join(DATABASE), program_home.join(DATABASE));
            std::fs::create_dir_all(program_home)?;
            // The home is new in each run, so an existing file is one of the lane's own.
            if link.symlink_metadata().is_err() {
                symlink(&path, &link)?;
            }
            path
        } else {
            program_home.join(DATABASE)
        };
        let before = ProjectedUse::read(&path).unwrap_or_default();
        Ok(Conversations { path, before })
    }

    /// Returns the line with the usage of a program that ended with `code`; none without a conversation.
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
