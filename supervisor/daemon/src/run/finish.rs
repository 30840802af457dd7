//! Last step of a run: its end is recorded on the board, and its remains on the host are removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kernel::{
    Board, BoardId, Clock as _, CommitMode, Digest, Ending, Finished, LostArtifact, Purpose, Run, RunId,
    Sweep, SweepScope, SystemClock, Task, Verdict, View,
};
use policies::Identity;
use serde_json::{Value, json};
use shim::rundir::RunDir;
use shim::shortage::unless_short;
use workspace::{Name, Uncommitted};

use super::artifacts::{self, TakenFiles};
use super::command_start::{CommandStart, StartRecord};
use super::context::{Context, RETRY};
use super::evidence;
use super::key::TaskKey;
use super::live::Phase;
use super::records::Records;
use super::release::{EndDelay, Next};
use super::report::{Ended, Report};
use super::rest::{self, EndedWorktree};
use super::seal;
use crate::gc::{self, CollectResult};
use api::RunListeners;
use base::exit::Code;
use base::failpoint;
use host::cgroup;
use host::remove::{self, Leftover};
use service::BoardHandle;

/// Longest pause between two tries to record the end.
const LONGEST: Duration = Duration::from_secs(10);

/// Number of tries of a removal for which the host lacks a resource: about a minute.
const TRIES: u32 = 120;

/// Facts about a run that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) ending: Ending,
    /// Records of its directory, if they were read already.
    pub(super) records: Option<Records>,
    /// Start of its command, if the owner loop does not know of it.
    pub(super) start: Option<CommandStart>,
}

/// Records the start of a command. The board refuses it for a run whose end it has.
fn record_start(
    board: &mut Board<'_>,
    run: RunId,
    start: &CommandStart,
) -> Result<StartRecord, kernel::Error> {
    match start.record(board, run) {
        Err(kernel::Error::Conflict { .. }) => Ok(StartRecord::Known),
        recorded => recorded,
    }
}

