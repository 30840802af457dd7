//! System calls that are refused to a confined run, compiled to one seccomp filter.
//!
//! The list has the calls that reach other processes, administer the kernel, make namespaces or mounts, or open a network
//! that Landlock does not restrict. A call of another architecture kills the process. Calls of x32, `clone3` and `openat2`
//! fail with ENOSYS: a filter cannot read the flags of `clone3` and the mode of `openat2`, which are in memory. glibc then
//! falls back to `clone`, and programs fall back to `openat`.

use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, sock_filter};

use crate::filter::{FilterError, Rules, add, bits, has, is, is_not, masked};
use crate::network::Reach;
use crate::process::{Process, Seccomp};
use crate::{mode_bits, scheduling};

/// Calls that are refused in every confined run.
const ALWAYS: &[i64] = &[
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The requests count towards a limit of the whole host (`fs.aio-max-nr`).
    libc::SYS_io_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_process_mrelease,
];

/// Calls that are refused in every confined run and exist on this architecture only.
#[cfg(target_arch = "x86_64")]
const NATIVE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const NATIVE: &[i64] = &[];

/// Number of `open_tree_attr` (Linux 6.15), the same on every architecture.
const OPEN_TREE_ATTR: i64 = 467;

/// Calls that are refused unless the policy lets a run trace its own processes.
const TRACING: &[i64] =
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_process_madvise];

/// Calls that are refused unless the policy allows System V and POSIX IPC. No rule of Landlock applies to these objects.
const IPC: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that `strict` refuses in addition: they permit code that no file contains.
const STRICT: &[i64] = &[libc::SYS_memfd_create, libc::SYS_personality];

/// Flags `CLONE_NEW*`, except for time: in `clone` the bit of `CLONE_NEWTIME` belongs to the signal number.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `TIOCSTI`, `TIOCLINUX` and `TIOCSETD`: type into a terminal, paste into a console, and give a terminal another line
/// discipline, for which the kernel loads a module (`ioctl_tty(2)`, `ioctl_console(2)`). The numbers come from `asm-generic`.
const TERMINAL: [u64; 3] = [0x5412, 0x541c, 0x5423];

/// Bits of the argument `type` of socket(2) without the flags.
const TYPE_MASK: u64 = 0xf;

/// Permission to make Unix sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSockets {
    /// Unix sockets may be made: other parts of the sandbox keep the run from the sockets of other processes.
    Allowed,
    /// Only connected pairs may be made (socketpair(2)).
    PairsOnly,
}

/// Compiles the filter of a policy for a run whose first process has the pid `own`; `None` if the policy switches the
/// filter off.
pub(crate) fn compile(
    process: &Process,
    reach: &Reach,
    unix: UnixSockets,
    own: u32,
) -> Result<Option<BpfProgram>, FilterError> {
    if process.seccomp == Seccomp::Off {
        return Ok(None);
    }
    let strict = process.seccomp == Seccomp::Strict;
    let mut rules = Rules::new();
    let lists = [
        (ALWAYS, true),
        (NATIVE, true),
        (TRACING, !process.debug),
        (IPC, !process.sysv_ipc),
        (STRICT, strict),
    ];
    for number in lists.into_iter().filter(|(_, on)| *on).flat_map(|(list, _)| list) {
        rules.insert(*number, Vec::new());
    }
    for flag in NAMESPACES {
        add(&mut rules, libc::SYS_clone, vec![has(0, bits(flag))?])?;
    }
    for command in TERMINAL {
        add(&mut rules, libc::SYS_ioctl, vec![is(1, command)?])?;
    }
    // PR_SET_MM changes the range in memory that /proc shows as the environment and the command line. The supervisor
    // recognises processes by their environment.
    add(&mut rules, libc::SYS_prctl, vec![is(0, bits(libc::PR_SET_MM))?])?;
    huge_pages(&mut rules, process)?;
    let fast_open = bits(libc::MSG_FASTOPEN);
    for (number, argument) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        add(&mut rules, number, vec![has(argument, fast_open)?])?;
    }
    scheduling::refuse_for_others(&mut rules, own)?;
    mode_bits::refuse(&mut rules)?;
    add(&mut rules, libc::SYS_socketpair, vec![is_not(0, bits(libc::AF_UNIX))?])?;
    sockets(&mut rules, reach, unix, strict)?;

    let arch = std::env::consts::ARCH;
    let target = TargetArch::try_from(arch).map_err(|_| FilterError::Architecture { arch })?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?;
    let mut program = prologue(target);
    program.extend(BpfProgram::try_from(filter)?);
    Ok(Some(program))
}

/// Refuses memory in huge pages, because the whole host shares one pool of them (`vm.nr_hugepages`). Calls that are always
/// refused get no rule, because a rule would narrow the refusal.
fn huge_pages(rules: &mut Rules, process: &Process) -> Result<(), FilterError> {
    add(rules, libc::SYS_mmap, vec![has(3, bits(libc::MAP_HUGETLB))?])?;
    if process.seccomp != Seccomp::Strict {
        add(rules, libc::SYS_memfd_create, vec![has(1, u64::from(libc::MFD_HUGETLB))?])?;
    }
    if process.sysv_ipc {
        add(rules, libc::SYS_shmget, vec![has(2, bits(libc::SHM_HUGETLB))?])?;
    }
    Ok(())
}

