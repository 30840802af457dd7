//! Turns a claimed run into a running shim: user, workspace, private places, cgroup, spec.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kernel::{Clock as _, Purpose, WorkspaceSpec};
use policies::{BoardAccess, Identity, LaneHosts, Policy, RunContext, SecretError, SecretStores};
use shim::rundir::{Conversation, LeaseSpec, RunDir, RunSpec, VERSION, boottime_us};
use workspace::{CheckedOut, Prepared};

use super::authorities;
use super::environment::Environment;
use super::evidence;
use super::fault::LaunchError;
use super::files;
use super::followed::Followed;
use super::heard_runs;
use super::key::TaskKey;
use super::login_shell;
use super::order::{Host, Order};
use super::private::Private;
use super::retained_files::{self, HomeOwner};
use super::run_context::{Parts, closed_paths_of, run_context};
use super::run_state::RunState;
use super::session::{self, Next, SessionDir, SessionDirState, SessionOwner};
use super::stage::Stage;
use super::survivors::ROOT_ID;
use super::workspace_setup;
use base::failpoint;
use base::failure::Failure;
use host::job::Asker;
use host::shim_program::ShimProgram;
use host::spare::Spare;
use setup::lanes::{Branch, EndingRules, Facts, RunPaths, Start, Terms, search_path};

/// A run that is ready to start.
#[derive(Debug)]
pub(crate) struct Launch {
    pub dir: RunDir,
    pub prepared: Prepared,
    pub identity: Option<Identity>,
    pub deadline_us: Option<u64>,
    pub cgroup: Option<PathBuf>,
    pub policy: Policy,
    /// Name of the work's lane and its hosts; none for a check.
    pub lane: Option<LaneHosts>,
    /// Facts by which its shim is followed.
    pub followed: Followed,
    spare: Option<Spare>,
}

/// Makes the directories of a run's log and of the records of all runs.
fn make_dirs(dirs: &[Option<&Path>]) -> Result<(), LaunchError> {
    for dir in dirs.iter().flatten() {
        base::paths::make_dir(dir, 0o700)
            .map_err(|e| LaunchError::refusal(Stage::MakeRunDirectory, Environment::Root, e))?;
    }
    Ok(())
}

fn workspace_of(order: &Order) -> Result<&WorkspaceSpec, LaunchError> {
    order.task.workspace.require().map_err(|e| LaunchError::task(Stage::ReadWorkspace, e.to_string()))
}

/// Returns the cgroup of a waiting shim, or makes one. None on a host without cgroups.
fn cgroup(host: &Host, order: &Order, spare: Option<&Spare>) -> Result<Option<PathBuf>, LaunchError> {
    match (spare, &host.cgroups) {
        (Some(spare), _) => Ok(spare.group().map(Path::to_owned)),
        (None, Ok(cgroups)) => {
            let made = cgroups.make_run(&order.board, order.run.id);
            Ok(Some(made.map_err(|e| LaunchError::system(Stage::MakeCgroup, &e))?))
        }
        (None, Err(_)) => Ok(None),
    }
}