/// Records the end of a run on the board, retrying until it succeeds, and removes the run's remains. A stopped daemon
/// leaves this to the next one.
pub(super) async fn finish(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    Over { mut ending, records, start }: Over,
) {
    // From the reply on, the owner loop counts this run, so a daemon that stops waits for the record of its end.
    if !context.reports.announce_end(key).await {
        return context.tracer.forget((board.id(), run.id));
    }
    let path = context.host.root.run_dir(board.name(), run.id);
    let records = Arc::new(match records {
        Some(records) => records,
        None => Records::read_retrying(&mut EndDelay::new(context, board, key, run), path.clone()).await,
    });
    // Sealed first: only a sealed tree is safe for the steps below.
    let (mut taken, ended_worktree) = seal(context, key, run, &records).await;
    taken.join(TakenFiles::lost(records.unsealed(run).into_iter().collect()));
    failpoint::pass("after-seal");
    // Before the check of the task runs, so that the check proves the commit.
    let found =
        Closing { context, board, key, run, records: &records }.settle_rest(&ending, ended_worktree).await;
    ending.evidence = gather_evidence(run, &records).await;
    if let Some(found) = found {
        note_rest(&mut ending, &found, &records);
    }
    taken.join(take_artifacts(context, board, key, run, &records).await);
    let taken = Arc::new(taken);
    failpoint::pass("after-artifacts");
    context.host.proxies.close((board.id(), run.id));
    keep_files(context, key, run, &records).await;
    // Before the board is told: the next run of the task may start at once, and opens its workspace again.
    Places::of_run(context, board, key, run.id, &records).clean().await;
    failpoint::pass("before-finish");
    let (mut reported, mut pause) = (false, RETRY);
    let finished: Option<Finished> = loop {
        let (id, ending) = (run.id, ending.clone());
        let (taken, records, begun) = (Arc::clone(&taken), Arc::clone(&records), start.clone());
        // One transaction, so that a crash leaves no artifact without its run's end: before it, the next daemon takes
        // the artifacts again; after it, they are recorded.
        let recorded = board.write(move |board| {
            let recorded = begun.map(|start| record_start(board, id, &start)).transpose()?;
            board.record_messages(id, &records.news)?;
            Ok((board.end_run(id, &ending, &taken.handed)?, recorded))
        });
        match recorded.await {
            Ok((finished, recorded)) => {
                if let Some((start, recorded)) = start.zip(recorded) {
                    failpoint::pass("after-started");
                    context.tell(key, start.report(recorded)).await;
                }
                break Some(finished);
            }
            // The run no longer exists: its board was restored to an earlier state.
            Err(failure) if failure.code == Code::NotFound => {
                tracing::error!(task = %key, run = %run.id, error = %failure, "end_refused");
                break None;
            }
            // Any other error is retried: these records are the only trace of the run's end, and nothing else frees the
            // task.
            Err(failure) => {
                if !reported {
                    tracing::error!(task = %key, run = %run.id, error = %failure, "end_not_recorded");
                    reported = true;
                }
                context.tell(key, Report::Delayed(Phase::Settling, failure.to_string())).await;
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST);
            }
        }
    };
    failpoint::pass("after-finish");
    let digests = taken.digests();
    // The guards go first, because they keep the bytes from the sweep.
    drop(taken);
    sweep_refused(context, board, key, digests);
    if let Some(finished) = &finished {
        tracing::info!(task = %key, run = %run.id, outcome = %finished.outcome, status = %finished.status, "ended");
    }
    trace(context, board, run.id, finished.as_ref());
    if let Some(before) = finished.as_ref().and_then(|finished| finished.replaces) {
        // The log of a replaced run can no longer be found: its run is not listed.
        drop(std::fs::remove_file(context.host.root.log(board.name(), &key.task, before)));
    }
    if finished.as_ref().is_some_and(|finished| finished.status == kernel::Status::Archived) {
        remove_workspace(context, board, key).await;
    }
    // The end is on the board, so the run directory holds no further information.
    let removed = with_room(move || {
        // A missing directory, or one of another root, needs no removal.
        let Some(dir) = unless_short(RunDir::open(&path)).map_err(|e| Leftover::from_error(&e))? else {
            return Ok(());
        };
        dir.remove().map_err(|e| Leftover::from_error(&e))
    });
    if let Err(error) = removed.await {
        tracing::warn!(task = %key, %error, "run_directory_not_removed");
    }
    failpoint::pass("after-cleanup");
    let (lived, at) = (ending.lived, ending.ended_at);
    let ended = finished.map(|finished| Box::new(Ended { finished, lived, at }));
    context.tell(key, Report::Ended(ended)).await;
}

/// Exports the trace of a run whose end is recorded, if an exporter is configured.
fn trace(context: &Context, board: &BoardHandle, id: RunId, finished: Option<&Finished>) {
    let is_wanted = finished.is_some() && context.service.config().telemetry.otlp_endpoint.is_some();
    let run = if is_wanted { board.readers().with(|view| view.expect_run(id)).ok() } else { None };
    match run {
        Some(run) => context.tracer.ended(board.name(), board.id(), &run, SystemClock.now()),
        None => context.tracer.forget((board.id(), id)),
    }
}

