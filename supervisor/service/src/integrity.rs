//! Integrity check of a board when a daemon opens it: before the board is served, or in the background.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kernel::{BoardName, Depth, ShutdownState};

use super::Listener;
use base::failure::Failure;

/// Size in bytes up to which a board is checked before it is served, if its former daemon was killed in this boot. The
/// check then takes half a second. A killed process leaves no torn pages, so a larger board is served during its check.
const QUICK: u64 = 32 * 1024 * 1024;

/// Checks the integrity of a board that the daemon opens. The check runs in the background after a clean stop, and for a
/// large board after its daemon was killed; a fault is then reported to the owner loop. In any other case, such as after
/// a crash of the host, the call returns when the check is done.
///
/// # Errors
/// The first faults, if the check runs before the board is served.
pub(crate) fn check(name: &BoardName, path: &Path, daemon: &Arc<dyn Listener>) -> Result<(), Failure> {
    let shutdown_state = kernel::take_over(path, &boot_id()?);
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let in_background = match shutdown_state {
        ShutdownState::Closed => true,
        ShutdownState::Open => size > QUICK,
        ShutdownState::Unknown => false,
    };
    if !in_background {
        return Ok(kernel::require_whole(path, Depth::Structure)?);
    }
    let (name, path, daemon) = (name.clone(), path.to_owned(), Arc::clone(daemon));
    let check = move || {
        let began = Instant::now();
        match kernel::require_whole(&path, Depth::Structure) {
            Ok(()) => tracing::info!(board = %name, seconds = began.elapsed().as_secs_f64(), "board_whole"),
            // The owner loop may have ended; then the next daemon finds the fault.
            Err(error) => daemon.board_damaged(name, error.into()),
        }
    };
    let spawned = std::thread::Builder::new().name("board-check".to_owned()).spawn(check);
    spawned.map(drop).map_err(|e| Failure::failed(format!("failed to start the check of a board: {e}")))
}

/// Marks a board as closed in order, for the daemon that opens it next.
pub(crate) fn leave(name: &BoardName, path: &Path) {
    let marked = boot_id().and_then(|boot_id| kernel::leave(path, &boot_id).map_err(Failure::from));
    if let Err(error) = marked {
        tracing::warn!(board = %name, %error, "board_not_marked_as_closed");
    }
}

fn boot_id() -> Result<String, Failure> {
    shim::rundir::boot_id().map_err(|e| Failure::failed(format!("failed to read the boot id: {e}")))
}