/// Prepares all that a run needs. Blocks: it makes directories, and git may take long.
///
/// `own_gid` allocates a group for the task alone; `told` takes the progress of a checkout.
pub(crate) fn prepare(
    host: &Host,
    order: &Order,
    own_gid: &dyn Fn() -> Result<u32, Failure>,
    on_checkout: &dyn Fn(CheckedOut),
) -> Result<Launch, LaunchError> {
    const STAGE: Stage = Stage::MakeRunDirectory;
    let stores = host.root.secret_stores();
    check_secrets(order, &stores)?;
    let workspace = workspace_of(order)?;
    // The user decides about all that follows: places are made for it, and jobs run as it.
    let own_numbers = workspace_setup::OwnNumbers { uid: order.own_uid, gid: own_gid };
    let identity = workspace_setup::identity(workspace, &order.task, &own_numbers, &order.cancel)?;
    let workspaces = host.root.workspaces(&order.board);
    let at = workspace_setup::At { board: &order.board, workspaces: &workspaces };
    let asker = Asker { cancel: &order.cancel, on_checkout };
    let prepared = workspace_setup::workspace(workspace, &order.task, at, identity, &asker)?;
    let git_start = evidence::begin(workspace, &prepared, identity, &order.cancel);
    let deadline_us = u64::try_from(order.deadline.as_micros()).ok();
    let now = kernel::SystemClock.now();
    let deadline = deadline_us.map(|deadline| workspace_setup::wall_seconds(now, boottime_us(), deadline));
    let (role, skills) = (order.role_prompt.as_deref(), order.lane.skill_text(&order.skills));
    let commit = order.task.commits.mode.unwrap_or_else(|| order.lane.commit_mode());
    let branch = prepared.branch.as_ref().map(|branch| Branch { name: branch.name.clone(), commit });
    let terms = Terms {
        role,
        skills: &skills,
        purpose: order.run.purpose,
        workspace: &prepared.path,
        notes: &prepared.notes,
        deadline,
        branch: branch.as_ref(),
    };
    // A session that its directory no longer has cannot be resumed; the run then gets the whole context.
    let session_dir = session_dir(host, order, identity, &prepared.path)?;
    let resume = order
        .resume
        .as_ref()
        .filter(|_| session_dir.as_ref().is_some_and(|kept| kept.state == SessionDirState::Existing));
    let context = match resume.map(|resume| &resume.next) {
        Some(Next::Resume(news)) => news,
        Some(Next::Fork(_)) | None => &order.context,
    };
    let session = resume.map(|resume| resume.session.as_str());
    let prompt = order.lane.prompt_text(&order.task, context, &terms);
    let prompt = prompt.map_err(|e| LaunchError::definition(Stage::ReadScript, e.to_string()))?;
    let home = host.root.run_home(&order.board, order.run.id);
    let private = Private::at(&home);
    let bin = host.root.bin();
    let places = places(&prepared, &private, &workspaces, &bin);
    let link = order.lane.state().zip(session_dir.as_ref().map(|kept| kept.dir.as_path()));
    let of_lane = order.lane.home_files(&order.task, &places, &prompt);
    let mut home_files = login_shell::with_files(of_lane);
    home_files.extend(order.lane.skill_files(&order.skills));
    private.make(identity, &prompt, &home_files, link)?;
    let sessions = session_dir.as_ref().map(|kept| kept.dir.as_path());
    let retained = inhabitant(order)
        .map(|who| retained_files::place_retained(&host.root, who, &private.home, sessions, identity))
        .transpose()?
        .flatten();
    let blobs = kernel::Blobs::of_board(&host.root.board(&order.board));
    files::place_files(&private.files, identity, &order.files, &blobs)?;
    // A waiting shim already has a cgroup, which the run takes over.
    let spare = host.spares.take();
    let cgroup = cgroup(host, order, spare.as_ref())?;
    // The socket is bound before the spec names it.
    let board = host.way(order, identity)?;
    let kept = session_dir.map(|kept| kept.dir);
    let private_dirs = std::iter::once(home).chain(kept.clone()).collect();
    let closed = closed_paths_of(host, order, workspace, &prepared, private_dirs, &board)
        .map_err(|e| LaunchError::refusal(Stage::FindRoots, Environment::Root, e))?;
    let start = start(order, places, &prompt, session, deadline, &board);
    let read = start.read.iter().cloned().chain(authorities::file(&order.policy, &private.home));
    let parts = Parts {
        prepared: &prepared,
        private: &private,
        read: read.collect(),
        kept,
        identity,
        cgroup: cgroup.as_deref(),
        closed,
        board,
        stores,
    };
    let run_context = run_context(host, order, parts);
    let spec = run_spec(host, order, &prepared, start, deadline_us, cgroup.as_deref(), run_context);
    let path = host.root.run_dir(&order.board, order.run.id);
    make_dirs(&[spec.log.parent(), Some(&host.root.runs(&order.board))])?;
    // Up to here nothing outside the private places says that the run exists; from here on a daemon recovers it.
    failpoint::pass("after-prepare");
    let dir = RunDir::create(&path, &spec).map_err(|e| LaunchError::system(STAGE, &e))?;
    failpoint::pass("after-run-dir");
    // Written before the shim starts: the end of the run depends on it.
    let run_state = RunState {
        rules: EndingRules::of_run(&order.lane, order.run.purpose, session),
        identity: identity.map(|identity| (identity.uid, identity.gid)),
        exclusive_uid: identity.is_some() && order.own_uid.is_some(),
        worktree: workspace_setup::worktree(workspace, &order.task.id),
        commit,
        git_start,
        reviewer: order.config.review.profile.clone(),
        retained,
        pool_claim: order.resources.clone(),
        lane: named_hosts(order),
        failure_limit: order.limits.failure_limit,
    };
    run_state.write(&path).map_err(|e| LaunchError::system(STAGE, &e))?;
    let followed = Followed::new(&spec, &run_state.rules, heard_run(host, order));
    authorities::make(&order.policy, order.run.id, &path, &private.home)?;
    let (policy, lane) = (order.policy.clone(), run_state.lane);
    Ok(Launch { dir, prepared, identity, deadline_us, cgroup, policy, lane, followed, spare })
}

