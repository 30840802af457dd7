//! The system calls of a start, from the claim to the worker's first instruction: which there are, and which errors a host
//! that lacks something answers them with.

use std::collections::BTreeMap;
use std::fs;

use nix::errno::Errno;
use nix::unistd::Pid;

/// Resource that a call requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// A descriptor for a path: in the first argument, or in the second behind a directory.
    Path(usize),
    /// A descriptor without a path.
    Descriptor,
    /// A process.
    Process,
    /// A place on a file system, beneath a path.
    Place(usize),
    /// Memory of the kernel.
    Memory,
}

/// The calls of `x86_64` that a start makes and that a host may have nothing for (syscall numbers of `unistd_64.h`).
const CALLS: [(u64, &str, Asks); 38] = [
    (2, "open", Asks::Path(0)),
    (257, "openat", Asks::Path(1)),
    (437, "openat2", Asks::Path(1)),
    (22, "pipe", Asks::Descriptor),
    (293, "pipe2", Asks::Descriptor),
    (53, "socketpair", Asks::Descriptor),
    (283, "timerfd_create", Asks::Descriptor),
    (290, "eventfd2", Asks::Descriptor),
    (319, "memfd_create", Asks::Descriptor),
    (434, "pidfd_open", Asks::Descriptor),
    (428, "open_tree", Asks::Descriptor),
    (430, "fsopen", Asks::Descriptor),
    (432, "fsmount", Asks::Descriptor),
    (444, "landlock_create_ruleset", Asks::Descriptor),
    (292, "dup3", Asks::Descriptor),
    (56, "clone", Asks::Process),
    (57, "fork", Asks::Process),
    (58, "vfork", Asks::Process),
    (435, "clone3", Asks::Process),
    (83, "mkdir", Asks::Place(0)),
    (258, "mkdirat", Asks::Place(1)),
    (82, "rename", Asks::Place(0)),
    (264, "renameat", Asks::Place(1)),
    (316, "renameat2", Asks::Place(1)),
    (88, "symlink", Asks::Place(1)),
    (92, "chown", Asks::Place(0)),
    (260, "fchownat", Asks::Place(1)),
    (90, "chmod", Asks::Place(0)),
    (268, "fchmodat", Asks::Place(1)),
    (59, "execve", Asks::Memory),
    (80, "chdir", Asks::Memory),
    (116, "setgroups", Asks::Memory),
    (165, "mount", Asks::Memory),
    (272, "unshare", Asks::Memory),
    (317, "seccomp", Asks::Memory),
    (429, "move_mount", Asks::Memory),
    (445, "landlock_add_rule", Asks::Memory),
    (446, "landlock_restrict_self", Asks::Memory),
];

/// Places in which a daemon opens files for a start. Files elsewhere have nothing to do with a start.
const PLACES: [&str; 7] =
    ["/runs/default/", "/homes/", "/workspaces/", "/logs/", "/leases/", "/sys/fs/cgroup/", "/run.new"];

/// A kind of call in one of the processes of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Process that makes the call: `daemon`, `__shim`, `__confine`, …
    pub(crate) part: String,
    /// Its name.
    pub(crate) call: String,
    /// Number of such calls of a start.
    pub(crate) count: u64,
}

impl Step {
    /// Reads `<part>:<call>:<count>`.
    pub(crate) fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split(':').collect();
        Step { part: words[0].to_owned(), call: words[1].to_owned(), count: words[2].parse().unwrap() }
    }

    /// The errors by which a host says that it has nothing for the call.
    pub(crate) fn errors(&self) -> &'static [Errno] {
        let asks = CALLS.iter().find(|(_, name, _)| *name == self.call).unwrap().2;
        match asks {
            Asks::Path(_) | Asks::Descriptor => &[Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM],
            Asks::Process => &[Errno::EAGAIN, Errno::ENOMEM],
            Asks::Place(_) => &[Errno::ENOSPC, Errno::ENOMEM],
            Asks::Memory => &[Errno::ENOMEM],
        }
    }
}

