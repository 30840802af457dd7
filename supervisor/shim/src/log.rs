//! File of a worker's output. It is never larger than its cap, keeps the beginning and the end of the output, and is in
//! order at every moment. A run has two: the log of all output, and the standard output alone.
//!
//! Output fills the file up to its cap. From then on the first half stays, followed by one line that says how many
//! bytes were left out, and the rest holds the most recent output. When the rest is full, its newer half moves to its
//! front: each byte is copied at most once on average, with one small buffer, however long a flood lasts.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use crate::rundir::StdoutRecord;

/// Size below which a log has no room for two parts and a line between them, and keeps only its beginning.
const SMALLEST_SPLIT: u64 = 1024;
const CHUNK: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct CappedLog {
    file: File,
    cap: u64,
    /// Position of the next byte: the size of the file.
    at: u64,
    /// Bytes between head and tail that are no longer in the file.
    left_out: u64,
    /// Bytes that the file has refused (a full disk) since it last took some.
    lost: u64,
    /// Refused bytes that a line of the file reports.
    reported: u64,
    /// Number of all bytes written, refused bytes included.
    written: u64,
}

impl CappedLog {
    /// Opens an empty log (0600) and makes the directories above it (0700).
    pub(crate) fn create(path: &Path, cap: u64) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(no_link)
            .open(path)?;
        Ok(Self { file, cap, at: 0, left_out: 0, lost: 0, reported: 0, written: 0 })
    }

    /// Adds output. Bytes that the file refuses are counted, and reported in it once it takes bytes again.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        if self.lost > 0 {
            let noun = if self.lost == 1 { "byte" } else { "bytes" };
            let line = format!("\n[supervisor: {} {noun} could not be written]\n", self.lost);
            if self.append(line.as_bytes()) > 0 {
                self.lost += bytes.len() as u64;
                return;
            }
            self.reported += std::mem::take(&mut self.lost);
        }
        self.lost += self.append(bytes);
    }

    /// Writes the count of lost bytes at the end, if the file takes it.
    pub(crate) fn finish(&mut self) {
        self.write(b"");
    }

    /// Returns the size of the output, and of its parts in the file. Removed lines of the supervisor count like output.
    pub(crate) fn record(&self) -> StdoutRecord {
        let left_out = self.left_out + self.lost + self.reported;
        StdoutRecord { written: self.written, left_out: left_out.min(self.written) }
    }

    /// Adds bytes. Returns the number of bytes that the file refused.
    fn append(&mut self, mut bytes: &[u8]) -> u64 {
        while !bytes.is_empty() {
            let room = usize::try_from(self.cap.saturating_sub(self.at)).unwrap_or(usize::MAX);
            if room == 0 {
                match self.make_room() {
                    Ok(true) => continue,
                    Ok(false) => {
                        self.left_out += bytes.len() as u64;
                        return 0;
                    }
                    Err(_) => return bytes.len() as u64,
                }
            }
            match self.file.write_at(&bytes[..bytes.len().min(room)], self.at) {
                Ok(0) => return bytes.len() as u64,
                Ok(count) => {
                    self.at += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return bytes.len() as u64,
            }
        }
        0
    }

    /// Drops the older half of the tail. Returns false if the log is too small to have a tail.
    fn make_room(&mut self) -> io::Result<bool> {
        if self.cap < SMALLEST_SPLIT {
            return Ok(false);
        }
        let (head, tail, keep) = parts(self.cap);
        let from = self.at - keep;
        let dropped_from = if self.left_out == 0 { head } else { tail };
        let left_out = self.left_out + (from - dropped_from);

        let mut buffer = vec![0; CHUNK];
        let mut moved = 0;
        while moved < keep {
            let count = usize::try_from(keep - moved).unwrap_or(CHUNK).min(CHUNK);
            self.file.read_exact_at(&mut buffer[..count], from + moved)?;
            self.file.write_all_at(&buffer[..count], tail + moved)?;
            moved += count as u64;
        }
        self.file.write_all_at(marker(left_out).as_bytes(), head)?;
        self.file.set_len(tail + keep)?;
        self.left_out = left_out;
        self.at = tail + keep;
        Ok(true)
    }
}

/// Returns the layout of a log after a cut: the length of the head, the offset of the tail behind the line between
/// them, and the length of the tail.
fn parts(cap: u64) -> (u64, u64, u64) {
    let head = cap / 2;
    let tail = head + marker(0).len() as u64;
    (head, tail, cap.saturating_sub(tail) / 2)
}

