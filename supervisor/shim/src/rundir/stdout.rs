//! `stdout`: the standard output of a run that has ended, as its lane reads it.
//!
//! The file is not synced before the exit record, because a sync would cost every run time for a rare need. After a
//! power loss the file may be shorter than the record says. The record itself has the last 4096 bytes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::path::Path;

use super::ExitRecord;
use crate::cut_values::{CutValues, LINE_BYTES};

/// Limit on a line, in bytes.
const LONGEST: u64 = LINE_BYTES as u64;

/// Limit on a document, in bytes. No agent reports its end with more.
const DOCUMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Standard output of one run.
#[derive(Debug)]
pub struct Stdout {
    tail: String,
    /// None if the file is missing: the shim could not make it, or a power loss removed its name. The tail then takes
    /// its place.
    file: Option<File>,
}

impl Stdout {
    /// Opens the file of a run that has ended, if the shim made one.
    pub(super) fn open(path: &Path, record: &ExitRecord) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Stdout { tail: record.stdout_tail.clone(), file })
    }

    /// Opens the output so far of a live run, and returns its length. The last line may be incomplete.
    pub(super) fn so_far(path: &Path) -> io::Result<(Self, u64)> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((Stdout { tail: String::new(), file: Some(file) }, length))
    }

    /// Returns the last 4096 bytes.
    pub fn tail(&self) -> &str {
        &self.tail
    }

    /// Returns all of the kept output as one document; none if it is longer than 4 MiB.
    pub fn whole(&self) -> Option<Vec<u8>> {
        let Some(file) = &self.file else { return Some(self.tail.clone().into_bytes()) };
        let mut text = Vec::new();
        let count = file.take(DOCUMENT_BYTES + 1).read_to_end(&mut text).ok()?;
        (count as u64 <= DOCUMENT_BYTES).then_some(text)
    }

    /// Calls `take` with each line of the kept output, without its line end. Lines over 1 MiB are skipped. If the
    /// middle was cut out, two incomplete lines and a line of the supervisor are in its place. Nothing marks them, so a
    /// caller must skip lines that it cannot parse.
    pub fn each_line(&self, take: impl FnMut(&[u8])) {
        self.lines(Long::PassedOver, take);
    }

    /// Calls `take` with each line as [`Self::each_line`] does. In a line over 1 MiB, each long string, array and
    /// object is cut. The line is skipped only if it is still longer than that.
    pub fn each_json_line(&self, take: impl FnMut(&[u8])) {
        self.lines(Long::Cut, take);
    }

    fn lines(&self, long: Long, mut take: impl FnMut(&[u8])) {
        let Some(file) = &self.file else {
            self.tail.lines().for_each(|line| take(line.as_bytes()));
            return;
        };
        let mut reader = BufReader::new(file);
        // An earlier call may have read the file.
        if reader.rewind().is_err() {
            return;
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            // Output that the disk does not return is treated as missing.
            let Ok(count) = (&mut reader).take(LONGEST).read_until(b'\n', &mut line) else { return };
            match line.strip_suffix(b"\n") {
                Some(whole) => take(whole),
                None if count == 0 => return,
                None if (count as u64) < LONGEST => return take(&line),
                None => {
                    let rest = match long {
                        Long::PassedOver => reader.skip_until(b'\n').map(|_| None),
                        Long::Cut => cut_line(&line, &mut reader),
                    };
                    let Ok(rest) = rest else { return };
                    if let Some(line) = &rest {
                        take(line);
                    }
                }
            }
        }
    }
}

/// Treatment of a line that is longer than the limit.
#[derive(Clone, Copy)]
enum Long {
    PassedOver,
    Cut,
}

/// Reads the rest of a long line, and returns the line with its long values cut; none if it is still too long.
fn cut_line(beginning: &[u8], reader: &mut impl io::BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut cut = CutValues::default();
    cut.push(beginning);
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        cut.push(&chunk[..end.unwrap_or(chunk.len())]);
        let (count, is_over) = (end.map_or(chunk.len(), |end| end + 1), end.is_some() || chunk.is_empty());
        reader.consume(count);
        if is_over {
            return Ok(cut.line());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::Cause;

    fn lines(content: Option<&[u8]>, tail: &str) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("stdout");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let record = ExitRecord { stdout_tail: tail.to_owned(), ..ExitRecord::with_cause(Cause::Exited, 1) };
        let stdout = Stdout::open(&path, &record).unwrap();
        let mut lines = Vec::new();
        stdout.each_line(|line| lines.push(String::from_utf8_lossy(line).into_owned()));
        lines
    }

    #[test]
    fn each_line_comes_whole_also_the_last_without_an_end() {
        assert_eq!(lines(Some(b"one\n\ntwo"), "two"), ["one", "", "two"]);
        assert_eq!(lines(Some(b""), ""), [""; 0]);
    }

    #[test]
    fn a_line_without_an_end_takes_no_memory_and_hides_no_other() {
        let mut content = vec![b'x'; 3 * 1024 * 1024];
        content.extend_from_slice(b"\nlast\n");
        assert_eq!(lines(Some(&content), ""), ["last"]);
        let mut content = vec![b'x'; LINE_BYTES - 1];
        content.extend_from_slice(b"\nlast\n");
        assert_eq!(lines(Some(&content), "").len(), 2);
    }

    #[test]
    fn a_long_line_of_json_comes_with_its_strings_cut() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("stdout");
        let long = r#"a\"\\é\ud83d\ude00"#.repeat(200_000);
        let many = "[],".repeat(1_000_000);
        std::fs::write(&path, format!("{{\"a\":\"{long}\",\"b\":7}}\n[{many}1]\nlast")).unwrap();
        let stdout = Stdout::open(&path, &ExitRecord::with_cause(Cause::Exited, 1)).unwrap();
        let mut lines = Vec::new();
        stdout.each_json_line(|line| lines.push(String::from_utf8(line.to_vec()).unwrap()));
        assert_eq!(lines.len(), 2, "a line that stays too long is passed over");
        assert!(lines[0].len() < 65 * 1024 && lines[0].starts_with("{\"a\":\"a"), "{}", lines[0].len());
        assert!(lines[0].ends_with("\",\"b\":7}"), "{}", &lines[0][lines[0].len() - 40..]);
        assert_eq!(lines[1], "last");
    }

    #[test]
    fn a_document_comes_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("stdout");
        let whole = |size: u64| {
            std::fs::File::create(&path).unwrap().set_len(size).unwrap();
            let stdout = Stdout::open(&path, &ExitRecord::with_cause(Cause::Exited, 1)).unwrap();
            stdout.whole().map(|text| text.len() as u64)
        };
        assert_eq!(whole(7), Some(7));
        assert_eq!(whole(DOCUMENT_BYTES), Some(DOCUMENT_BYTES));
        assert_eq!(whole(DOCUMENT_BYTES + 1), None);
    }

    #[test]
    fn a_run_without_the_file_has_the_lines_of_its_tail() {
        assert_eq!(lines(None, "rn\nlast\n"), ["rn", "last"]);
    }
}