/// Refuses all socket families and types that the policy does not name.
fn sockets(rules: &mut Rules, reach: &Reach, unix: UnixSockets, strict: bool) -> Result<(), FilterError> {
    let socket = libc::SYS_socket;
    let mut families = Vec::new();
    if unix == UnixSockets::Allowed {
        families.push(libc::AF_UNIX);
    }
    if !strict {
        families.push(libc::AF_NETLINK);
    }
    if reach.stream || reach.datagram {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if families.is_empty() {
        rules.insert(socket, Vec::new());
        return Ok(());
    }
    let outside: Result<Vec<_>, _> = families.iter().map(|family| is_not(0, bits(*family))).collect();
    add(rules, socket, outside?)?;
    let route = bits(libc::NETLINK_ROUTE);
    add(rules, socket, vec![is(0, bits(libc::AF_NETLINK))?, is_not(2, route)?])?;

    let types = [
        (libc::SOCK_STREAM, libc::IPPROTO_TCP, reach.stream),
        (libc::SOCK_DGRAM, libc::IPPROTO_UDP, reach.datagram),
    ];
    for family in [libc::AF_INET, libc::AF_INET6].map(bits) {
        let mut others = vec![is(0, family)?];
        for (kind, protocol, _) in types.iter().filter(|(_, _, open)| *open) {
            let kind = bits(*kind);
            // The rules of Landlock for TCP do not apply to other protocols of the same type (MPTCP, SCTP, SMC, ping).
            let only =
                vec![is(0, family)?, masked(1, TYPE_MASK, kind)?, is_not(2, 0)?, is_not(2, bits(*protocol))?];
            add(rules, socket, only)?;
        }
        for kind in 0..=TYPE_MASK {
            if types.iter().any(|(open_kind, _, open)| *open && bits(*open_kind) == kind) {
                continue;
            }
            others.truncate(1);
            others.push(masked(1, TYPE_MASK, kind)?);
            add(rules, socket, others.clone())?;
        }
    }
    Ok(())
}

/// Returns instructions that run before the compiled rules: calls of x32, `clone3` and `openat2` fail with ENOSYS. They check
/// the architecture first, because the numbers depend on it. The compiled rules check it once more.
fn prologue(target: TargetArch) -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_GREATER_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32_BIT: u32 = 0x4000_0000;
    const CLONE3: u32 = 435;
    const OPENAT2: u32 = 437;
    const ERRNO: u32 = 0x0005_0000;
    const KILL_PROCESS: u32 = 0x8000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let audit = match target {
        TargetArch::x86_64 => 0xc000_003e,
        TargetArch::aarch64 => 0xc000_00b7,
        TargetArch::riscv64 => 0xc000_00f3,
    };
    let missing = ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        step(LOAD_WORD, 0, 0, 4),
        step(JUMP_EQUAL, 1, 0, audit),
        step(RETURN, 0, 0, KILL_PROCESS),
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_GREATER_EQUAL, 2, 0, X32_BIT),
        step(JUMP_EQUAL, 1, 0, CLONE3),
        step(JUMP_EQUAL, 0, 1, OPENAT2),
        step(RETURN, 0, 0, missing),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(stream: bool, datagram: bool) -> Reach {
        Reach { tcp: None, stream, datagram }
    }

    #[test]
    fn every_combination_compiles() {
        for seccomp in [Seccomp::Default, Seccomp::Strict] {
            for unix in [UnixSockets::Allowed, UnixSockets::PairsOnly] {
                for (stream, datagram) in [(false, false), (true, false), (false, true), (true, true)] {
                    let process = Process { seccomp, ..Process::default() };
                    let program = compile(&process, &reach(stream, datagram), unix, 42).unwrap().unwrap();
                    assert!(program.len() < 4096, "{} instructions", program.len());
                }
            }
        }
    }

    #[test]
    fn the_calls_on_terminals_have_the_numbers_of_this_architecture() {
        assert_eq!(TERMINAL, [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD]);
    }

    #[test]
    fn no_filter_is_made_when_none_is_asked_for() {
        let process = Process { seccomp: Seccomp::Off, ..Process::default() };
        assert!(compile(&process, &reach(true, true), UnixSockets::Allowed, 42).unwrap().is_none());
    }

    #[test]
    fn a_policy_for_debugging_or_shared_memory_refuses_fewer_calls() {
        let length = |process: Process| {
            compile(&process, &reach(false, false), UnixSockets::Allowed, 42).unwrap().unwrap().len()
        };
        let usual = length(Process::default());
        assert!(length(Process { debug: true, ..Process::default() }) < usual);
        assert!(length(Process { sysv_ipc: true, ..Process::default() }) < usual);
    }
}
