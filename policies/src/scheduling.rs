//! Calls that change the scheduling or the limits of a process. A run may make them only for itself.
//!
//! Neither Landlock nor its scope for signals restricts these calls, and for processes of the same user the kernel asks
//! for no privilege. A filter sees numbers and cannot tell to which process they belong, so a number is allowed only if
//! it means the caller (0) or equals the pid of the run's first process.

use nix::libc;
use seccompiler::SeccompCondition;

use crate::filter::{FilterError, Rules, add, is, is_not};

/// Calls whose first argument is a process; 0 means the caller.
const BY_PROCESS: [i64; 5] = [
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setaffinity,
    libc::SYS_prlimit64,
];

/// Calls whose first argument is the kind of the second: the numbers for a process, a process group and a user
/// (`setpriority(2)`, `ioprio_set(2)`).
const BY_KIND: [(i64, [u64; 3]); 2] = [(libc::SYS_setpriority, [0, 1, 2]), (libc::SYS_ioprio_set, [1, 2, 3])];

/// Refuses these calls for processes other than the caller and the run's first process, `own_pid`.
pub(crate) fn refuse_for_others(rules: &mut Rules, own_pid: u32) -> Result<(), FilterError> {
    for number in BY_PROCESS {
        add(rules, number, another(0, own_pid)?)?;
    }
    for (number, [process, group, user]) in BY_KIND {
        for kind in [process, group] {
            let mut conditions = another(1, own_pid)?;
            conditions.push(is(0, kind)?);
            add(rules, number, conditions)?;
        }
        // All processes of a user are refused, for any user.
        add(rules, number, vec![is(0, user)?])?;
    }
    Ok(())
}

fn another(argument: u8, own_pid: u32) -> Result<Vec<SeccompCondition>, FilterError> {
    Ok(vec![is_not(argument, 0)?, is_not(argument, u64::from(own_pid))?])
}
