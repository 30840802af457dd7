//! Checks the ownership of a root's directories. A user who owns such a directory, or may put a link into it, could
//! redirect this process's reads and writes.
//!
//! See decision 0093.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base::exit::Code;
use base::failure::Failure;
use base::paths::Root;

/// Refuses a root with a directory that another user owns or that every user may write. A missing directory is
/// acceptable: this user will create it.
pub fn require(root: &Root) -> Result<(), Failure> {
    let daemon_uid = nix::unistd::geteuid().as_raw();
    root.closed().iter().try_for_each(|dir| {
        let Ok(meta) = std::fs::metadata(dir) else { return Ok(()) };
        trusted(dir, meta.uid(), meta.mode(), daemon_uid)
    })
}

/// Refuses a directory that is not trusted. Directories of root are trusted by every user.
fn trusted(dir: &Path, owner: u32, mode: u32, daemon_uid: u32) -> Result<(), Failure> {
    let shown = dir.display();
    if owner != daemon_uid && owner != 0 {
        return Err(Failure::new(
            Code::NotPermitted,
            format!("{shown} belongs to uid {owner}, who could lead this command (uid {daemon_uid}) anywhere"),
        )
        .hint(format!(
            "run it as that user, or choose another root with --root DIR; if it is yours: chown {daemon_uid} {shown}"
        )));
    }
    if mode & 0o002 != 0 {
        return Err(Failure::new(
            Code::NotPermitted,
            format!(
                "{shown} can be written to by every user (mode {:04o}), who could redirect this command",
                mode & 0o7777
            ),
        )
        .hint(format!("chmod o-w {shown}, or choose another root with --root DIR")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_another_user_or_one_that_all_may_write_to_is_refused_with_the_way_out() {
        let dir = Path::new("/srv/x");
        for (owner, mode, own) in [(0, 0o755, 0), (7, 0o711, 7), (0, 0o775, 7), (7, 0o770, 7)] {
            trusted(dir, owner, mode, own).unwrap();
        }
        for (owner, mode, own, way) in
            [(7, 0o755, 0, "chown 0 /srv/x"), (8, 0o700, 7, "chown 7"), (0, 0o1777, 0, "chmod o-w /srv/x")]
        {
            let failure = trusted(dir, owner, mode, own).unwrap_err();
            assert_eq!(failure.code, Code::NotPermitted);
            assert!(failure.hint.unwrap().contains(way), "{}", failure.message);
        }
    }
}
