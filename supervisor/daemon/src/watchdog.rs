//! Sends signs of life to the service manager (`WatchdogSec=`), each after every component of the daemon has moved.
//!
//! Each component gets a small request that it answers only if it moves, because an idle daemon cannot show in another
//! way that it is not stuck. If no service manager expects signs, no component gets requests.
//!
//! A refusal counts as an answer. So does a board that cannot be written, because a restarted daemon could not write it
//! either. The request to the operator's listener comes over a connection that the daemon passes to it directly, so the
//! file of the socket and its queue have no influence. A writer with a long job moves as long as `SQLite` executes
//! statements.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use rustix::event::{EventfdFlags, eventfd};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::owner::event::Event;
use super::owner::link::OwnerLink;
use api::SelfProbe;
use host::readiness::{noticed, readable};
use host::service_link::ServiceLink;
use service::{BoardHandle, Service};

/// Number of signs per watchdog interval.
const SIGNS: u32 = 4;
/// Interval at which a long job of a board's writer is checked for progress, and a failed self-probe is repeated.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A component that must move before a sign of life is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Component {
    /// Decides on events.
    OwnerLoop,
    /// Commits to the boards.
    Writers,
    /// Notices ended processes, and has threads to process their end.
    Reaper,
    /// Responds to the operator.
    Listener,
}

impl Component {
    const ALL: [Component; 4] =
        [Component::OwnerLoop, Component::Writers, Component::Reaper, Component::Listener];

    fn word(self) -> &'static str {
        match self {
            Component::OwnerLoop => "the owner loop",
            Component::Writers => "a board's writer",
            Component::Reaper => "the reaper",
            Component::Listener => "the operator's listener",
        }
    }
}

/// Report about a round of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sign {
    /// Every component has moved since the last sign.
    Life,
    /// These components have not moved for half the watchdog interval.
    Late(BTreeSet<Component>),
}

/// Access to the components.
#[derive(Debug)]
struct Probes {
    link: OwnerLink,
    service: Arc<Service>,
    ripple: AsyncFd<OwnedFd>,
    self_probe: SelfProbe,
}

/// Sends signs of life until the returned handle is dropped. Returns none if the service manager expects no signs.
pub(super) fn start(
    link: &OwnerLink,
    service: &Arc<Service>,
    self_probe: SelfProbe,
) -> io::Result<Option<AbortOnDropHandle<Infallible>>> {
    let Some(interval) = ServiceLink::watchdog() else { return Ok(None) };
    // The descriptor is made once, so that a daemon that has run out of descriptors does not look stuck.
    let ripple = readable(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)?;
    let probes = Arc::new(Probes { link: link.clone(), service: Arc::clone(service), ripple, self_probe });
    let notices = ServiceLink::find();
    let watch = watch(
        interval,
        move |component| {
            let probes = Arc::clone(&probes);
            async move { probes.moved(component).await }
        },
        move |sign| match sign {
            Sign::Life => notices.alive(),
            Sign::Late(still) => {
                let components = still.into_iter().map(Component::word).collect::<Vec<_>>().join(", ");
                tracing::error!(components, "not_moving");
            }
        },
    );
    Ok(Some(AbortOnDropHandle::new(tokio::spawn(watch))))
}

/// Asks all components in rounds, and calls `tell` with the result of each round. The future of `ask` completes when
/// the component has moved.
async fn watch<F: Future<Output = ()> + Send + 'static>(
    interval: Duration,
    ask: impl Fn(Component) -> F,
    tell: impl Fn(Sign),
) -> Infallible {
    loop {
        let mut asked = JoinSet::new();
        for component in Component::ALL {
            let moved = ask(component);
            asked.spawn(async move {
                moved.await;
                component
            });
        }
        let mut still = BTreeSet::from(Component::ALL);
        // A late component is reported and then awaited, because no sign may be sent without it: the service manager
        // restarts a daemon that stays stuck.
        if tokio::time::timeout(interval / 2, all_moved(&mut asked, &mut still)).await.is_err() {
            tell(Sign::Late(still.clone()));
            all_moved(&mut asked, &mut still).await;
        }
        tell(Sign::Life);
        tokio::time::sleep(interval / SIGNS).await;
    }
}

