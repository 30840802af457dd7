//! Server-sent events of a task: its present state, each change of state, and its result. The stream ends when the task
//! rests.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::stream::unfold;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kernel::TaskId;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::methods::{Methods, READ_INTERVAL};
use super::reply::{self, RpcError};
use super::state::state_of;

/// Number of events buffered for a slow client. Changes in between become one.
const BEHIND: usize = 4;
/// Longest silence before a comment, which keeps proxies from closing the connection.
const ALIVE: Duration = Duration::from_secs(15);
/// Longest life of a stream; its client subscribes again.
const LONGEST: Duration = Duration::from_hours(1);

/// Response body of frames that cannot fail.
pub(super) type Events =
    StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// Begins a stream.
pub(super) fn begin(methods: Methods, task: TaskId, id: Value, stop: CancellationToken) -> Events {
    let (sender, receiver) = mpsc::channel::<Bytes>(BEHIND);
    tokio::spawn(async move {
        let ended = tokio::select! {
            ended = tokio::time::timeout(LONGEST, follow(&methods, &task, &id, &sender)) => ended.unwrap_or(Ok(())),
            () = stop.cancelled() => Ok(()),
            // The body is not read any more.
            () = sender.closed() => Ok(()),
        };
        if let Err(error) = ended {
            drop(sender.send(event(&error.response(&id))).await);
        }
    });
    let frames = unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|bytes| (Ok(Frame::data(bytes)), receiver))
    });
    StreamBody::new(Box::pin(frames))
}

async fn follow(
    methods: &Methods,
    task: &TaskId,
    id: &Value,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), RpcError> {
    let say = async |result: Value| {
        let event = event(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        // A client that has gone is noticed in `begin`.
        drop(sender.send(event).await);
    };
    let mut changes = methods.board()?.changes();
    let mut shown = methods.shown(task).await?;
    say(json!({ "task": reply::task(&shown) })).await;
    let mut state = state_of(&shown.task);
    let mut quiet = Instant::now();
    while !state.rests() {
        tokio::select! {
            // Cancel-safe: an unseen change stays visible.
            outcome = changes.changed() => if outcome.is_err() { return Ok(()) },
            () = tokio::time::sleep_until(quiet + ALIVE) => {
                drop(sender.send(Bytes::from_static(b": alive\n\n")).await);
                quiet = Instant::now();
                continue;
            }
        }
        shown = methods.shown(task).await?;
        let now = state_of(&shown.task);
        if now != state {
            state = now;
            for artifact in reply::artifacts(&shown) {
                say(reply::artifact_update(&shown, &artifact)).await;
            }
            say(reply::status_update(&shown.task)).await;
            quiet = Instant::now();
        }
        tokio::time::sleep(READ_INTERVAL).await;
    }
    Ok(())
}

fn event(value: &Value) -> Bytes {
    // JSON contains no unescaped line end.
    format!("data: {value}\n\n").into()
}
