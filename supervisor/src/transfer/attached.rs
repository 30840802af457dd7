//! Whether every attachment of a board has its bytes: what `doctor` says of them, and `import`, `export` and `restore` too.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Blobs, BoardName, Digest, Flaw, Lack, Readers, SystemClock};

use crate::failure::Failure;
use crate::paths::Root;

/// The most files that a message names.
const TOLD: usize = 10;

/// What is wrong with the attachments of a board: each file in words. Reads every byte of them.
pub(crate) fn flaws(root: &Root, board: &BoardName) -> Result<(usize, Vec<String>), Failure> {
    let path = root.board(board);
    let readers = Readers::open(&path, Arc::new(SystemClock))?;
    let files = readers.with(|view| view.all_attachments())?;
    let blobs = Blobs::beside(&path);
    let mut seen: BTreeMap<Digest, Option<Flaw>> = BTreeMap::new();
    let mut flaws = Vec::new();
    for file in &files {
        let flaw = match seen.get(&file.sha256) {
            Some(flaw) => *flaw,
            None => blobs.examine(&file.sha256).map_err(kernel::Error::from)?,
        };
        seen.insert(file.sha256.clone(), flaw);
        flaws.extend(flaw.map(|flaw| Lack { file: file.clone(), flaw }.to_string()));
    }
    Ok((files.len(), flaws))
}

/// Flaws in one line.
pub(crate) fn listed(flaws: &[String]) -> String {
    let more = flaws.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", flaws.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("; "))
}
