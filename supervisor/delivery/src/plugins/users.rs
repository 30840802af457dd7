//! Users of plugins, for a daemon run by root: each plugin has its own, which owns its state.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kernel::BoardId;
use policies::Identity;

use crate::program::give;
use base::failure::Failure;
use base::paths::make_dir;
use service::Service;
use setup::automation::plugins::Plugin;

/// Number that allocates the uids of plugins; no board has it.
const PLUGINS: u128 = 2;

/// Makes the state of a plugin if it is missing, and returns its owner. Blocks; the caller makes one call at a time.
pub(super) fn ensure_state(service: &Service, plugin: &Plugin) -> Result<Option<Identity>, Failure> {
    let state = plugin.state();
    let euid = nix::unistd::geteuid();
    let owner = match std::fs::symlink_metadata(&state) {
        Ok(meta) if meta.is_dir() => Some(meta.uid()),
        Ok(_) => return Err(Failure::failed(format!("{} is not a directory", state.display()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Failure::file("look at", &state, &e)),
    };
    if !euid.is_root() {
        return match owner {
            Some(uid) if uid != euid.as_raw() => Err(of_another(&state, uid)),
            Some(_) => Ok(None),
            None => make_dir(&state, 0o700).map(|()| None),
        };
    }
    let config = service.config();
    let range = service.worker_uids().range(BoardId(uuid::Uuid::from_u128(PLUGINS)), &config.worker)?;
    let uid = match owner {
        // The state keeps its user, so that the plugin can read its files again.
        Some(uid) if (range.first..=range.last).contains(&uid) => uid,
        Some(uid) if uid != euid.as_raw() => return Err(of_another(&state, uid)),
        Some(_) | None => {
            let taken = taken(service);
            let free = (range.first..=range.last).find(|uid| !taken.contains(uid));
            free.ok_or_else(|| Failure::failed("no user is left for the plugin"))?
        }
    };
    let identity = Some(Identity { uid, gid: uid });
    make_dir(&state, 0o700)?;
    give(&state, identity)?;
    Ok(identity)
}

fn of_another(state: &Path, uid: u32) -> Failure {
    Failure::failed(format!("{} belongs to the user {uid}, who is not that of the plugin", state.display()))
        .hint("remove it, or give it to the user of the daemon")
}

/// Returns the users of all plugins' states.
fn taken(service: &Service) -> Vec<u32> {
    let entries = std::fs::read_dir(service.root().plugins_dir()).into_iter().flatten().flatten();
    let states = entries.map(|entry| entry.path().join("state"));
    states.filter_map(|state| Some(std::fs::symlink_metadata(state).ok()?.uid())).collect()
}