/// Returns the position at which a reader that has read up to `offset` continues, in a log of `length` bytes with the
/// limit `cap`. A full log drops the older half of its tail and becomes shorter, so the reader's next byte moves toward
/// the front. A reader that is further behind misses the dropped part. In a log that was not cut, the position stays.
#[must_use]
pub fn after_cuts(file: &File, length: u64, cap: u64, offset: u64) -> u64 {
    let (head, tail, keep) = parts(cap);
    if offset <= length || offset > cap || cap < SMALLEST_SPLIT || !has_marker(file, head) {
        return offset;
    }
    (offset - (cap - tail - keep)).clamp(tail, length.max(tail))
}

/// Returns true once the line between head and tail is written.
fn has_marker(file: &File, head: u64) -> bool {
    let expected = marker(0);
    let mut found = vec![0; expected.len()];
    let is_digit = |byte: u8| byte == b' ' || byte.is_ascii_digit();
    file.read_exact_at(&mut found, head).is_ok()
        && found
            .iter()
            .zip(expected.bytes())
            .all(|(found, byte)| *found == byte || (is_digit(byte) && is_digit(*found)))
}

/// Returns the line between head and tail. Its length is constant.
fn marker(left_out: u64) -> String {
    format!("\n[supervisor: {left_out:>20} bytes left out]\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn log(cap: u64) -> (tempfile::TempDir, std::path::PathBuf, CappedLog) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("board/task/7.log");
        let log = CappedLog::create(&path, cap).unwrap();
        (place, path, log)
    }

    #[test]
    fn output_up_to_the_cap_is_the_whole_file() {
        let (_place, path, mut log) = log(4096);
        log.write(&[b'a'; 4095]);
        log.write(b"b");
        log.finish();
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text, format!("{}b", "a".repeat(4095)));
    }

    #[test]
    fn a_flood_keeps_head_and_end_counts_the_middle_and_never_exceeds_the_cap() {
        let (_place, path, mut log) = log(4096);
        let mut sent = String::new();
        for number in 0..5000 {
            let line = format!("line {number}\n");
            log.write(line.as_bytes());
            sent.push_str(&line);
            assert!(fs::metadata(&path).unwrap().len() <= 4096);
        }
        log.finish();
        let text = fs::read_to_string(path).unwrap();
        let (head, rest) = text.split_once("\n[supervisor: ").unwrap();
        let (count, end) = rest.split_once(" bytes left out]\n").unwrap();
        assert_eq!(head, &sent[..2048]);
        assert!(sent.ends_with(end) && end.len() > 900);
        assert_eq!(head.len() + count.trim().parse::<usize>().unwrap() + end.len(), sent.len());
    }

    #[test]
    fn a_reader_who_keeps_up_misses_nothing_when_the_log_is_cut() {
        let (_place, path, mut log) = log(4096);
        let (mut sent, mut seen, mut offset, mut cuts) = (Vec::new(), Vec::new(), 0, 0);
        for number in 0..3000 {
            let line = format!("line {number}\n");
            log.write(line.as_bytes());
            sent.extend_from_slice(line.as_bytes());
            let file = File::open(&path).unwrap();
            let length = file.metadata().unwrap().len();
            cuts += u64::from(offset > length);
            offset = after_cuts(&file, length, 4096, offset);
            let mut piece = vec![0; usize::try_from(length - offset).unwrap()];
            file.read_exact_at(&mut piece, offset).unwrap();
            seen.extend_from_slice(&piece);
            offset = length;
        }
        assert!(cuts > 10, "{cuts}");
        // The line of the log itself is among what is read at the first cut alone.
        let text = String::from_utf8(seen).unwrap();
        assert!(text.ends_with(&String::from_utf8(sent.clone()).unwrap()[sent.len() - 20_000..]));
        let file = File::open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        assert_eq!(after_cuts(&file, length, 4096, 5000), 5000, "no log is as long");
    }

    #[test]
    fn one_write_larger_than_the_log_is_cut_the_same_way() {
        let (_place, path, mut log) = log(2048);
        log.write(&vec![b'x'; 100_000]);
        let text = fs::read_to_string(path).unwrap();
        assert!(text.len() <= 2048 && text.contains("bytes left out"));
    }

    #[test]
    fn a_tiny_log_keeps_its_beginning_and_an_empty_one_nothing() {
        let (_place, path, mut tiny) = log(10);
        tiny.write(b"0123456789abc");
        tiny.write(b"def");
        assert_eq!(fs::read(path).unwrap(), b"0123456789");
        let (_place, path, mut none) = log(0);
        none.write(b"x");
        assert_eq!(fs::read(path).unwrap(), b"");
    }

    #[test]
    fn what_a_full_disk_did_not_take_is_told_when_it_takes_some_again() {
        let (place, path, mut log) = log(4096);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let real = std::mem::replace(&mut log.file, full);
        log.write(b"gone");
        log.write(b"gone too");
        log.file = real;
        log.write(b"back\n");
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text, "\n[supervisor: 12 bytes could not be written]\nback\n");
        drop(place);
    }
}
