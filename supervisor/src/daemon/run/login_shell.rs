//! Login shells of a worker. `/etc/profile` sets a `PATH` of its own, in which the programs of a run are not found; some agents run each
//! command in such a shell. What these shells read last in a home brings the run's `PATH` back.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variable that has the run's `PATH`.
const VARIABLE: &str = "SUPERVISOR_PATH";

const TEXT: &str = "\
# /etc/profile has set another PATH: that of the run comes back.
if [ -n \"$SUPERVISOR_PATH\" ]; then
    PATH=$SUPERVISOR_PATH
    export PATH
fi
";

/// Adds the files of sh, bash and zsh to those of a home. What a lane says goes before.
pub(super) fn with_files(of_lane: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let own = [".profile", ".zprofile"].into_iter().map(|name| (PathBuf::from(name), TEXT.to_owned()));
    own.chain(of_lane).collect()
}

/// Keeps the `PATH` of a run for them.
pub(super) fn keep_path(env: &mut BTreeMap<String, String>) {
    if let Some(path) = env.get("PATH").cloned() {
        env.insert(VARIABLE.to_owned(), path);
    }
}