/// Treatment of a start's calls.
#[derive(Debug, Default)]
pub(crate) enum Start {
    /// They pass.
    #[default]
    Pass,
    /// They are counted.
    Record {
        /// Number of calls by part and name.
        seen: BTreeMap<(String, &'static str), u64>,
        /// True if the command runs.
        begun: bool,
    },
    /// One call fails.
    Fail {
        /// The number of its error.
        errno: i64,
        /// Its process.
        part: String,
        /// Its name.
        call: String,
        /// Number of its kind that succeed before it.
        pass: u64,
        /// True if all later ones fail too.
        lasting: bool,
        /// Number of calls so far.
        calls: u64,
        /// True if the command runs.
        begun: bool,
    },
}

impl Start {
    /// Reads an order.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        match words {
            ["record"] => Some(Start::Record { seen: BTreeMap::new(), begun: false }),
            ["step", errno, part, call, pass, last] => Some(Start::Fail {
                errno: errno.parse().unwrap(),
                part: (*part).to_owned(),
                call: (*call).to_owned(),
                pass: pass.parse().unwrap(),
                lasting: *last == "lasting",
                calls: 0,
                begun: false,
            }),
            _ => None,
        }
    }

    /// Returns the result of an order.
    pub(crate) fn report(self) -> Option<String> {
        match self {
            Start::Pass => None,
            Start::Record { seen, .. } => {
                let steps = seen.iter().map(|((part, call), count)| format!("{part}:{call}:{count}"));
                Some(steps.collect::<Vec<_>>().join(" "))
            }
            Start::Fail { calls, pass, .. } => {
                Some(if calls > pass { "failed" } else { "nothing" }.to_owned())
            }
        }
    }

    /// A command runs: what comes now is no start any more.
    pub(crate) fn has_begun(&mut self) {
        match self {
            Start::Pass => {}
            Start::Record { begun, .. } | Start::Fail { begun, .. } => *begun = true,
        }
    }

    /// Decides about a call: the number of the error that it gets.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn decide(&mut self, pid: Pid, registers: &nix::libc::user_regs_struct) -> Option<i64> {
        if matches!(self, Start::Pass | Start::Record { begun: true, .. } | Start::Fail { begun: true, .. }) {
            return None;
        }
        let (_, name, asks) = CALLS.iter().find(|(number, ..)| *number == registers.orig_rax)?;
        // A question for the version, which makes nothing (landlock_create_ruleset(2)).
        if *name == "landlock_create_ruleset" && registers.rdx != 0 {
            return None;
        }
        let own = part(pid);
        if own == "daemon" && !is_of_a_start(pid, *asks, registers) {
            return None;
        }
        match self {
            Start::Record { seen, .. } => {
                *seen.entry((own, name)).or_default() += 1;
                None
            }
            Start::Fail { errno, part, call, pass, lasting, calls, .. } if *part == own && call == name => {
                *calls += 1;
                let fails = *calls == *pass + 1 || (*lasting && *calls > *pass);
                fails.then_some(*errno)
            }
            Start::Fail { .. } | Start::Pass => None,
        }
    }
}

/// Returns the part of a start that a process is: the hidden verb that it was started with.
pub(crate) fn part(pid: Pid) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words.find(|word| word.starts_with("__")).map_or_else(|| "daemon".to_owned(), |word| word.into_owned())
}

/// Returns true if a call of the daemon itself belongs to a start. The daemon also starts threads and answers requests.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn is_of_a_start(pid: Pid, asks: Asks, registers: &nix::libc::user_regs_struct) -> bool {
    // CLONE_THREAD, in the flags themselves or in the first field of clone_args (clone(2)).
    const THREAD: u64 = 0x1_0000;
    match asks {
        Asks::Path(place) | Asks::Place(place) => {
            let path = text_at(pid, if place == 0 { registers.rdi } else { registers.rsi });
            PLACES.iter().any(|place| path.contains(place))
        }
        Asks::Process if registers.orig_rax == 56 => registers.rdi & THREAD == 0,
        Asks::Process if registers.orig_rax == 435 => {
            let flags = bytes_at(pid, registers.rdi, 8).try_into().map_or(THREAD, u64::from_ne_bytes);
            flags & THREAD == 0
        }
        Asks::Process | Asks::Memory => true,
        Asks::Descriptor => matches!(registers.orig_rax, 22 | 293 | 434),
    }
}

/// Bytes of a traced process.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn bytes_at(pid: Pid, address: u64, length: usize) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = vec![0; length];
    let memory = fs::File::open(format!("/proc/{pid}/mem"));
    let read = memory.and_then(|memory| memory.read_at(&mut bytes, address)).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

/// A text of a traced process.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn text_at(pid: Pid, address: u64) -> String {
    let bytes = bytes_at(pid, address, 4096);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