/// Removes the bytes that were taken and not recorded. Runs in the background, because it waits for uploads in
/// progress.
fn sweep_refused(context: &Context, board: &BoardHandle, key: &TaskKey, digests: BTreeSet<Digest>) {
    if digests.is_empty() {
        return;
    }
    let (service, name, key) = (Arc::clone(&context.service), board.name().clone(), key.clone());
    let sweep = move || {
        let Ok(board) = service.board(&name) else { return };
        let scope = SweepScope::Only(digests);
        let refused =
            |named: &BTreeSet<Digest>| matches!(&scope, SweepScope::Only(all) if !all.is_subset(named));
        let swept = match board.readers().with(|view| view.attached(&scope)) {
            Ok(named) if refused(&named) => board.sweep_blobs(&scope, Sweep::Remove).map(drop),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = swept {
            // `gc` removes them later.
            tracing::warn!(task = %key, %error, "artifacts_not_swept");
        }
    };
    context.tasks.spawn_blocking(sweep);
}

/// Removes the scratch workspace of a task that was archived while it ran. `gc` repeats failed removals.
async fn remove_workspace(context: &Context, board: &BoardHandle, key: &TaskKey) {
    let (service, name, id) = (Arc::clone(&context.service), board.name().clone(), key.task.clone());
    let removed = tokio::task::spawn_blocking(move || {
        gc::remove_archived(service.root(), service.board(&name)?.as_ref(), &id)
    });
    match removed.await {
        Ok(Ok(CollectResult::Absent | CollectResult::Gone(_))) => {}
        Ok(Ok(CollectResult::Foreign(why) | CollectResult::Stuck(why))) => {
            tracing::warn!(task = %key, %why, "workspace_stays");
        }
        Ok(Err(error)) => tracing::warn!(task = %key, %error, "workspace_not_removed"),
        Err(error) => tracing::warn!(task = %key, %error, "workspace_not_removed"),
    }
}

/// Takes over the run's worktree, retrying during a shortage of the host. Returns the defects, and the worktree.
async fn seal(
    context: &Context,
    key: &TaskKey,
    run: &Run,
    records: &Records,
) -> (TakenFiles, Option<EndedWorktree>) {
    let identity = records.identity();
    // The records of a copied run directory are empty: its worktree belongs to another root, whose worker may use it.
    let Some(run_state) = &records.run_state else { return (TakenFiles::default(), None) };
    let Some(worktree) = run_state.worktree.clone() else { return (TakenFiles::default(), None) };
    let start = run_state.git_start.as_ref().and_then(evidence::GitStart::head);
    loop {
        let tree = worktree.clone();
        let sealed = tokio::task::spawn_blocking(move || seal::seal(tree, identity)).await;
        let why = match sealed {
            Ok(Ok(mut sealed)) => {
                for one in &sealed.lost {
                    tracing::warn!(task = %key, run = %run.id, path = one.path, reason = one.reason, "sealed");
                }
                let lost = std::mem::take(&mut sealed.lost);
                return (TakenFiles::lost(lost), Some(EndedWorktree::new(worktree, start, sealed)));
            }
            Ok(Err(why)) => format!("its worktree cannot be closed: {why}"),
            Err(panic) => panic.to_string(),
        };
        tracing::warn!(task = %key, run = %run.id, error = %why, "worktree_not_sealed");
        // There is no way around this step: an unsealed tree may run what the worker has planted.
        context.tell(key, Report::Delayed(Phase::Settling, why)).await;
        tokio::time::sleep(RETRY).await;
    }
}

/// Run that is being closed.
struct Closing<'a> {
    context: &'a Context,
    board: &'a BoardHandle,
    key: &'a TaskKey,
    run: &'a Run,
    records: &'a Records,
}

impl Closing<'_> {
    /// Looks for the changes that the run left uncommitted, if it hands its work over, and commits them if its task asks
    /// for that. Retries during a shortage of the host.
    async fn settle_rest(
        &self,
        ending: &Ending,
        ended_worktree: Option<EndedWorktree>,
    ) -> Option<Uncommitted> {
        let (ended_worktree, run_state) = (ended_worktree?, self.records.run_state.as_ref()?);
        let (run, id) = (self.run, self.run.id);
        let asked = |view: &View<'_>| -> Result<(bool, Task), kernel::Error> {
            Ok((view.hands_over(id, ending)?, view.expect_task(&run.task_id)?))
        };
        let (hands_over, task) = self.read(asked).await?;
        if !hands_over {
            return None;
        }
        let at = ending.ended_at.unwrap_or_else(|| SystemClock.now());
        let terms = (run_state.commit == CommitMode::Auto).then(|| rest::terms(&task, run, at));
        let identity = self.records.identity();
        loop {
            let (ended_worktree, terms) = (ended_worktree.clone(), terms.clone());
            let settled =
                tokio::task::spawn_blocking(move || rest::settle(ended_worktree, terms, identity)).await;
            let why = match settled {
                Ok(Ok(found)) => return Some(found),
                Ok(Err(why)) => format!("its uncommitted changes cannot be read: {why}"),
                Err(panic) => panic.to_string(),
            };
            self.wait(why).await;
        }
    }

    /// Reads the board, retrying until it succeeds; none if the run or its task no longer exists.
    async fn read<T>(&self, asked: impl Fn(&View<'_>) -> Result<T, kernel::Error>) -> Option<T> {
        loop {
            match self.board.readers().with(&asked) {
                Ok(found) => return Some(found),
                Err(kernel::Error::NotFound { .. }) => return None,
                Err(error) => self.wait(error.to_string()).await,
            }
        }
    }

    async fn wait(&self, why: String) {
        tracing::warn!(task = %self.key, run = %self.run.id, error = %why, "rest_not_settled");
        self.context.tell(self.key, Report::Delayed(Phase::Settling, why)).await;
        tokio::time::sleep(RETRY).await;
    }
}

