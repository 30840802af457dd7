//! Writes files that define something by name: a profile, a tenant, a schedule.

use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::make_dir;
use crate::failure::Failure;

/// Byte order mark, with which editors of Windows begin a file.
const MARK: char = '\u{feff}';

/// Form of a text file that an edit keeps: its byte order mark and its line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextForm {
    has_mark: bool,
    line_end: &'static str,
}

impl TextForm {
    /// Returns the form of a text, and the text without its mark. The first line end stands for all.
    pub fn split(text: &str) -> (Self, &str) {
        let content = text.strip_prefix(MARK);
        let first = text.split_inclusive('\n').next().unwrap_or_default();
        let line_end = if first.ends_with("\r\n") { "\r\n" } else { "\n" };
        (TextForm { has_mark: content.is_some(), line_end }, content.unwrap_or(text))
    }

    /// Returns the line end of the file.
    pub fn line_end(self) -> &'static str {
        self.line_end
    }

    /// Returns a text without a mark as the file has it: with its mark.
    pub fn marked(self, text: &str) -> String {
        if self.has_mark { format!("{MARK}{text}") } else { text.to_owned() }
    }

    /// Returns a new text with single line feeds in the form of the file.
    pub fn written(self, text: &str) -> String {
        self.marked(&text.replace('\n', self.line_end))
    }
}

/// Replaces a world-readable file atomically, and makes its directory if missing. A concurrent reader sees the old
/// text or the new.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |e: io::Error| Failure::file("write", path, &e);
    let dir = path.parent().unwrap_or(Path::new("/"));
    make_dir(dir, 0o755)?;
    let mut draft = tempfile::NamedTempFile::new_in(dir).map_err(fail)?;
    draft.write_all(text.as_bytes()).map_err(fail)?;
    draft.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(fail)?;
    draft.as_file().sync_all().map_err(fail)?;
    draft.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}
