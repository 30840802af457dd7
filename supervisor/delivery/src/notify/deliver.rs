//! Delivers the messages of the outboxes for the daemon: reads the waiting messages, sends the due ones, and sleeps
//! until a board has news or a message is due.
//!
//! A message whose content its service refuses is given up after three tries. A wrong token or a deleted chat counts as
//! a service that is down, and is tried until the channel's `give_up_after`, so that a mistake that is corrected on the
//! next day loses no message.

use std::sync::Arc;
use std::time::Duration;

use kernel::{BoardName, Clock as _, DeliveryQueue, Letter, LetterId, SystemClock, Timestamp};
use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::batch::{Batch, ReadAt};
use super::channel::ChannelClient;
use super::plan::{Channels, DeliveryPlan};
use super::sinks::Delivery;
use super::step_log::{StepLog, Tested, Undelivered};
use crate::plugins::Calls;
use base::failpoint;
use base::failure::Failure;
use base::steps::Step;
use base::time::wait::sleep_if_due;
use service::{BoardHandle, Service};
use setup::config::notify::Channel;

/// Limit on the messages of one digest.
const DIGEST: u32 = 200;
/// Number of tries of a message whose content its service refuses.
const REFUSALS: u32 = 3;
/// Pause after a failed read or write of a board. The disk may be full, or the board may be closed.
const TROUBLE: Duration = Duration::from_secs(30);

/// Time for which due messages are still delivered after the daemon begins to end.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Consequences of a delivery for the next deliveries of its channel.
struct DeliveryResult {
    channel: String,
    /// Pause that the service asked for.
    pause: Option<Duration>,
    /// True if the result could not be recorded.
    is_unwritten: bool,
}

/// Delivers the messages of all boards until the daemon ends, and then the due messages for 1.5 s. The next
/// daemon repeats a delivery that is cut off, so a message may arrive twice.
pub async fn deliver(service: Arc<Service>, calls: Calls, stop: CancellationToken) {
    let mut channels = Channels::default();
    let mut under_way: JoinSet<DeliveryResult> = JoinSet::new();
    let mut trouble: Option<Timestamp> = None;
    let mut config = service.config();
    let mut is_stopping = false;
    let mut over = std::pin::pin!(farewell(stop.clone()));
    loop {
        let now = SystemClock.now();
        if !Arc::ptr_eq(&config, &service.config()) {
            config = service.config();
            channels.forget_pauses();
        }
        let per_minute = |name: &str| config.notify.channels.get(name).map(Channel::per_minute);
        let waits = trouble.filter(|until| *until > now);
        let plan = match (waits, waiting_groups(&service).await) {
            (Some(until), _) => DeliveryPlan { next: Some(until), ..DeliveryPlan::default() },
            (None, Ok(waiting)) => channels.plan(waiting, per_minute, now),
            (None, Err(failure)) => {
                tracing::warn!(error = %failure, "outbox_not_read");
                DeliveryPlan { next: Some(now.after(TROUBLE)), ..DeliveryPlan::default() }
            }
        };
        service.set_paused_channels(plan.resting);
        for (board, group) in plan.now {
            channels.begin(&board, &group, now);
            under_way.spawn(deliver_group(Arc::clone(&service), calls.clone(), board, group));
        }
        if is_stopping && under_way.is_empty() {
            return;
        }
        let rest = plan.next.map(|at| at.since(now));
        tokio::select! {
            () = stop.cancelled(), if !is_stopping => is_stopping = true,
            // Deliveries in progress are cancelled.
            () = &mut over => return,
            // Cancel-safe: a notification that is not received is kept.
            () = service.mail().notified() => {}
            // Cancel-safe: a finished task that is not taken stays in the set.
            Some(ended) = under_way.join_next() => {
                let now = SystemClock.now();
                match ended {
                    Ok(DeliveryResult { channel, pause, is_unwritten }) => {
                        channels.end(&channel, pause, now);
                        trouble = is_unwritten.then(|| now.after(TROUBLE));
                    }
                    Err(error) => tracing::error!(%error, "delivery_failed"),
                }
            }
            () = sleep_if_due(rest) => {}
        }
    }
}

