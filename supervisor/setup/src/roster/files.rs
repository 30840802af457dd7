//! Reads, writes and removes the files of `profiles.d/`.
//!
//! The command line writes the files, with the rights of its user, and then asks the daemon to reload. The daemon itself
//! never writes configuration.

use std::io::ErrorKind;
use std::path::PathBuf;

use kernel::Profile;

use super::profile::ProfileDefinition;
use crate::config::definitions::Defect;
use crate::config::settings;
use base::exit::Code;
use base::failure::Failure;
use base::paths::{Root, definition_file};

/// Returns the path of a profile's file.
pub fn path_of(root: &Root, name: &Profile) -> PathBuf {
    root.profiles_dir().join(format!("{name}.md"))
}

/// Returns the text of a profile's file; none if the file does not exist.
pub fn text_of(root: &Root, name: &Profile) -> Result<Option<String>, Failure> {
    let path = path_of(root, name);
    settings::read_if_any(&path).map_err(|e| Failure::file("read", &path, &e))
}

/// Parses the text of a profile, so that an unusable text is refused before it is written.
pub fn check(root: &Root, name: &Profile, text: &str) -> Result<ProfileDefinition, Failure> {
    ProfileDefinition::parse(name.as_str(), text, &path_of(root, name)).map_err(|defect: Defect| {
        Failure::usage(defect.to_string())
            .hint("`supervisor help docs/profiles.md` describes the file; nothing was written")
    })
}

/// Checks the text of a profile and replaces its file atomically: a concurrent reader sees the old text or the new. Returns
/// the path of the file.
pub fn write(root: &Root, name: &Profile, text: &str) -> Result<PathBuf, Failure> {
    check(root, name, text)?;
    let path = path_of(root, name);
    definition_file::write(&path, text)?;
    Ok(path)
}

/// Removes the file of a profile. Returns its path.
pub fn remove(root: &Root, name: &Profile) -> Result<PathBuf, Failure> {
    let path = path_of(root, name);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(path),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            Err(Failure::new(Code::NotFound, format!("there is no file {}", path.display()))
                .hint("`supervisor profile list` shows the profiles"))
        }
        Err(e) => Err(Failure::file("remove", &path, &e)),
    }
}
