//! `stop` at the command line: asks the daemon to stop, and with `--wait` waits for its end.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::owner::OwnerLock;
use base::terminal::complain;
use daemon::StopMode;
use verbs::{Status, Stop};

pub(super) async fn run(client: &Client, stop: Stop, output: Output) -> Result<u8, Failure> {
    let stopping = client.call(&stop).await?;
    let code = output.reply::<Stop>(&stopping)?;
    if !stop.wait {
        return Ok(code);
    }
    gone(client, stopping.pid)?;
    if stopping.mode == StopMode::Leave {
        return Ok(code);
    }
    let status = Status::default();
    let left = match OwnerLock::owner(client.root()) {
        Some(_) => client.call(&status).await,
        None => client.read_here(&status).await,
    };
    let left = match left {
        Ok(left) => left,
        // A missing or damaged board is no failure here, because its repair begins with `stop`.
        Err(failure) => {
            complain(&format!("it is unknown whether its last runs left processes: {failure}"));
            return Ok(code);
        }
    };
    // A daemon that started meanwhile takes care of the workers.
    if left.daemon.is_some() || left.workers.is_empty() {
        return Ok(code);
    }
    for worker in &left.workers {
        complain(&format!(
            "left: {} (run {}) has not been proved to have ended",
            worker.run.task, worker.run.run
        ));
    }
    Ok(Code::Failed.exit())
}

/// Waits for the end of the daemon that responded.
fn gone(client: &Client, pid: u32) -> Result<(), Failure> {
    let failed =
        |e: rustix::io::Errno| Failure::failed(format!("failed to wait for the daemon (pid {pid}): {e}"));
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let handle = match pidfd_open(process, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    // The pid may have been reused before the handle was opened. If the lock still names it now, the handle is the
    // daemon's.
    let owner = OwnerLock::owner(client.root()).and_then(|owner| owner.pid);
    if owner != i32::try_from(pid).ok() {
        return Ok(());
    }
    loop {
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(failed(e)),
            Ok(_) => return Ok(()),
        }
    }
}
