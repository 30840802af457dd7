//! Owner loop: takes one event at a time, has the dispatcher decide, and carries out the resulting actions.

use std::collections::VecDeque;
use std::sync::Arc;

use kernel::{Clock as _, Finding};

use super::action::Action;
use super::board::{apply_budgets, follow_set_clock, keep_breaker, note_nonspawnable, wake_board};
use super::dispatcher::Dispatcher;
use super::event::Event;
use super::link::{Inbox, OwnerLink};
use super::scan::read_board;
use crate::run::context::Context;
use crate::run::key::TaskKey;
use crate::run::problems;
use crate::run::report::Report;
use crate::run::run_task::run_task;
use crate::run::stopping::stop;
use base::failpoint;
use base::failure::Failure;
use host::service_link::ServiceLink;
use host::timer::{Armed, Expiry, WallTimer};
use service::Service;
use setup::config::Config;
use setup::roster::Roster;

/// Runs the loop until the dispatcher finishes: when nothing is left to do, or when the daemon has to stop.
pub(crate) async fn own(
    context: &Arc<Context>,
    link: &OwnerLink,
    dispatcher: &mut Dispatcher,
    mut roster: Arc<Roster>,
    mut inbox: Inbox,
    notices: &mut ServiceLink,
) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::failed(format!("the timer failed: {e}"));
    let timer = WallTimer::new().map_err(failed)?;
    loop {
        let event = tokio::select! {
            // Cancel-safe: an unread event stays in its queue.
            event = inbox.next() => event,
            // Cancel-safe: an unread expiry stays readable.
            expired = timer.expired() => {
                match expired.map_err(failed)? {
                    Expiry::Due => Event::Tick,
                    Expiry::ClockSet => Event::ClockSet,
                }
            }
        };
        failpoint::pass("owner-loop");
        if matches!(event, Event::ClockSet) {
            follow_set_clock(&context.service);
        }
        // The queue is bounded: a decision returns a few actions for each board, and a start for each free slot.
        let mut actions = VecDeque::from(dispatcher.decide(event, kernel::SystemClock.now()));
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Read(board, capacity, noted) => {
                    read_board(context, link, &roster, board, *capacity, noted);
                }
                Action::Wake(board) => wake_board(context, link, board),
                Action::Withdraw(board, failure) => {
                    tracing::error!(%board, error = %failure, "board_damaged");
                    // Requests in progress keep the board open. The loop does not wait for them.
                    context.service.withdraw(&board, failure.not_served(&board));
                }
                Action::Start(board, attempt) => match context.service.board(&board) {
                    Ok(handle) => {
                        let key = TaskKey { board, task: attempt.candidate.task.clone() };
                        let cancel = context.pending_starts.begin(&key);
                        let task =
                            run_task(Arc::clone(context), handle, *attempt, Arc::clone(&roster), cancel);
                        context.tasks.spawn(task);
                    }
                    Err(failure) => {
                        let key = TaskKey { board, task: attempt.candidate.task };
                        // The event is decided here and not sent, because the loop would wait for itself if its queue were full.
                        let event = Event::Run(key, Report::ClaimFailed(failure));
                        actions.extend(dispatcher.decide(event, kernel::SystemClock.now()));
                    }
                },
                Action::GiveUp(key) => context.pending_starts.give_up(&key),
                Action::Stop(key, shim, request) => stop(context, key, &shim, &request),
                Action::NoteNonspawnable(key, why) => note_nonspawnable(context, key, why),
                Action::Keep(board, kept) => keep_breaker(&context.service, &board, kept),
                Action::Arm(at) => {
                    if timer.set(at).map_err(failed)? == Armed::AfterSet {
                        follow_set_clock(&context.service);
                    }
                }
                Action::Say(text) => base::terminal::complain(&text),
                Action::LimitDrain => limit_drain(context, link),
                Action::Reload => {
                    notices.reloading();
                    roster = reload(context);
                    apply_budgets(&context.service);
                    for action in dispatcher.reconfigure(context.service.config()) {
                        if let Action::Read(board, capacity, noted) = action {
                            read_board(context, link, &roster, board, *capacity, noted);
                        }
                    }
                    notices.ready();
                }
                Action::Finish => return Ok(()),
            }
        }
        notices.status(|| in_a_line(dispatcher, &context.service));
    }
}

/// Returns the state of the daemon and its problems as one line, for the service manager.
fn in_a_line(dispatcher: &Dispatcher, service: &Service) -> String {
    let mut line = dispatcher.summary();
    if service.refuses_any() {
        line.push_str("; a board is not served");
    }
    let mut findings = service.findings();
    findings.extend(service.delivery_problems());
    findings.extend(problems::of_runs(dispatcher.phases()));
    for problem in Finding::errors_in_lines(&findings) {
        line.push_str("; ");
        line.push_str(&problem);
    }
    line
}

/// Sends an event when the time for draining is over.
fn limit_drain(context: &Arc<Context>, link: &OwnerLink) {
    let limit = context.service.config().worker.drain.duration();
    let link = link.clone();
    // The task is not tracked, because the daemon may end before the limit and must not wait for it.
    tokio::spawn(async move {
        tokio::time::sleep(limit).await;
        link.send(Event::DrainOver).await;
    });
}

/// Reloads the configuration and the definitions. A definition whose file has become defective stays as it was, and
/// `status` reports the defect. Returns the new roster.
fn reload(context: &Context) -> Arc<Roster> {
    let service = &context.service;
    let root = service.root();
    let settings = Config::reload(root, &service.config());
    service.use_settings(settings.map(|config| context.tuning.applied(config)));
    service.use_roster(Roster::reload(root, &service.roster()).on(&context.host.support));
    service.withdraw_profiles();
    service.read_schedules();
    service.chats().reload(root);
    service.read_plugins();
    tracing::info!("reloaded");
    report(service);
    service.roster()
}

/// Logs unusable parts of the configuration, and the policies that this host cannot enforce.
pub(crate) fn report(service: &Service) {
    let policies = service.roster().policies().unenforceable_findings().collect::<Vec<_>>();
    for finding in service.configuration_findings().into_iter().chain(policies) {
        if finding.is_error() {
            tracing::error!(problem = %finding, "{}", finding.code);
        } else {
            tracing::warn!(problem = %finding, "{}", finding.code);
        }
    }
}
