//! Resource limits that a process sets on itself, and limits that its cgroup enforces.

use std::fmt;
use std::str::FromStr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::controller::Controller;
use crate::shares::{Holders, PENDING};

/// Resource limits. A limit that is left out keeps the value of the caller, unless its line names another default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Processes and threads of the whole run (`pids.max`, and `RLIMIT_NPROC` for a run with its own user).
    pub pids: Option<u64>,
    /// Memory of the whole run (`memory.max`).
    pub memory: Option<ByteSize>,
    /// Processors (`cpu.max`).
    pub cpu: Option<f64>,
    /// Open file descriptors of one process.
    pub files: Option<u64>,
    /// Largest size of a file that a process writes (`RLIMIT_FSIZE`).
    pub file_size: Option<ByteSize>,
    /// Size of a core file; 0 if left out.
    pub core: ByteSize,
    /// Locked memory of one process; 64 KiB if left out.
    pub locked_memory: Option<ByteSize>,
    /// Bytes in the POSIX message queues of the user; 0 if left out.
    pub message_queues: ByteSize,
    /// Address space of one process. Programs that reserve much of it do not work under such a limit (JVM, node,
    /// sanitizers).
    pub address_space: Option<ByteSize>,
}

/// Number of bytes, written as an integer or as a text such as `"64KiB"` or `"2GiB"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "SizeForm", into = "u64")]
#[schemars(with = "SizeForm")]
pub struct ByteSize(pub u64);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum SizeForm {
    Bytes(u64),
    /// A number with a unit.
    Text(String),
}

impl TryFrom<SizeForm> for ByteSize {
    type Error = String;

    fn try_from(written: SizeForm) -> Result<Self, String> {
        match written {
            SizeForm::Bytes(bytes) => Ok(Self(bytes)),
            SizeForm::Text(text) => text.parse(),
        }
    }
}

impl From<ByteSize> for u64 {
    fn from(size: ByteSize) -> Self {
        size.0
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("`{text}` is not a size; write bytes, or a whole number with KiB, MiB, GiB or TiB");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        let shift = match text[digits.len()..].trim() {
            "" | "B" => 0,
            "KiB" | "K" => 10,
            "MiB" | "M" => 20,
            "GiB" | "G" => 30,
            "TiB" | "T" => 40,
            _ => return Err(bad()),
        };
        let number: u64 = digits.parse().map_err(|_| bad())?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(bad)
    }
}

/// Writes the size in the largest unit that fits, with one decimal below ten: `1.5 GiB`, `64 MiB`.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut whole, mut rest, mut unit) = (self.0, 0, "B");
        for next in ["KiB", "MiB", "GiB", "TiB"] {
            if whole < 1024 {
                break;
            }
            (rest, whole, unit) = (whole % 1024 * 10 / 1024, whole / 1024, next);
        }
        if whole < 10 && unit != "B" {
            write!(f, "{whole}.{rest} {unit}")
        } else {
            write!(f, "{whole} {unit}")
        }
    }
}

impl fmt::Debug for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// Processes that `RLIMIT_NPROC` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The processes of the run, which has its own user or user namespace.
    Alone,
    /// All processes of the user, so the limit is not set.
    Shared,
}

/// Limits that apply to a process before it executes the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// The limits of its cgroup, which it joins first.
    Group,
    /// The limits of its cgroup, and the limits that it has set on itself.
    All,
}

impl Limits {
    /// Returns the controllers without which a limit is not enforced at all.
    pub(crate) fn controllers(&self) -> impl Iterator<Item = Controller> {
        let asked = |controller: &Controller| match controller {
            Controller::Cpu => self.cpu.is_some(),
            Controller::Memory => self.memory.is_some(),
            Controller::Pids => self.pids.is_some(),
        };
        Controller::ALL.into_iter().filter(|controller| controller.is_alone()).filter(asked)
    }

    /// Returns true if one of the limits that apply to a process can have caused an error with this number.
    pub fn explain(&self, errno: i32, holding: Holding) -> bool {
        let is_set = holding == Holding::All;
        match rustix::io::Errno::from_raw_os_error(errno) {
            rustix::io::Errno::AGAIN => self.pids.is_some(),
            rustix::io::Errno::MFILE => is_set && self.files.is_some(),
            rustix::io::Errno::NOMEM => self.memory.is_some() || (is_set && self.address_space.is_some()),
            rustix::io::Errno::FBIG => is_set && self.file_size.is_some(),
            _ => false,
        }
    }

