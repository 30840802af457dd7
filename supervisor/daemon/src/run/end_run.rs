//! Ends a run whose shim has gone or was never started: by proof that nothing of it is left, or by a person's decision.
//! Judges failed starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{BoardName, EndCause, Ending, EventId, Run, RunId};
use shim::rundir::{FailedStart, RunDir};

use super::attempt::{Charge, Terms};
use super::command_start::CommandStart;
use super::context::{Context, RETRY};
use super::denied_host::with_denied_host;
use super::evidence_of_life::{self, Records};
use super::fault::{Fault, LaunchError};
use super::finish::{Over, finish};
use super::key::TaskKey;
use super::launch::Launch;
use super::live::Phase;
use super::proof::{Proof, RunFacts, Shim};
use super::records::Records as EndRecords;
use super::release::{EndDelay, Next, Release, is_decided, wait_for_release};
use super::remaining_processes::Cleared;
use super::report::Report;
use super::shim_watch::watch_to_end;
use super::unkillable::Leftover;
use service::BoardHandle;
use setup::lanes::{Contact, not_before};

/// Ends a run whose shim was not started.
pub(crate) async fn fail_to_start(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    terms: &Terms,
    error: LaunchError,
) {
    tracing::warn!(task = %key, run = %run.id, stage = %error.stage, error = %error.error, "spawn_failed");
    let why = format!("failed to {}: {}", error.stage, error.error);
    let cause = StartFailure { step: error.stage.to_string(), error: error.error, why };
    let (report, mut ending) = failed_start(terms, error.fault, cause);
    report_to_loop(context, key, report).await;
    ending.failure_limit = context.service.config().worker.failure_limit.get();
    finish(context, board, key, run, Over { ending, records: None, start: None }).await;
}

async fn report_to_loop(context: &Context, key: &TaskKey, report: Option<Report>) {
    if let Some(report) = report {
        context.tell(key, report).await;
    }
}

/// Judges a start that the shim or `confine` reported as failed. Returns the report for the owner loop and the ending
/// for the board.
pub(crate) fn not_started(terms: &Terms, failed: FailedStart) -> (Option<Report>, Ending) {
    let fault = match &terms.needs {
        Some(needs) => Fault::from_failed_start(&failed, needs),
        // The profile no longer exists, so no other task waits for its environments.
        None => Fault::Task,
    };
    let step = failed.step.word().to_owned();
    let why = format!("the start failed at its step `{step}`: {}", failed.error);
    failed_start(terms, fault, StartFailure { step, error: failed.error, why })
}

/// A step that failed at a start, its error, and both in words.
pub(crate) struct StartFailure {
    pub(crate) step: String,
    pub(crate) error: String,
    pub(crate) why: String,
}

/// Judges a failed start by its fault. Returns the report for the owner loop and the ending for the board.
pub(crate) fn failed_start(
    terms: &Terms,
    fault: Fault,
    StartFailure { step, error, why }: StartFailure,
) -> (Option<Report>, Ending) {
    let failed = |error, fault| Ending::new(EndCause::SpawnFailed { step, error, fault });
    match fault {
        Fault::Host => (Some(Report::Shortage(why)), Ending::new(EndCause::NeverStarted)),
        Fault::Moment => (Some(Report::Deferred(why)), Ending::new(EndCause::NeverStarted)),
        Fault::Abandoned => (None, Ending::new(EndCause::NeverStarted)),
        Fault::Environment(environment) if terms.charge == Charge::Environment => {
            (Some(Report::EnvironmentFailed(environment, why)), failed(error, kernel::Fault::Environment))
        }
        Fault::Definition => (None, failed(error, kernel::Fault::Definition)),
        Fault::Environment(_) | Fault::Task => (None, failed(error, kernel::Fault::Task)),
    }
}