/// Completes [`FAREWELL`] after the daemon begins to end.
async fn farewell(stop: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(FAREWELL).await;
}

/// Returns the waiting groups of messages of all served boards.
async fn waiting_groups(service: &Arc<Service>) -> Result<Vec<(BoardName, DeliveryQueue)>, Failure> {
    let service = Arc::clone(service);
    let read = move || {
        let mut waiting = Vec::new();
        for board in service.served() {
            let groups = board.readers().with(|view| view.delivery_queues())?;
            waiting.extend(groups.into_iter().map(|group| (board.name().clone(), group)));
        }
        Ok(waiting)
    };
    let unread = |_| Failure::failed("the outbox was not read");
    tokio::task::spawn_blocking(read).await.map_err(unread)?
}

/// Sends the first message or the first digest of a group, and records the result on the board.
async fn deliver_group(
    service: Arc<Service>,
    calls: Calls,
    board: BoardName,
    group: DeliveryQueue,
) -> DeliveryResult {
    let (channel, name) = (group.address.channel.clone(), board.clone());
    // A separate task, so that a panic ends only this delivery and the channel stays usable.
    let carried = tokio::spawn(async move { deliver_batch(&service, &calls, &name, group).await });
    let panicked = |_| Err(Failure::failed("the delivery panicked"));
    let outcome = AbortOnDropHandle::new(carried).await.unwrap_or_else(panicked);
    let (pause, is_unwritten) = match outcome {
        Ok(pause) => (pause, false),
        Err(failure) => {
            tracing::warn!(%board, %channel, error = %failure, "delivery_not_recorded");
            (None, true)
        }
    };
    DeliveryResult { channel, pause, is_unwritten }
}

async fn deliver_batch(
    service: &Arc<Service>,
    calls: &Calls,
    name: &BoardName,
    group: DeliveryQueue,
) -> Result<Option<Duration>, Failure> {
    let board = service.board(name)?;
    let config = service.config();
    let channel = config.notify.channels.get(&group.address.channel);
    let digest_above = channel.and_then(Channel::digest_above);
    let chats = service.chats().chats(service.root());
    let is_heard = |name: &str| chats.usable().any(|(_, chat)| chat.channel == name);
    let reader = |name: &str| if is_heard(name) { ReadAt::Chat } else { ReadAt::Elsewhere };
    let Some(batch) = take(&board, group, digest_above, reader).await? else { return Ok(None) };
    let ids: Vec<LetterId> = batch.letters.iter().map(|letter| letter.id).collect();
    // The messages wait as for a failing channel, because the operator may add the channel again.
    let Some(channel) = channel else {
        let why = format!("there is no channel `{}` in [notify.channels]", batch.address.channel);
        let fallback = setup::config::notify::Channel::absent();
        return keep_failure(&board, &fallback, &batch, ids, Undelivered::later(why)).await;
    };
    let name = batch.address.channel.as_str();
    let delivery = Delivery {
        channel: ChannelClient { service, name, settings: channel },
        batch: &batch,
        service,
        calls,
    };
    let sent = delivery.send(&mut StepLog::default()).await;
    failpoint::pass("after-notify");
    match sent {
        Ok(message) => {
            tracing::debug!(channel = name, messages = ids.len(), id = %batch.id, "notified");
            board.write(move |board| board.letters_delivered(&ids, message.as_deref())).await?;
            Ok(None)
        }
        Err(error) => keep_failure(&board, channel, &batch, ids, error).await,
    }
}

