//! Delivery worker of plugins: gives each plugin the events that it subscribes to, in order, and sleeps until there is
//! news.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kernel::{
    BoardName, Clock as _, Event, EventFilter, EventId, PluginCursor, PluginName, SystemClock, Timestamp,
};
use rand::RngExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::calls::{self, Calls};
use super::check::sweep;
use super::protocol;
use super::requests::{OnRefusal, RequestContext, carry_out};
use api::PluginScope;
use base::failpoint;
use base::failure::Failure;
use base::time::wait::sleep_if_due;
use service::{BoardHandle, Service};
use setup::automation::plugins::Plugin;

/// Limit on the events of one read.
const BATCH: u32 = 50;
/// Longest pause before another try.
const PAUSE: Duration = Duration::from_hours(1);
/// Farthest plausible time of a try. A later one was planned before the clock was set back.
const FARTHEST: Duration = Duration::from_hours(2);
/// Pause after a failed read or write: the disk may be full, or the board closed.
const TROUBLE: Duration = Duration::from_secs(30);
/// Prefix of a plugin's name as the author of events.
const PLUGINS: &str = "system:plugin:";

type EventQueue = (BoardName, PluginName);

/// An event to be given to a plugin.
struct DueEvent {
    board: Arc<BoardHandle>,
    plugin: Plugin,
    cursor: PluginCursor,
    event: Event,
}

/// Result of a look at all boards.
#[derive(Default)]
struct DueEvents {
    due: Vec<DueEvent>,
    /// Time of the next work, if nothing else happens.
    next: Option<Timestamp>,
    /// Last events up to which a plugin has nothing to receive.
    seen: Vec<(EventQueue, EventId)>,
}

/// Gives plugins their events until the daemon ends. A call in progress is then cancelled, and repeated by the next
/// daemon.
pub async fn deliver(service: Arc<Service>, calls: Calls, stop: CancellationToken) {
    let root = service.root().clone();
    // Runs in the background.
    drop(tokio::task::spawn_blocking(move || sweep(&root)));
    let mut under_way: JoinSet<(EventQueue, Result<(), Failure>)> = JoinSet::new();
    let mut busy: BTreeSet<EventQueue> = BTreeSet::new();
    let mut seen: BTreeMap<EventQueue, EventId> = BTreeMap::new();
    // Queues whose result could not be recorded, with the time of the next try. The others do not wait for them.
    let mut held: BTreeMap<EventQueue, Timestamp> = BTreeMap::new();
    loop {
        let now = SystemClock.now();
        held.retain(|_, until| *until > now && *until <= now.after(TROUBLE));
        let mut due_events =
            find_due(&service, busy.iter().chain(held.keys()).cloned().collect(), seen.clone(), now).await;
        for until in held.values() {
            due_events.wait_until(*until);
        }
        for (queue, event) in due_events.seen {
            seen.insert(queue, event);
        }
        for due in due_events.due {
            let queue = (due.board.name().clone(), due.plugin.name.clone());
            busy.insert(queue.clone());
            let (service, calls) = (Arc::clone(&service), calls.clone());
            under_way.spawn(async move {
                // A separate task, so that a panic ends only this call and the plugin can be called again.
                let given =
                    AbortOnDropHandle::new(tokio::spawn(async move { give(&service, &calls, due).await }));
                (queue, given.await.unwrap_or_else(|_| Err(Failure::failed("the call panicked"))))
            });
        }
        let rest = due_events.next.map(|at| at.since(now));
        tokio::select! {
            // Calls in progress are dropped, which ends their programs.
            () = stop.cancelled() => return,
            // Cancel-safe: a notification that is not received is kept.
            () = service.news().notified() => {}
            // Cancel-safe: a finished task that is not taken stays in the set.
            Some(ended) = under_way.join_next() => match ended {
                Ok((queue, Ok(()))) => drop(busy.remove(&queue)),
                Ok((queue, Err(error))) => {
                    tracing::warn!(board = %queue.0, plugin = %queue.1, %error, "plugin_not_recorded");
                    busy.remove(&queue);
                    held.insert(queue, SystemClock.now().after(TROUBLE));
                }
                Err(error) => tracing::error!(%error, "plugin_call_failed"),
            },
            () = sleep_if_due(rest) => {}
        }
    }
}