/// Proves the end of a run whose shim has gone, and records it on the board. Retries until both are done.
pub(super) async fn conclude(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    terms: &Terms,
    ShimFate { shim, launched }: ShimFate<'_>,
) {
    // The board may have more of the run by now than at its claim.
    let learnt = board.readers().with(|view| view.expect_run(run.id)).unwrap_or_else(|_| run.clone());
    let groups = match launched {
        Some(launch) => {
            let named = context.host.named_group(board.name(), run.id);
            named.into_iter().chain(launch.cgroup.clone()).collect()
        }
        None => context.host.groups(board.name(), run.id),
    };
    let mut facts = facts_of(context, board, learnt, shim, groups);
    let mut reported = false;
    let mut trouble = EndDelay::new(context, board, key, run);
    let (mut leftover, mut records) = (None, None);
    // Last event at the time when the survivors were shown. An earlier request to reclaim the task expected a worker
    // that can be ended.
    let mut shown_at: Option<EventId> = None;
    let ending = loop {
        // Taken at each try: a reply of a host may have arrived since the last one.
        let contact = context.host.proxies.last_contact(board, run.id);
        let mut asked = RunFacts { contact, ..facts.clone() };
        let proof = tokio::task::spawn_blocking(move || {
            let proof = evidence_of_life::prove(&mut asked);
            let is_over = matches!(proof, Ok(Proof::Ended(_) | Proof::NotStarted(..)));
            // What cannot be read now is read again later.
            let records = if is_over { EndRecords::read(&asked.path).ok() } else { None };
            (proof, asked, records)
        });
        let why = match proof.await {
            Ok((proof, learnt, read)) => {
                facts = learnt;
                records = read;
                match proof {
                    Ok(Proof::Ended(ending)) => break *ending,
                    Ok(Proof::NotStarted(failed, ending)) => {
                        let (report, told) = not_started(terms, failed);
                        report_to_loop(context, key, report).await;
                        break Ending { cause: told.cause, ..*ending };
                    }
                    Ok(Proof::Alive) => {
                        // Its shim appeared between the last check and this one.
                        watch_to_end(context, board, key, run, None).await;
                        continue;
                    }
                    Ok(Proof::Unkillable(left)) => {
                        let leftover = leftover.get_or_insert_with(|| Leftover::before_checks(board, run.id));
                        context.tell(key, leftover.checked(board, key, run.id, left).await).await;
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                    Ok(Proof::Unknown { why, watch }) => {
                        let since = match shown_at {
                            Some(since) => since,
                            None => last_event(board, key).await,
                        };
                        if shown_at.replace(since).is_none() {
                            tracing::error!(task = %key, run = %run.id, %why, "survivors_unknown");
                        }
                        context.tell(key, Report::Delayed(Phase::Unknown, why)).await;
                        match wait_for_release(board, run, since, watch).await {
                            Release::Freed(reason) => {
                                clear(context, board, key, &facts, Records::Needed).await;
                                break Ending::new(EndCause::Stopped(reason));
                            }
                            Release::Look => continue,
                            Release::Closed => return context.tracer.forget((board.id(), run.id)),
                        }
                    }
                    Err(error) => error,
                }
            }
            Err(panic) => panic.to_string(),
        };
        if !reported {
            tracing::error!(task = %key, run = %run.id, error = %why, "end_not_proven");
            reported = true;
        }
        let told =
            format!("{why}; `supervisor reclaim {}` ends the run without the unreadable records", key.task);
        if let Next::DoWithout(reason) = trouble.wait(&told).await {
            tracing::error!(task = %key, run = %run.id, error = %why, "records_lost");
            clear(context, board, key, &facts, Records::AsFarAsReadable).await;
            break Ending::new(EndCause::Stopped(reason));
        }
    };
    // The command may have started and ended before its notification arrived.
    let start = if launched.is_some_and(|launch| launch.followed.is_start_told()) {
        None
    } else {
        let dir = RunDir::open(&facts.path).ok();
        dir.and_then(|dir| CommandStart::read(&dir, &context.host.boot_id)).map(|start| match launched {
            Some(_) => start.untold(),
            None => start,
        })
    };
    // Only the proxy knows the last refused host, and the time at which a service accepts requests again.
    let run_key = (board.id(), run.id);
    let ending = with_denied_host(ending, context.host.proxies.last_denied(run_key));
    let cause = not_before(ending.cause, context.host.proxies.opens(run_key));
    let ending = Ending { cause, ..ending };
    finish(context, board, key, run, Over { ending, records, start }).await;
}

/// Fate of a run's shim, and its launch by this daemon.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShimFate<'a> {
    pub(super) shim: Shim,
    /// None for a run of an earlier daemon.
    pub(super) launched: Option<&'a Launch>,
}

