//! Checks that every attachment of a board has its bytes, for `doctor`, `import`, `export` and `restore`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Blobs, BoardName, Digest, Flaw, Lack, Readers, SystemClock};

use base::failure::Failure;
use base::paths::Root;

/// Limit on the files that a message names.
const LISTED: usize = 10;

/// Returns the number of attachments, and a description of each defect. Reads every byte.
pub fn flaws(root: &Root, board: &BoardName) -> Result<(usize, Vec<String>), Failure> {
    let path = root.board(board);
    let readers = Readers::open(&path, Arc::new(SystemClock))?;
    let files = readers.with(|view| view.all_attachments())?;
    let blobs = Blobs::of_board(&path);
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

/// Joins flaws into one line.
pub fn listed(flaws: &[String]) -> String {
    let more = flaws.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", flaws.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join("; "))
}
