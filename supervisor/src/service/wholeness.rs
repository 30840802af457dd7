//! When a daemon makes sure that a board is whole: before it serves it, or beside that.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use kernel::{BoardName, Depth, Left};

use super::Listener;
use crate::failure::Failure;

/// A board up to this size is looked at before it is served even where its daemon was killed: that takes half a second.
/// A killed process leaves no torn pages, so a larger one is served meanwhile.
const QUICK: u64 = 32 * 1024 * 1024;

/// Makes sure that a board is whole, once for as long as the daemon has it open. After a clean stop that goes on beside
/// the service; a fault is reported to the owner loop then.
///
/// # Errors
/// The first faults, where it is looked at before anything is read from it or written to it.
pub(crate) fn check(name: &BoardName, path: &Path, daemon: &Arc<dyn Listener>) -> Result<(), Failure> {
    let left = kernel::take_over(path, &boot_id()?);
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let beside = match left {
        Left::Closed => true,
        Left::Open => size > QUICK,
        Left::Unknown => false,
    };
    if !beside {
        return Ok(kernel::require_whole(path, Depth::Structure)?);
    }
    let (name, path, daemon) = (name.clone(), path.to_owned(), Arc::clone(daemon));
    let check = move || {
        let began = Instant::now();
        match kernel::require_whole(&path, Depth::Structure) {
            Ok(()) => tracing::info!(board = %name, seconds = began.elapsed().as_secs_f64(), "board_whole"),
            // The owner loop may have ended; then the next daemon finds it.
            Err(error) => daemon.board_damaged(name, error.into()),
        }
    };
    let spawned = std::thread::Builder::new().name("board-check".to_owned()).spawn(check);
    spawned.map(drop).map_err(|e| Failure::failed(format!("failed to start the check of a board: {e}")))
}

/// Marks a board as closed.
pub(crate) fn leave(name: &BoardName, path: &Path) {
    let marked = boot_id().and_then(|boot_id| kernel::leave(path, &boot_id).map_err(Failure::from));
    if let Err(error) = marked {
        tracing::warn!(board = %name, %error, "board_not_marked_as_closed");
    }
}

fn boot_id() -> Result<String, Failure> {
    shim::rundir::boot_id().map_err(|e| Failure::failed(format!("failed to read the boot id: {e}")))
}