/// Returns when all components have moved. Cancel-safe: a component that has moved is removed from `still` at once.
async fn all_moved(asked: &mut JoinSet<Component>, still: &mut BTreeSet<Component>) {
    while !still.is_empty() {
        match asked.join_next().await {
            Some(Ok(component)) => {
                still.remove(&component);
            }
            // A component whose request panicked has not moved.
            Some(Err(_)) => {}
            None => pending().await,
        }
    }
}

impl Probes {
    /// Returns when a component has moved. Never returns if the component has ended.
    async fn moved(&self, component: Component) {
        let moved = match component {
            Component::OwnerLoop => self.link.ask(Event::Beat).await.is_ok(),
            Component::Writers => {
                for board in self.service.served() {
                    writer_moved(&board).await;
                }
                true
            }
            Component::Reaper => self.reaps().await.is_ok(),
            Component::Listener => {
                self.answers().await;
                true
            }
        };
        if !moved {
            pending::<()>().await;
        }
    }

    /// Returns when the operator's listener has responded. Also returns when no descriptors are left for a connection,
    /// because the daemon then waits for descriptors, and a restart would not provide any.
    async fn answers(&self) {
        while let Err(error) = self.self_probe.probe().await {
            let code = error.raw_os_error().map(Errno::from_raw);
            if matches!(code, Some(Errno::EMFILE | Errno::ENFILE)) {
                return;
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Repeats the steps by which the daemon handles the end of a process: a descriptor becomes readable, and a
    /// blocking thread gets to run.
    async fn reaps(&self) -> io::Result<()> {
        rustix::io::write(self.ripple.get_ref(), &1_u64.to_ne_bytes())?;
        let mut ready = noticed(&self.ripple).await?;
        rustix::io::read(self.ripple.get_ref(), &mut [0_u8; 8])?;
        ready.clear_ready();
        tokio::task::spawn_blocking(|| ()).await.map_err(io::Error::other)
    }
}

/// Returns when a board's writer has run a job, or makes progress with a long one such as an import. Also returns when
/// the board cannot be written.
async fn writer_moved(board: &BoardHandle) {
    let Ok(writer) = board.writer() else { return };
    let before = writer.steps();
    let (done, mut turn) = oneshot::channel();
    writer.submit(
        |_| Ok(()),
        move |_| {
            // The caller may already have returned because of the writer's progress.
            done.send(()).ok();
        },
    );
    loop {
        match tokio::time::timeout(CHECK_INTERVAL, &mut turn).await {
            Ok(_) => return,
            Err(_) if writer.steps() != before => return,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);

    /// Returns the signs of ten intervals in which at most one component is stuck.
    async fn signs(stuck: Option<Component>) -> Vec<Sign> {
        let signs = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&signs);
        let ask = move |component| async move {
            if Some(component) == stuck {
                pending::<()>().await;
            }
        };
        let watch = watch(INTERVAL, ask, move |sign| seen.lock().unwrap().push(sign));
        tokio::time::timeout(INTERVAL * 10, watch).await.unwrap_err();
        Arc::try_unwrap(signs).unwrap().into_inner().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_moves_gives_several_signs_in_each_interval() {
        let signs = signs(None).await;
        assert!(signs.len() >= 40 && signs.iter().all(|sign| *sign == Sign::Life), "{signs:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_part_that_is_stuck_ends_the_signs_and_is_named() {
        for stuck in Component::ALL {
            assert_eq!(signs(Some(stuck)).await, [Sign::Late(BTreeSet::from([stuck]))]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_panics_has_not_moved() {
        let (sender, mut tells) = tokio::sync::mpsc::unbounded_channel();
        let ask = |component| async move { assert!(component != Component::Reaper, "a fault") };
        let watch = watch(INTERVAL, ask, move |sign| drop(sender.send(sign)));
        tokio::time::timeout(INTERVAL * 10, watch).await.unwrap_err();
        assert_eq!(tells.recv().await, Some(Sign::Late(BTreeSet::from([Component::Reaper]))));
        assert_eq!(tells.recv().await, None);
    }
}
