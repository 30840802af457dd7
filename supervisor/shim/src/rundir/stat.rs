//! Reader of `/proc/<pid>/stat`, for processes on which this crate acts (`proc_pid_stat(5)`).

use std::fs;
use std::io;
use std::path::Path;

/// Fields of a `stat` line that this crate needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    /// The name of its program, cut to 15 bytes.
    pub name: String,
    /// The state: `R`, `S`, `D`, `T`, `Z`, …
    pub state: char,
    /// The parent's process id.
    pub parent: i32,
    /// The start time, in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessStat {
    /// Reads the line of a live or unreaped process.
    pub fn of_process(pid: i32) -> io::Result<Self> {
        Self::read(&Path::new("/proc").join(pid.to_string()).join("stat"))
    }

    /// Parses one line; none if it is invalid.
    ///
    /// The name stands in parentheses and may itself contain spaces and parentheses, so fields are counted from the
    /// last `)`.
    pub fn parse(line: &str) -> Option<Self> {
        let (head, rest) = line.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let mut fields = rest.split_ascii_whitespace();
        // Field 3 is the state, 4 the parent, 22 the start time; 17 lie between the last two.
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start_ticks = fields.nth(17)?.parse().ok()?;
        Some(Self { name: name.to_owned(), state, parent, start_ticks })
    }

    fn read(path: &Path) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        Self::parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = "42 (a) (b) R 7) S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3\n";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!(
            (stat.name.as_str(), stat.state, stat.parent, stat.start_ticks),
            ("a) (b) R 7", 'S', 17, 98_765)
        );
    }

    #[test]
    fn a_torn_line_is_no_process() {
        assert_eq!(ProcessStat::parse("42 (sh) S 17 42"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }

    #[test]
    fn the_calling_process_finds_itself() {
        let own = ProcessStat::of_process(std::process::id().cast_signed()).unwrap();
        let stat = procfs::process::Process::myself().unwrap().stat().unwrap();
        assert_eq!((own.start_ticks, own.parent), (stat.starttime, stat.ppid));
    }
}
