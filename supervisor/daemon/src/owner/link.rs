//! Channels to the owner loop: a queue of requests, and the set of changed boards.
//!
//! Reports of runs have a queue of their own, so that callers with many questions do not delay the ends of runs. Both
//! queues are bounded. The loop waits for none of its senders, so a full queue cannot deadlock.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::BoardName;
use tokio::sync::{Notify, mpsc, oneshot};

use super::event::Event;
use crate::run::key::TaskKey;
use crate::run::report::ReportsInbox;
use crate::run::wakeups::Wakeups;
use base::exit::Code;
use base::failure::Failure;
use delivery::plugins::Calls;
use net::telemetry::Tracer;
use service::{Listener, Service};

/// Capacity of the queue of events, except reports. Almost every event is either a request whose sender waits for the
/// reply, and the listeners admit a limited number of these, or the answer of a board to a question of the loop. A
/// sender waits while the queue is full.
const BOUND: usize = 64;

/// Sending end of the channels to the owner loop.
#[derive(Clone, Debug)]
pub struct OwnerLink {
    events: mpsc::Sender<Event>,
    changed: Arc<Changed>,
    wakeups: Wakeups,
    tracer: Tracer,
    plugins: Calls,
}

/// Boards that have changed since the loop last took them, each once. Adding a board does not wait for the loop.
#[derive(Debug, Default)]
struct Changed {
    boards: Mutex<BTreeSet<BoardName>>,
    news: Notify,
}

/// Receiving end of the channels to the owner loop. Once it is dropped, open requests fail.
#[derive(Debug)]
pub(crate) struct Inbox {
    events: mpsc::Receiver<Event>,
    changed: Arc<Changed>,
    reports: ReportsInbox,
}

/// Makes the channels to a loop that also receives these runs' reports. `tracer` records the runs' traces.
pub(crate) fn open(reports: ReportsInbox, tracer: Tracer) -> (OwnerLink, Inbox) {
    let (sender, events) = mpsc::channel(BOUND);
    let changed = Arc::new(Changed::default());
    (
        OwnerLink {
            events: sender,
            changed: Arc::clone(&changed),
            wakeups: Wakeups::default(),
            tracer,
            plugins: Calls::default(),
        },
        Inbox { events, changed, reports },
    )
}

impl Listener for OwnerLink {
    fn board_changed(&self, board: &BoardName) {
        self.changed.add(board);
    }

    fn board_damaged(&self, board: BoardName, failure: Failure) {
        self.send_blocking(Event::BoardDamaged(board, failure));
    }
}

impl OwnerLink {
    /// Returns the link to the owner loop of the daemon that serves these boards; none outside of a daemon.
    pub fn from_service(service: &Service) -> Option<&Self> {
        let daemon: &dyn Any = service.daemon()?.as_ref();
        daemon.downcast_ref()
    }

    /// Returns the bells, which wake the tasks of the live runs.
    pub(crate) fn wakeups(&self) -> Wakeups {
        self.wakeups.clone()
    }

    pub fn plugins(&self) -> &Calls {
        &self.plugins
    }

    /// Returns the recorder of the runs' traces.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Notifies the run of a task of a message for its agent. Does not block.
    pub fn wake_run(&self, key: &TaskKey) {
        self.wakeups.notify(key);
    }

    /// Sends an event without a reply. If the loop has ended, the event is dropped.
    pub async fn send(&self, event: Event) {
        drop(self.events.send(event).await);
    }

    /// Sends an event from a thread that may block.
    pub(crate) fn send_blocking(&self, event: Event) {
        drop(self.events.blocking_send(event));
    }

    /// Sends a request, and waits for the reply.
    ///
    /// # Errors
    /// Fails if the loop has ended, or ends before it replies.
    pub async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Event) -> Result<T, Failure> {
        let stopping = || {
            Failure::new(Code::TryAgain, "the daemon is stopping")
                .hint("it answers again after it has ended and was restarted: supervisor daemon")
        };
        let (reply, answer) = oneshot::channel();
        self.events.send(question(reply)).await.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())
    }
}