    /// Returns the limits that together bound the number of open files of the run.
    pub(crate) fn holders(&self) -> Holders {
        Holders { files: self.files, pids: self.pids }
    }

    /// Sets the soft and hard limits of this process. A lower inherited hard limit is kept.
    ///
    /// # Errors
    /// Name of the resource that could not be limited, with the number of the error.
    pub(crate) fn apply(&self, counting: Counting) -> Result<(), (&'static str, rustix::io::Errno)> {
        let pids = self.pids.filter(|_| counting == Counting::Alone);
        let locked = self.locked_memory.map_or(64 << 10, |size| size.0);
        let wanted = [
            ("core", Resource::Core, Some(self.core.0)),
            ("files", Resource::Nofile, self.files),
            ("pids", Resource::Nproc, pids),
            ("file_size", Resource::Fsize, self.file_size.map(|size| size.0)),
            ("locked_memory", Resource::Memlock, Some(locked)),
            ("message_queues", Resource::Msgqueue, Some(self.message_queues.0)),
            ("address_space", Resource::As, self.address_space.map(|size| size.0)),
            ("pending signals", Resource::Sigpending, Some(PENDING)),
            // Without these, the worker would inherit the caller's permission to raise its priority.
            ("real-time priority", Resource::Rtprio, Some(0)),
            ("priority", Resource::Nice, Some(0)),
        ];
        for (name, resource, value) in wanted {
            let Some(value) = value else { continue };
            let hard = getrlimit(resource).maximum.map_or(value, |hard| hard.min(value));
            setrlimit(resource, Rlimit { current: Some(hard), maximum: Some(hard) })
                .map_err(|errno| (name, errno))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!("2GiB".parse(), Ok(ByteSize(2 << 30)));
        assert_eq!("64 KiB".parse(), Ok(ByteSize(64 << 10)));
        for (text, shift) in
            [("17B", 0), ("17 K", 10), ("17 MiB", 20), ("17G", 30), ("17 TiB", 40), ("17 T", 40)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(17 << shift)), "{text}");
        }
        assert_eq!("17".parse(), Ok(ByteSize(17)));
        assert!("2 parsecs".parse::<ByteSize>().is_err());
        assert!("-1".parse::<ByteSize>().is_err());
        assert!("99999999999TiB".parse::<ByteSize>().is_err());
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit_of_which_there_is_one() {
        for (bytes, shown) in [
            (0, "0 B"),
            (9, "9 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10_239, "9.9 KiB"),
            (10 << 10, "10 KiB"),
            (64 << 20, "64 MiB"),
            ((1 << 30) + (1 << 29), "1.5 GiB"),
            (3 << 40, "3.0 TiB"),
            (2048 << 40, "2048 TiB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), shown);
            assert_eq!(format!("{:?}", ByteSize(bytes)), format!("{bytes} B"));
        }
    }

    #[test]
    fn an_error_is_explained_by_a_limit_that_is_set_and_holds() {
        use rustix::io::Errno;
        let size = Some(ByteSize(1));
        let pids = Limits { pids: Some(1), ..Limits::default() };
        let files = Limits { files: Some(1), ..Limits::default() };
        let memory = Limits { memory: size, ..Limits::default() };
        let address_space = Limits { address_space: size, ..Limits::default() };
        let file_size = Limits { file_size: size, ..Limits::default() };
        let explained = |limits: &Limits, holding| {
            let errors = [Errno::AGAIN, Errno::MFILE, Errno::NOMEM, Errno::FBIG, Errno::PERM];
            errors.map(|error| u8::from(limits.explain(error.raw_os_error(), holding)))
        };
        for (limits, of_group, of_all) in [
            (Limits::default(), [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
            (pids, [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]),
            (files, [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]),
            (memory, [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]),
            (address_space, [0, 0, 0, 0, 0], [0, 0, 1, 0, 0]),
            (file_size, [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]),
        ] {
            assert_eq!(explained(&limits, Holding::Group), of_group, "{limits:?}");
            assert_eq!(explained(&limits, Holding::All), of_all, "{limits:?}");
        }
    }
}