/// Finds the next event of each plugin on each board.
async fn find_due(
    service: &Arc<Service>,
    busy: BTreeSet<EventQueue>,
    seen: BTreeMap<EventQueue, EventId>,
    now: Timestamp,
) -> DueEvents {
    let plugins = service.plugins();
    if plugins.plugins().all(|plugin| plugin.manifest.events.is_empty()) {
        return DueEvents::default();
    }
    let boards = service.served();
    let read = move || {
        let mut due_events = DueEvents::default();
        for board in boards {
            let cursors = board.readers().with(|view| view.plugin_cursors());
            let Ok(cursors) = cursors else {
                tracing::warn!(board = %board.name(), "plugin_cursors_not_read");
                due_events.wait_until(now.after(TROUBLE));
                continue;
            };
            for cursor in cursors {
                let queue = (board.name().clone(), cursor.plugin.clone());
                let plugin = plugins.plugins().find(|plugin| plugin.name == cursor.plugin);
                let Some(plugin) = plugin.filter(|_| cursor.paused_at.is_none() && !busy.contains(&queue))
                else {
                    continue;
                };
                // A time too far ahead was set before the clock was set back.
                let due = if cursor.due_at > now.after(FARTHEST) { now } else { cursor.due_at };
                if due > now {
                    due_events.wait_until(due);
                    continue;
                }
                // The cursor is stored only with an event; `seen` saves reading other events again.
                let seen = seen.get(&queue).copied().unwrap_or_default();
                match next_event(&board, plugin, cursor.event, seen) {
                    Ok(Ok(event)) => {
                        due_events.due.push(DueEvent {
                            board: Arc::clone(&board),
                            plugin: plugin.clone(),
                            cursor,
                            event,
                        });
                    }
                    Ok(Err(up_to)) => due_events.seen.push((queue, up_to)),
                    Err(error) => {
                        tracing::warn!(board = %board.name(), %error, "events_not_read");
                        due_events.wait_until(now.after(TROUBLE));
                    }
                }
            }
        }
        due_events
    };
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|_| DueEvents { next: Some(now.after(TROUBLE)), ..DueEvents::default() })
}

impl DueEvents {
    fn wait_until(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

/// Returns the next event for a plugin, or else the last event that was searched.
fn next_event(
    board: &BoardHandle,
    plugin: &Plugin,
    done: EventId,
    seen: EventId,
) -> Result<Result<Event, EventId>, kernel::Error> {
    let kinds: Vec<String> = plugin.manifest.kinds().into_iter().collect();
    board.readers().with(|view| {
        // Read before the search, so that events committed during it are searched the next time.
        let newest = EventFilter { newest_first: true, limit: 1, ..EventFilter::default() };
        let newest = view.events(&newest)?.last().map_or(done, |event| event.id);
        // If the board was replaced under the same name, `seen` is from the former one.
        let after = if seen > newest { done } else { seen.max(done) };
        let mut filter = EventFilter { since: after, limit: BATCH, kinds, ..EventFilter::default() };
        loop {
            let events = view.events(&filter)?;
            let Some(last) = events.last().map(|event| event.id) else {
                return Ok(Err(newest.max(filter.since)));
            };
            let is_of_plugin =
                |event: &Event| event.actor.as_ref().is_some_and(|who| who.starts_with(PLUGINS));
            if let Some(event) = events.into_iter().find(|event| !is_of_plugin(event)) {
                return Ok(Ok(event));
            }
            filter.since = last;
        }
    })
}

/// Gives an event to a plugin, and records the result.
async fn give(service: &Arc<Service>, calls: &Calls, due: DueEvent) -> Result<(), Failure> {
    let DueEvent { board, plugin, cursor, event } = due;
    let outcome = handle(service, calls, &board, &plugin, &event).await;
    failpoint::pass("after-plugin");
    let (name, id) = (plugin.name.clone(), event.id);
    let Err(failure) = outcome else {
        return board.write(move |board| board.plugin_handled(&name, id)).await;
    };
    let attempts = cursor.attempts.saturating_add(1);
    let next = (attempts < plugin.manifest.tries)
        .then(|| SystemClock.now().after(pause(plugin.manifest.retry_first.duration(), cursor.attempts)));
    let (board_name, error) = (board.name(), &failure);
    if next.is_none() {
        tracing::error!(plugin = %name, board = %board_name, event = %id, attempts, %error, "plugin_paused");
    } else {
        tracing::warn!(plugin = %name, board = %board_name, event = %id, attempts, %error, "plugin_failed");
    }
    let why = failure.message;
    board.write(move |board| board.plugin_failed(&name, &why, next)).await
}

async fn handle(
    service: &Arc<Service>,
    calls: &Calls,
    board: &BoardHandle,
    plugin: &Plugin,
    event: &Event,
) -> Result<(), Failure> {
    let input = protocol::event(&plugin.name, board.name(), event);
    let reply = calls.call(service, plugin, &input, calls::CallQueue::Events(board.name().clone())).await?;
    let id = format!("{}-e{}", board.id(), event.id);
    let context = RequestContext {
        plugin,
        board: board.name(),
        scope: &PluginScope::All,
        id: Some(&id),
        on_refusal: OnRefusal::LeftOut,
    };
    carry_out(calls, context, &reply.requests).await
}

/// Returns the pause before the next try, varied by a quarter, so that simultaneous failures are not retried at the
/// same time.
fn pause(first: Duration, attempts: u32) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempts.min(20)));
    doubled.min(PAUSE).mul_f64(rand::rng().random_range(0.75..1.25))
}