/// Returns the next message or the next digest of a group; none if no message waits. The messages of a digest are
/// recorded on the board, so that each try sends the same digest.
async fn take(
    board: &Arc<BoardHandle>,
    group: DeliveryQueue,
    digest_above: Option<u32>,
    reader: impl Fn(&str) -> ReadAt,
) -> Result<Option<Batch>, Failure> {
    let reading = Arc::clone(board);
    let read = move || reading.readers().with(|view| view.letters_of_queue(&group, DIGEST));
    let unread = |_| Failure::failed("the outbox was not read");
    let mut letters = tokio::task::spawn_blocking(read).await.map_err(unread)??;
    let Some(first) = letters.first() else { return Ok(None) };
    if let Some(digest) = first.digest {
        letters.retain(|letter| letter.digest == Some(digest));
    } else if digest_above.is_some_and(|most| letters.len() > most as usize) {
        letters.retain(|letter| letter.digest.is_none());
        let ids: Vec<LetterId> = letters.iter().map(|letter| letter.id).collect();
        board.write(move |board| board.bind_letters(&ids)).await?;
    } else {
        letters.truncate(1);
    }
    Ok(Batch::from_letters(board.id(), board.name(), reader, letters))
}

/// Records a failed try: the time of the next try, or that the messages are dead. Returns the pause that the service
/// asked for.
async fn keep_failure(
    board: &Arc<BoardHandle>,
    channel: &Channel,
    batch: &Batch,
    ids: Vec<LetterId>,
    error: Undelivered,
) -> Result<Option<Duration>, Failure> {
    let now = SystemClock.now();
    let Some(first) = batch.letters.first() else { return Ok(None) };
    let (is_over, after) = match &error {
        Undelivered::Refused(_) => (first.attempts + 1 >= REFUSALS, None),
        Undelivered::Later { after, .. } => (is_too_old(first, channel, now), *after),
    };
    let pause = jittered(channel.pause(first.attempts)).max(after.unwrap_or_default());
    let next = (!is_over).then(|| now.after(pause));
    let (name, why) = (&batch.address.channel, error.to_string());
    if is_over {
        tracing::warn!(channel = %name, task = %first.task_id, error = %why, messages = ids.len(), "messages_dead");
    } else if first.attempts == 0 {
        tracing::warn!(channel = %name, task = %first.task_id, error = %why, "channel_fails");
    }
    board.write(move |board| board.letters_failed(&ids, &why, next)).await?;
    Ok(after)
}

fn is_too_old(first: &Letter, channel: &Channel, now: Timestamp) -> bool {
    first.failing_since.is_some_and(|since| since.after(channel.give_up_after.duration()) <= now)
}

/// Returns a random 75 to 125 % of a pause, so that simultaneous failures are not retried at the same time.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.75..1.25))
}

/// Sends a test message over a channel, and returns the result of each step.
pub async fn test(
    service: &Arc<Service>,
    calls: &Calls,
    name: &str,
    board: BoardName,
) -> Result<Tested, Failure> {
    let config = service.config();
    let channel = config.notify.find(name).map_err(|missing| {
        let is_written = setup::config::Config::load(service.root())
            .is_ok_and(|config| config.notify.channels.contains_key(name));
        let hint = if is_written {
            "the daemon has not read it yet: supervisor service reload"
        } else {
            "a table [notify.channels.NAME] in supervisor.toml makes one"
        };
        Failure::new(base::exit::Code::NotFound, missing).hint(hint)
    })?;
    let mut step_log = StepLog::default();
    let kind = serde_json::to_value(channel.kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
    let read = if service.daemon().is_some() { ", as the daemon has read it" } else { "" };
    step_log.done("configuration", format!("{kind}{read}"));
    let batch = Batch::test(board, name);
    let sent = Delivery {
        channel: ChannelClient { service, name, settings: channel },
        batch: &batch,
        service,
        calls,
    }
    .send(&mut step_log)
    .await;
    let mut steps = step_log.into_steps();
    if let Err(error) = &sent
        && steps.iter().all(|step| step.ok)
    {
        steps.push(Step { name: "send".to_owned(), ok: false, detail: error.to_string() });
    }
    Ok(Tested { channel: name.to_owned(), ok: sent.is_ok(), steps })
}
