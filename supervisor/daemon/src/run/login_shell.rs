//! Keeps a run's `PATH` in login shells of its worker. `/etc/profile` sets another `PATH`, without the run's programs,
//! and some agents run each command in a login shell. Files in the home, which these shells read last, restore it.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variable that holds the run's `PATH`.
const VARIABLE: &str = "SUPERVISOR_PATH";

const TEXT: &str = "\
# /etc/profile has set another PATH: that of the run comes back.
if [ -n \"$SUPERVISOR_PATH\" ]; then
    PATH=$SUPERVISOR_PATH
    export PATH
fi
";

/// Adds the files of sh, bash and zsh to the files of a home. The lane's own files take precedence.
pub(super) fn with_files(of_lane: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let profile_files =
        [".profile", ".zprofile"].into_iter().map(|name| (PathBuf::from(name), TEXT.to_owned()));
    profile_files.chain(of_lane).collect()
}

/// Stores the run's `PATH` for these files.
pub(super) fn keep_path(env: &mut BTreeMap<String, String>) {
    if let Some(path) = env.get("PATH").cloned() {
        env.insert(VARIABLE.to_owned(), path);
    }
}