impl Changed {
    fn boards(&self) -> MutexGuard<'_, BTreeSet<BoardName>> {
        // No change of the set can be incomplete, so a thread that panicked while it held the lock left it usable.
        self.boards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, board: &BoardName) {
        if self.boards().insert(board.clone()) {
            self.news.notify_one();
        }
    }

    /// Waits for a changed board. Cancel-safe: the entry is removed only when the future completes.
    async fn next(&self) -> BoardName {
        loop {
            let first = self.boards().pop_first();
            if let Some(board) = first {
                return board;
            }
            self.news.notified().await;
        }
    }
}

impl Inbox {
    /// Waits for the next event.
    ///
    /// Reports of runs come first, because a report may announce a shortage of the host, and the loop must know it before
    /// it reads the board that the same run changed. Runs are few and report rarely, so other events do not wait long.
    pub(crate) async fn next(&mut self) -> Event {
        // All three are cancel-safe: an unread event stays in its queue.
        let other = async {
            tokio::select! {
                Some(event) = self.events.recv() => event,
                board = self.changed.next() => Event::BoardChanged(board),
            }
        };
        tokio::select! {
            biased;
            Some((key, report)) = self.reports.recv() => Event::Run(key, report),
            event = other => event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::report::{Report, Reports};

    fn board(name: &str) -> BoardName {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn a_board_that_changes_often_waits_once() {
        let (_reports, inbox) = Reports::queue();
        let (link, mut inbox) = open(inbox, Tracer::open().0);
        for _ in 0..1000 {
            link.board_changed(&board("a"));
            link.board_changed(&board("b"));
        }
        assert!(matches!(inbox.next().await, Event::BoardChanged(name) if name == board("a")));
        assert!(matches!(inbox.next().await, Event::BoardChanged(name) if name == board("b")));
        link.send(Event::Tick).await;
        assert!(matches!(inbox.next().await, Event::Tick), "nothing else waits");
    }

    #[tokio::test]
    async fn a_full_queue_keeps_its_senders_waiting_and_holds_up_no_run() {
        let (reports, inbox) = Reports::queue();
        let (link, mut inbox) = open(inbox, Tracer::open().0);
        for _ in 0..BOUND {
            link.send(Event::Tick).await;
        }
        let mut late = Box::pin(link.send(Event::Reload));
        assert!(waits(&mut late).await, "a sender waits for room");
        let key = TaskKey { board: board("a"), task: "t_00000001".parse().unwrap() };
        reports.tell(&key, Report::StopFailed).await;
        let mut seen = 0;
        while seen < BOUND {
            seen += usize::from(matches!(inbox.next().await, Event::Tick));
        }
        late.await;
    }

    #[tokio::test]
    async fn who_asks_a_loop_that_has_ended_is_told_so() {
        let (_reports, inbox) = Reports::queue();
        let (link, inbox) = open(inbox, Tracer::open().0);
        drop(inbox);
        let failure = link.ask(Event::Look).await.unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (Code::TryAgain, "the daemon is stopping"));
    }

    #[tokio::test]
    async fn what_a_run_reports_is_heard_before_a_board_that_has_changed_for_it() {
        let (reports, inbox) = Reports::queue();
        let (link, mut inbox) = open(inbox, Tracer::open().0);
        let key = TaskKey { board: board("a"), task: "t_00000001".parse().unwrap() };
        link.send(Event::Tick).await;
        link.board_changed(&board("a"));
        for _ in 0..8 {
            reports.tell(&key, Report::StopFailed).await;
        }
        for _ in 0..8 {
            assert!(matches!(inbox.next().await, Event::Run(..)));
        }
    }

    async fn waits(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        tokio::select! {
            biased;
            () = future => false,
            () = std::future::ready(()) => true,
        }
    }
}
