//! Receives the shims' notifications on the daemon's datagram socket.

use std::os::unix::net::UnixDatagram as StdUnixDatagram;
use std::sync::Arc;

use kernel::{Run, RunId};
use rustix::net::SocketType;
use shim::rundir::RunDir;
use tokio::net::UnixDatagram;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::command_start::tell_started;
use super::context::Context;
use super::key::TaskKey;
use super::unkillable::tell_unkillable;
use base::failure::Failure;
use base::paths::Root;
use host::socket_file;
use service::BoardHandle;

/// Notification from a shim: only a hint, because the run directory holds the facts.
#[derive(serde::Deserialize)]
struct ShimEvent {
    board: String,
    run: i64,
    what: News,
}

/// Kind of notification, from a shim of this release or another one.
#[derive(PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum News {
    /// The run's command has started.
    Started,
    /// There are receipts for messages to its agent.
    Messages,
    /// SIGKILL does not end its processes.
    Unkillable,
    /// A kind that the daemon learns in another way.
    #[serde(other)]
    Other,
}

/// Receives notifications until the daemon stops.
pub(crate) fn listen_to_shims(
    context: &Arc<Context>,
    root: &Root,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let path = root.shim_event_socket();
    let socket = StdUnixDatagram::from(socket_file::bind(&path, 0o600, SocketType::DGRAM)?);
    let socket = socket
        .set_nonblocking(true)
        .and_then(|()| UnixDatagram::from_std(socket))
        .map_err(|e| Failure::file("serve the socket", &path, &e))?;
    let (context, stop) = (Arc::clone(context), stop.clone());
    tasks.spawn(async move {
        let mut buffer = [0_u8; 512];
        loop {
            let received = tokio::select! {
                // Cancel-safe: an unread datagram stays queued.
                received = socket.recv(&mut buffer) => received,
                () = stop.cancelled() => return,
            };
            let Ok(length) = received else { continue };
            let Ok(event) = serde_json::from_slice::<ShimEvent>(&buffer[..length]) else { continue };
            match event.what {
                News::Started | News::Messages | News::Unkillable => {
                    drop(context.tasks.spawn(hear(Arc::clone(&context), event)));
                }
                News::Other => {}
            }
        }
    });
    Ok(())
}

async fn hear(context: Arc<Context>, event: ShimEvent) {
    if let Some(heard) = context.host.heard_runs.find(&event.board, RunId(event.run)) {
        match event.what {
            News::Messages => return context.wakeups.notify(&heard.key),
            News::Started | News::Other => {
                heard.started.notify_one();
                return context.refill();
            }
            News::Unkillable => {}
        }
    }
    let Some(FoundRun { board, key, run, dir }) = look_up(&context, &event) else { return };
    match event.what {
        News::Messages => context.wakeups.notify(&key),
        News::Unkillable => tell_unkillable(&context, &board, &key, &run, &dir).await,
        News::Started | News::Other => {
            tell_started(&context, &board, &key, run.id, &dir).await;
            context.refill();
        }
    }
}

/// A run that a notification names.
struct FoundRun {
    board: Arc<BoardHandle>,
    key: TaskKey,
    run: Run,
    dir: RunDir,
}

/// Looks for the run of a notification on all boards.
fn look_up(context: &Context, event: &ShimEvent) -> Option<FoundRun> {
    for name in context.service.board_names().unwrap_or_default() {
        let Ok(board) = context.service.board(&name) else { continue };
        let same = board.readers().with(|view| view.board_id()).is_ok_and(|id| id.to_string() == event.board);
        if !same {
            continue;
        }
        let run = board.readers().with(|view| view.run(RunId(event.run))).ok().flatten()?;
        let dir = RunDir::open(&context.host.root.run_dir(&name, run.id)).ok()?;
        let key = TaskKey { board: name, task: run.task_id.clone() };
        return Some(FoundRun { board, key, run, dir });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_known_is_no_fault_of_the_datagram() {
        let what = |word: &str| {
            let text = format!(r#"{{"board": "b", "run": 7, "what": "{word}", "later": 1}}"#);
            serde_json::from_str::<ShimEvent>(&text).unwrap().what
        };
        assert!(what("started") == News::Started && what("messages") == News::Messages);
        assert!(what("exit") == News::Other && what("later") == News::Other);
    }
}
