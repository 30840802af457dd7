//! Records of the shim, and the datagram by which it notifies the daemon of a new record.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

use crate::init::Init;
use crate::rundir::{
    ExitRecord, ExitSlot, PidRecord, RunDir, RunDirError, ShimSpec, StoreError, Usage, VERSION, boot_id,
    own_identity,
};

/// Time between attempts to write a record to a full disk. No event announces that there is space again.
const RETRY: Duration = Duration::from_secs(1);

/// Unit in which `getrusage(2)` counts storage reads and writes.
const BLOCK_BYTES: u64 = 512;
/// File that exists only if the kernel counts storage reads and writes (`CONFIG_TASK_IO_ACCOUNTING`).
const IO_ACCOUNTING: &str = "/proc/self/io";

/// Longest wait for a busy daemon. A daemon that misses the datagram finds the record at the end of the run.
const SEND_LIMIT: Duration = Duration::from_millis(200);

/// Reasons why the `pid` record could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PidError {
    /// The kernel did not say which boot this is.
    #[error("read the boot id")]
    BootId(#[source] io::Error),
    /// The shim could not read its own start time.
    #[error("read the shim's own start time")]
    Identity(#[source] io::Error),
    /// The record could not be written.
    #[error(transparent)]
    Write(RunDirError),
}

#[derive(Serialize)]
struct ShimEvent<'a> {
    board: &'a str,
    run: i64,
    what: &'a str,
}

/// Records that the calling process is the shim of the run, and the process on which its pid namespace depends.
pub(crate) fn write_pid(run: &RunDir, spec: &ShimSpec, init: Option<&Init>) -> Result<(), PidError> {
    let record = PidRecord {
        version: VERSION,
        boot_id: boot_id().map_err(PidError::BootId)?,
        board: spec.board.clone(),
        nonce: spec.nonce.clone(),
        shim: own_identity().map_err(PidError::Identity)?,
        init: init.map(|init| init.identity.clone()),
    };
    run.write_pid(&record).map_err(PidError::Write)
}

/// Notifies the daemon of a new record of this run. A daemon that is not running finds the record later.
pub(crate) fn send_event(spec: &ShimSpec, what: &str) {
    let send = || -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        // The queue of a socket is short (net.unix.max_dgram_qlen), and many runs may start at once.
        socket.set_write_timeout(Some(SEND_LIMIT))?;
        let event = ShimEvent { board: &spec.board, run: spec.run, what };
        socket.send_to(&serde_json::to_vec(&event)?, &spec.event_socket)?;
        Ok(())
    };
    send().ok();
}

/// Makes the exit record durable. On a full disk it tries until there is space: only the record has the end of the run,
/// and the lock that the shim still owns keeps the claim meanwhile.
pub(crate) fn store(slot: &ExitSlot, record: &ExitRecord) -> Result<(), StoreError> {
    loop {
        match slot.store(record) {
            Err(StoreError::Write(error) | StoreError::Sync(error)) if is_full(&error) => {
                std::thread::sleep(RETRY);
            }
            stored => return stored,
        }
    }
}

/// Returns the resources used by all reaped children and by their reaped children.
pub(crate) fn usage() -> Usage {
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    let is_io_counted = Path::new(IO_ACCOUNTING).exists();
    let bytes =
        |blocks| u64::try_from(blocks).ok().filter(|_| is_io_counted).map(|blocks| blocks * BLOCK_BYTES);
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or_else(
        |_| Usage::default(),
        |usage| Usage {
            user_us: micros(usage.user_time()),
            system_us: micros(usage.system_time()),
            max_rss_kib: largest(usage.max_rss()),
            read_bytes: bytes(usage.block_reads()),
            written_bytes: bytes(usage.block_writes()),
            memory_peak_bytes: None,
        },
    )
}

/// Returns the memory of the largest child; 0 if that may be the memory of this program itself, which the kernel counts
/// for a child until it executes another program (`getrusage(2)`).
fn largest(of_children: i64) -> u64 {
    let of_shim = getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss());
    if of_children > of_shim.saturating_add(of_shim / 2) {
        u64::try_from(of_children).unwrap_or(0)
    } else {
        0
    }
}

/// Returns the processor time of all reaped children and of their reaped children, in microseconds.
pub(crate) fn cpu_us() -> u64 {
    let Usage { user_us, system_us, .. } = usage();
    user_us.saturating_add(system_us)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