impl ShimFate<'_> {
    /// Fate of a shim that an earlier daemon has started.
    pub(super) const UNSEEN: Self = ShimFate { shim: Shim::Unseen, launched: None };
}

/// Collects the known facts of a run before its directory is read. `groups` are the cgroups that may belong to it.
fn facts_of(
    context: &Context,
    board: &BoardHandle,
    run: Run,
    shim: Shim,
    groups: BTreeSet<PathBuf>,
) -> RunFacts {
    // The path of a scratch directory is recorded with the claim; another path only after preparation of the workspace.
    let scratch = context.host.root.workspaces(board.name());
    let is_prepared = |path: &String| !Path::new(path).starts_with(&scratch);
    let was_prepared = run.worker_pid.is_some() || run.workspace_path.as_ref().is_some_and(is_prepared);
    RunFacts {
        path: context.host.root.run_dir(board.name(), run.id),
        root: context.host.root_id.clone(),
        boot_id: context.host.boot_id.clone(),
        groups: groups.into_iter().filter(|group| group.exists()).collect(),
        run,
        was_prepared,
        shim,
        contact: Contact::default(),
    }
}

/// Ends the processes that surely belong to runs whose end cannot be proved, because the daemon ends all its workers.
/// The claims stay.
pub(crate) async fn end_survivors(context: &Context, runs: Vec<(BoardName, RunId)>) {
    let mut ends = tokio::task::JoinSet::new();
    for (name, id) in runs {
        let Ok(board) = context.service.board(&name) else { continue };
        let Ok(run) = board.readers().with(|view| view.expect_run(id)) else { continue };
        let groups = context.host.groups(board.name(), run.id);
        let facts = facts_of(context, &board, run, Shim::Unseen, groups);
        // Each takes a limited time, and they run in parallel.
        ends.spawn_blocking(move || (name, id, evidence_of_life::clear(&facts, Records::Needed)));
    }
    while let Some(ended) = ends.join_next().await {
        match ended {
            Ok((board, run, Ok(cleared))) => tracing::info!(%board, %run, left = ?cleared, "survivors_ended"),
            Ok((board, run, Err(why))) => tracing::error!(%board, %run, why, "survivors_not_ended"),
            Err(panic) => tracing::error!(error = %panic, "survivors_not_ended"),
        }
    }
}

/// Returns the board's last event. A later request has seen the run as shown, and is obeyed.
async fn last_event(board: &BoardHandle, key: &TaskKey) -> EventId {
    loop {
        match board.readers().with(|view| view.last_event()) {
            Ok(last) => return last,
            Err(error) => tracing::warn!(task = %key, %error, "board_not_read"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Ends the processes found of a run that a person has reclaimed, before another run may claim the task.
///
/// Processes that may belong to others are shown and not ended. The task becomes free when they have ended, or when the
/// person reclaims it again.
async fn clear(context: &Context, board: &BoardHandle, key: &TaskKey, facts: &RunFacts, records: Records) {
    let mut shown_at: Option<EventId> = None;
    loop {
        let asked = facts.clone();
        let cleared = tokio::task::spawn_blocking(move || evidence_of_life::clear(&asked, records)).await;
        let why = match cleared {
            Ok(Ok(Cleared::Nothing)) => return,
            Ok(Ok(Cleared::Perhaps(found))) => {
                let since = match shown_at {
                    Some(since) => since,
                    None => last_event(board, key).await,
                };
                shown_at = Some(since);
                if is_decided(board, &facts.run, since).is_some() {
                    tracing::warn!(task = %key, run = %facts.run.id, left = found, "freed_beside");
                    return;
                }
                format!(
                    "all processes with the run's mark have ended. {found} has the worker's session or user but not the mark: \
                     end it by hand, or run `supervisor reclaim {}` again to free the task and leave it running",
                    key.task
                )
            }
            Ok(Err(why)) => why,
            Err(panic) => panic.to_string(),
        };
        let why = format!("survivors unknown: {why}");
        context.tell(key, Report::Delayed(Phase::Unknown, why)).await;
        tokio::time::sleep(RETRY).await;
    }
}