/// Adds the run to the launched runs, whose shims notify the daemon.
fn heard_run(host: &Host, order: &Order) -> heard_runs::Entry {
    let key = TaskKey { board: order.board.clone(), task: order.task.id.clone() };
    host.heard_runs.add(order.board_id, order.run.id, key)
}

/// Returns the hosts that a run's lane names. A check uses nothing of its lane.
fn named_hosts(order: &Order) -> Option<LaneHosts> {
    (order.run.purpose != Purpose::Check).then(|| order.lane.named_hosts(&order.lane_name))
}

/// Refuses a run if a secret cannot be read. The fault of a lane's secret lies with the lane, whichever policy applies.
/// Secrets that the policy names for variables are read by the process that becomes the worker.
fn check_secrets(order: &Order, stores: &SecretStores) -> Result<(), LaunchError> {
    let lane = order.run.profile.as_ref().map(ToString::to_string).unwrap_or_default();
    let of_lane = Environment::Secrets { lane };
    let added = &order.lane.additions;
    let of_policy = order.policy.env.secret.iter();
    for (variable, secret) in of_policy.filter(|(name, secret)| added.secrets.get(*name) == Some(*secret)) {
        secret.fetch(variable, stores).map_err(unread(of_lane.clone()))?;
    }
    for broker in &order.policy.broker {
        let policy = || Environment::Policy(order.policy.name().to_owned());
        let session_owner = if added.brokers.contains(broker) { of_lane.clone() } else { policy() };
        broker
            .secret
            .fetch(&format!("the broker of {}", broker.host), stores)
            .map_err(unread(session_owner))?;
    }
    Ok(())
}

fn unread(environment: Environment) -> impl FnOnce(SecretError) -> LaunchError {
    move |error| LaunchError::at(Stage::ReadSecrets, environment, &error)
}

/// Returns the directory of a run's sessions, if its lane keeps any.
fn session_dir(
    host: &Host,
    order: &Order,
    identity: Option<Identity>,
    workspace: &Path,
) -> Result<Option<SessionDir>, LaunchError> {
    let (Some(_), Some(profile)) = (order.lane.state(), &order.run.profile) else { return Ok(None) };
    if order.run.purpose == Purpose::Check {
        return Ok(None);
    }
    let session_owner = SessionOwner { root: &host.root, board: &order.board, task: &order.task.id, profile };
    if let Some(Next::Fork(from)) = order.resume.as_ref().map(|resume| &resume.next) {
        session::fork(session_owner, from, order.lane.projects().as_deref(), workspace, identity)?;
    }
    session::keep(session_owner, identity).map(Some)
}

/// Returns the owner of a run's home, if files of homes are kept. A check has none.
fn inhabitant(order: &Order) -> Option<HomeOwner<'_>> {
    let is_kept = order.run.purpose != Purpose::Check && !order.lane.kept_files().is_empty();
    let assignee = order.run.profile.as_ref().filter(|_| is_kept)?;
    let (lane, tenant) = ((&order.lane_name, &order.lane), order.task.tenant.as_ref());
    Some(HomeOwner { assignee, lane, tenant, use_of: order.home })
}

/// Returns the command of a run's worker, as its lane defines it.
fn start(
    order: &Order,
    places: RunPaths<'_>,
    prompt: &str,
    session: Option<&str>,
    deadline: Option<i64>,
    access: &BoardAccess,
) -> Start {
    let Order { board, task, run, token, .. } = order;
    order.lane.start(&Facts { board, task, run, token, places, prompt, session, access, deadline })
}

