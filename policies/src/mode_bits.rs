//! Rules of the system call filter that keep a run from setting set-user-ID and set-group-ID bits.
//!
//! The run itself gains nothing by such a file, because of `no_new_privs`. But another user who executes a file that a
//! run has left in a shared directory would act as the run's user.

use nix::libc;
use seccompiler::SeccompCondition;

use crate::filter::{FilterError, Rules, add, bits, has};

/// `S_ISUID` and `S_ISGID` (inode(7)).
const BITS: [u64; 2] = [0o4000, 0o2000];

/// `fchmodat2`, Linux 6.6; the number is the same on every architecture.
const FCHMODAT2: i64 = 452;

/// Calls that set a mode, with the number of the argument that holds it.
const SET: [(i64, u8); 4] =
    [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];

/// System calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const SET_HERE: &[(i64, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const SET_HERE: &[(i64, u8)] = &[];

/// Calls that create a file if their flags say so, with the numbers of the arguments for flags and mode. Without such a
/// flag, the kernel ignores the mode, and callers may leave any value in it.
#[cfg(target_arch = "x86_64")]
const OPEN: &[(i64, u8, u8)] = &[(libc::SYS_openat, 2, 3), (libc::SYS_open, 1, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPEN: &[(i64, u8, u8)] = &[(libc::SYS_openat, 2, 3)];

/// The bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const TEMPORARY: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// Refuses both bits in every call that has its mode in an argument. `mkdir` ignores them, and the filter of a run
/// refuses `openat2`, whose mode is in memory.
pub(crate) fn refuse(rules: &mut Rules) -> Result<(), FilterError> {
    for bit in BITS {
        for (number, mode) in SET.iter().chain(SET_HERE) {
            add(rules, *number, vec![has(*mode, bit)?])?;
        }
        for (number, flags, mode) in OPEN {
            for making in [libc::O_CREAT, TEMPORARY] {
                let conditions: Vec<SeccompCondition> = vec![has(*flags, bits(making))?, has(*mode, bit)?];
                add(rules, *number, conditions)?;
            }
        }
    }
    Ok(())
}
