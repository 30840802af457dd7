//! All lanes: the built-in ones, and those in `lanes.d/*.toml`, one file a lane, named by the file.

use std::path::{Path, PathBuf};

use kernel::Profile;

use super::{Lane, builtin};
use crate::config::definitions::{Defect, Definitions, FileDefinition, Subject};
use base::paths::Root;

/// All lanes by name.
pub type Lanes = Definitions<Lane>;

impl FileDefinition for Lane {
    const SUBJECT: fn(String) -> Subject = Subject::Lane;

    fn directory(root: &Root) -> PathBuf {
        root.lanes_dir()
    }

    fn builtin() -> Vec<(String, Result<Self, Defect>)> {
        let read =
            |name: &str, text| Lane::parse(name, text, Path::new(&format!("the built-in lane {name}")));
        builtin::ALL.iter().map(|(name, text)| ((*name).to_owned(), read(name, text))).collect()
    }

    fn check(name: &str, _path: &Path) -> Result<(), String> {
        name.parse::<Profile>()
            .map(drop)
            .map_err(|e| format!("{e}; the file's name is the lane's name, which tasks are assigned to"))
    }

    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        Lane::parse(name, text, path)
    }
}

impl Definitions<Lane> {
    /// Returns the account of each lane that has an account.
    pub fn accounts(&self) -> kernel::Accounts {
        self.usable().filter_map(|(name, lane)| Some((name.parse().ok()?, lane.account.clone()?))).collect()
    }
}