/// Adds the uncommitted changes to the end of a run.
fn note_rest(ending: &mut Ending, found: &Uncommitted, records: &Records) {
    let Some(run_state) = &records.run_state else { return };
    let Some(worktree) = &run_state.worktree else { return };
    ending.uncommitted = rest::block_reason(run_state.commit, found, worktree);
    ending.branch_note = rest::branch_note(found, worktree);
    if !found.is_empty() {
        ending.evidence.get_or_insert_with(|| json!({}))["uncommitted"] = json!(found);
    }
}

/// Gathers the run's changes in git. A check only tests the work, and has none.
async fn gather_evidence(run: &Run, records: &Records) -> Option<Value> {
    if run.purpose == Purpose::Check {
        return None;
    }
    let (git_start, identity) = (records.run_state.as_ref()?.git_start.clone()?, records.identity());
    tokio::task::spawn_blocking(move || evidence::gather(&git_start, identity)).await.ok()
}

/// Takes the declared artifacts out of the workspace, retrying during a shortage of the host. Most runs declare none.
async fn take_artifacts(
    context: &Context,
    board: &BoardHandle,
    key: &TaskKey,
    run: &Run,
    records: &Arc<Records>,
) -> TakenFiles {
    let id = run.id;
    let mut trouble = EndDelay::new(context, board, key, run);
    loop {
        let mut lost = Vec::new();
        let why = match board.readers().with(|view| view.expect_run(id)) {
            // The run is read again in each round, because it may have been closed since.
            Ok(run)
                if run.ended_at.is_some()
                    || run.verdict.iter().all(|verdict| verdict.artifacts().is_empty()) =>
            {
                return TakenFiles::default();
            }
            Ok(run) => {
                lost.extend(run.verdict.iter().flat_map(Verdict::artifacts).cloned());
                let (records, blobs) = (Arc::clone(records), board.blobs().clone());
                let taken = tokio::task::spawn_blocking(move || artifacts::take(&run, &records, &blobs));
                match taken.await {
                    Ok(Ok(taken)) => return taken,
                    Ok(Err(why)) => format!("its artifacts cannot be kept: {why}"),
                    Err(panic) => panic.to_string(),
                }
            }
            Err(kernel::Error::NotFound { .. }) => return TakenFiles::default(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(task = %key, run = %id, error = %why, "artifacts_not_taken");
        if matches!(trouble.wait(&why).await, Next::DoWithout(_)) && !lost.is_empty() {
            let lost = lost.into_iter().map(|path| LostArtifact { path, reason: why.clone() });
            return TakenFiles::lost(lost.collect());
        }
    }
}

/// Keeps the files that the run changed in its home, if its profile demands it. A failure is only logged, because the
/// run has ended.
async fn keep_files(context: &Context, key: &TaskKey, run: &Run, records: &Records) {
    let (identity, root) = (records.identity(), context.host.root.clone());
    let Some(retention) = records.run_state.as_ref().and_then(|run_state| run_state.retained.clone()) else {
        return;
    };
    let retained = tokio::task::spawn_blocking(move || retention.keep(&root, identity)).await;
    let error = match retained {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(panic) => panic.to_string(),
    };
    tracing::error!(task = %key, run = %run.id, error, "home_not_kept");
}

/// Places of a dead run on the host, named after the run, so that they are found without its directory.
#[derive(Clone, Debug)]
struct Places {
    run_listeners: Arc<RunListeners>,
    board: BoardId,
    run: RunId,
    home: PathBuf,
    user: WorkerUser,
    groups: BTreeSet<PathBuf>,
    /// Directory of the board's scratch workspaces.
    workspaces: PathBuf,
    /// Name of the task's scratch workspace.
    workspace: Option<Name>,
}

/// User of a run's worker, who owns the private places of the run.
#[derive(Clone, Copy, Debug)]
enum WorkerUser {
    /// None if it is the user of the daemon.
    Recorded(Option<Identity>),
    /// The run ended before the user was recorded.
    Unknown,
}

/// A place that stays, for a reason.
struct Remaining {
    /// Name of the event for the log.
    event: &'static str,
    path: PathBuf,
    leftover: Leftover,
}

impl Places {
    fn of_run(context: &Context, board: &BoardHandle, key: &TaskKey, run: RunId, records: &Records) -> Self {
        let (name, host) = (board.name(), &context.host);
        // If this daemon runs in another cgroup than its predecessor, only the spec names the predecessor's cgroups.
        let recorded = records.spec.as_ref().and_then(|spec| spec.cgroup.clone());
        Places {
            run_listeners: Arc::clone(&host.run_listeners),
            board: board.id(),
            run,
            home: host.root.run_home(name, run),
            user: records
                .run_state
                .as_ref()
                .map_or(WorkerUser::Unknown, |state| WorkerUser::Recorded(state.identity())),
            groups: host.named_group(name, run).into_iter().chain(recorded).collect(),
            workspaces: host.root.workspaces(name),
            workspace: Name::new(key.task.as_str()).ok(),
        }
    }

    /// Removes the socket, the private places and the cgroups of the run, and closes the scratch workspace of its task to other
    /// users of the host: its worker may have opened it, and does not need it until its next run. Each step is taken even if
    /// another one fails. Retries up to [`TRIES`] times while the host lacks a resource. The end of the run waits for it.
    async fn clean(self) {
        let places = Arc::new(self);
        for tries in 1.. {
            let once = Arc::clone(&places);
            // In a blocking thread, because it removes files.
            match tokio::task::spawn_blocking(move || once.clean_once()).await {
                Ok(stays) if tries < TRIES && stays.iter().any(|one| one.leftover.is_shortage) => {
                    tokio::time::sleep(RETRY).await;
                }
                Ok(stays) => {
                    for Remaining { event, path, leftover } in stays {
                        tracing::warn!(path = %path.display(), error = %leftover, "{event}");
                    }
                    return;
                }
                Err(panic) => return tracing::warn!(error = %panic, "places_not_removed"),
            }
        }
    }

    /// Cleans the places that are there. Blocks.
    fn clean_once(&self) -> Vec<Remaining> {
        self.run_listeners.close(self.board, self.run);
        let mut stays = Vec::new();
        let mut keep = |event, path: &Path, done: Result<(), Leftover>| {
            stays.extend(done.err().map(|leftover| Remaining { event, path: path.to_owned(), leftover }));
        };
        // First the home, which holds copies of logins and secrets.
        let home = match self.user {
            _ if !self.home.exists() => Ok(()),
            WorkerUser::Recorded(identity) => remove::remove_private(&self.home, identity),
            WorkerUser::Unknown => remove::remove_forgotten(&self.home),
        };
        keep("home_not_removed", &self.home, home);
        for group in self.groups.iter().filter(|group| group.exists()) {
            let removed = cgroup::remove_run(group).map_err(|e| Leftover::from_error(&e));
            keep("cgroup_not_removed", group, removed);
        }
        if let Some(name) = &self.workspace {
            let closed =
                workspace::close_scratch(&self.workspaces, name).map_err(|e| Leftover::from_error(&e));
            keep("workspace_not_closed", &self.workspaces, closed);
        }
        stays
    }
}

/// Runs a removal off the runtime's threads, and retries up to [`TRIES`] times while the host lacks a resource. The end
/// of the run waits for it.
async fn with_room(
    removal: impl Fn() -> Result<(), Leftover> + Send + Sync + 'static,
) -> Result<(), Leftover> {
    let removal = Arc::new(removal);
    let mut tries = 1;
    loop {
        let removal = Arc::clone(&removal);
        match tokio::task::spawn_blocking(move || removal()).await {
            Ok(Err(stays)) if stays.is_shortage && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(RETRY).await;
            }
            Ok(done) => return done,
            Err(panic) => return Err(Leftover::because(&panic)),
        }
    }
}