fn places<'a>(
    prepared: &'a Prepared,
    private: &'a Private,
    workspaces: &'a Path,
    bin: &'a Path,
) -> RunPaths<'a> {
    RunPaths {
        workspace: &prepared.path,
        home: &private.home,
        tmp: &private.tmp,
        files: &private.files,
        prompt: &private.prompt,
        workspaces,
        bin,
    }
}

fn run_spec(
    host: &Host,
    order: &Order,
    prepared: &Prepared,
    start: Start,
    deadline_us: Option<u64>,
    cgroup: Option<&Path>,
    run_context: RunContext,
) -> RunSpec {
    RunSpec {
        version: VERSION,
        board: order.board_id.to_string(),
        board_name: order.board.to_string(),
        task: order.task.id.to_string(),
        run: order.run.id.get(),
        nonce: order.run.nonce.clone().unwrap_or_default(),
        argv: start.argv,
        env: environment(host, order, prepared, start.env, &run_context),
        cwd: prepared.path.clone(),
        outside: start.outside,
        stdin: start.stdin,
        conversation: start.session.map(|form| Conversation {
            form,
            id: uuid::Uuid::new_v4().to_string(),
            resumed: start.resumed,
        }),
        terminal: start.terminal,
        log: host.root.log(&order.board, &order.task.id, order.run.id),
        log_cap: log_cap(order),
        stdout_cap: log_cap(order),
        deadline_us,
        grace_ms: u64::try_from(order.config.worker.grace().as_millis()).unwrap_or(u64::MAX),
        idle_ms: order
            .limits
            .idle_limit
            .filter(|_| order.run.purpose != Purpose::Check)
            .and_then(|limit| u64::try_from(limit.as_millis()).ok()),
        policy: order.policy.clone(),
        run_context,
        cgroup: cgroup.map(Path::to_owned),
        event_socket: host.root.shim_event_socket(),
        host: Some(host.support.clone()),
        lease: Some(LeaseSpec {
            dir: host.root.leases(),
            workspace: prepared.path.clone(),
            place: prepared.place,
            holder: workspace::LeaseHolder::Run {
                board: order.board.to_string(),
                run: order.run.id.get(),
                task: Some(order.task.id.to_string()),
            },
        }),
    }
}

/// Returns the environment of a worker: its lane's variables, and the variables that its policy passes.
fn environment(
    host: &Host,
    order: &Order,
    prepared: &Prepared,
    mut set: BTreeMap<String, String>,
    run_context: &RunContext,
) -> BTreeMap<String, String> {
    set.insert(ROOT_ID.to_owned(), host.root_id.clone());
    let program_dir = host.root.bin();
    let installed = run_context.execute.iter().filter(|dir| **dir != program_dir);
    let programs: Vec<PathBuf> = std::iter::once(program_dir.clone()).chain(search_path(installed)).collect();
    let all = order.policy.environment(
        |name| std::env::var_os(name),
        run_context,
        &programs,
        &prepared.environment,
        set,
    );
    let texts = all.into_iter().filter_map(|(name, value)| Some((name, value.into_string().ok()?)));
    let mut env = texts.collect();
    authorities::name(&mut env, &order.policy, &run_context.home);
    login_shell::keep_path(&mut env);
    env
}

/// Starts the shim of a prepared run. The shim outlives this process.
pub(crate) fn spawn(program: &ShimProgram, launch: &mut Launch) -> Result<Child, LaunchError> {
    let dir = &launch.dir;
    if let Some(spare) = launch.spare.take() {
        match spare.begin(dir.path()) {
            Ok(child) => {
                failpoint::pass("after-spawn");
                return Ok(child);
            }
            // The spare ended before it had a run, so a new shim can take over.
            Err(error) => tracing::warn!(%error, "spare_shim_lost"),
        }
    }
    let spawned = Command::new(program.path())
        .arg("__shim")
        .arg(dir.path())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let child = spawned.map_err(|e| LaunchError::system(Stage::StartShim, &e))?;
    failpoint::pass("after-spawn");
    Ok(child)
}

/// Returns the limit on a run's stored output, in bytes.
fn log_cap(order: &Order) -> u64 {
    let config = &order.config;
    let of_check = config.check.log_cap.filter(|_| order.run.purpose == Purpose::Check);
    of_check.unwrap_or(config.worker.log_cap)
}
