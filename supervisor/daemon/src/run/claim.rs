//! Claims a task for the daemon: one transaction opens its run and reads all data that the start needs.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Candidate, ContextLimits, Purpose, Run, Task};
use rand::Rng as _;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::files;
use super::order::Order;
use super::provision::Provision;
use super::session::{self, Next, Resume};
use api::hash_token;
use base::exit::Code;
use base::failure::Failure;
use service::BoardHandle;
use setup::lanes::Skill;
use setup::roster::{PoolClaim, Resolved, Roster};

/// Limit on the number of skills of a run. Each skill has up to 24 KiB.
const MOST_SKILLS: usize = 32;

/// Result of the claim's transaction.
struct ClaimedTask {
    run: Run,
    task: Task,
    context: String,
    resume: Option<Resume>,
    files: Vec<kernel::Attachment>,
    own_uid: Option<u32>,
    deadline: Duration,
}

impl ClaimedTask {
    /// Returns true if the run begins from a copy of another session.
    fn is_fork(&self) -> bool {
        self.resume.as_ref().is_some_and(|resume| matches!(resume.next, Next::Fork(_)))
    }
}

/// Returns a new token of a run.
fn new_token() -> String {
    let mut secret = [0_u8; 32];
    rand::rng().fill_bytes(&mut secret);
    hex::encode(secret)
}

/// Returns the failure with the code that pauses all starts, because no task of this host can start without a range of
/// uids.
fn pausing(failure: Failure) -> Failure {
    Failure { code: Code::TryAgain, ..failure }
}

/// Claims a task, and returns the order to start its run. If the claim fails, the board and the host are unchanged.
pub(super) async fn claim(
    context: &Context,
    board: &BoardHandle,
    candidate: Candidate,
    resources: PoolClaim,
    roster: &Roster,
    cancel: CancellationToken,
) -> Result<Order, Failure> {
    let config = context.service.config();
    let resolved = roster.resolve(&candidate.assignee, candidate.policy.as_deref(), &config)?;
    // Both policies are made now, because it is known only in the transaction below if the run is a check.
    let of_worker = resolved.policy_of_run(&context.host.root.secret_stores());
    let of_check = resolved.policy.clone();
    let Resolved {
        profile,
        lane,
        lane_name,
        home,
        model,
        role,
        role_prompt,
        servers,
        hosts: _,
        skills,
        policy_name,
        account,
        limits,
        policy: _,
    } = resolved;
    let lane = lane.in_role(role, model, &servers).under(&of_worker);
    let of_profile: Vec<Skill> = skills.into_iter().cloned().collect();
    let token = new_token();
    let nonce = uuid::Uuid::new_v4().to_string();
    let start = kernel::Start {
        profile: Some(profile),
        claim_lock: format!("{}:{}:{nonce}", context.host.hostname, std::process::id()),
        token_hash: hash_token(&token),
        nonce,
        policy: Some(policy_name),
        account: account.map(str::to_owned),
        log_path: None,
        max_runtime: None,
        boot_id: context.host.boot_id.clone(),
        deadline_boottime: None,
        takes_messages: lane.takes_messages(),
    };
    // The search for a range of uids comes before the transaction, because it may block.
    let provision = Provision::for_board(&context.service, board).await.map_err(pausing)?;
    let id = candidate.task.clone();
    let (resumes, is_elsewhere) = (lane.state().is_some(), lane.works_elsewhere());
    let (logs, board_name) = (context.host.root.clone(), board.name().clone());
    let workplaces = context.service.workplaces();
    let current = Arc::clone(&config);
    let claimed = board
        .write(move |board| {
            let task = board.expect_task(&id)?;
            let limit = limits.time_limit(&task, &current);
            // The deadline is on CLOCK_BOOTTIME, which goes on during a suspend and cannot be set (clock_gettime(2)).
            let deadline = Duration::from_micros(shim::rundir::boottime_us()) + limit.limit;
            let start =
                kernel::Start { max_runtime: Some(limit), deadline_boottime: Some(deadline), ..start };
            let run = board.start_run(&id, start)?;
            let given = provision.give(board, &id, &candidate.workspace)?;
            board.record_log_path(run.id, &logs.log(&board_name, &id, run.id).display().to_string())?;
            // A workspace whose path is already known is recorded in this transaction, because a second commit would
            // take as long as this one.
            if let Some(place) = &given.place {
                board.record_workspace(run.id, place)?;
            }
            let run = kernel::Run { workspace_path: given.place.map(|place| place.path), ..run };
            let task = board.expect_task(&id)?;
            let files_dir = logs.run_files(&board_name, run.id);
            let place =
                |file: &kernel::Attachment| Some(files::path_of(&files_dir, file).display().to_string());
            let limits = ContextLimits::default();
            let context = if is_elsewhere {
                board.context_elsewhere(&id, limits)?.text
            } else {
                board.context(&id, limits, &place)?.text
            };
            let resume = if resumes { resume(board, &run, &place)? } else { None };
            let files = board.files_of_run(&id)?;
            // All input of the start is read in this transaction, because a committed claim must not fail afterwards.
            Ok(ClaimedTask { run, task, context, resume, files, own_uid: given.own_uid, deadline })
        })
        .await?;
    let lane = if claimed.is_fork() { lane.forking() } else { lane };
    let skills = pinned(&claimed.task, of_profile, roster);
    // A check calls no model service, so the lane's additions to the policy do not apply.
    let policy = if claimed.run.purpose == Purpose::Check { of_check } else { of_worker };
    Ok(Order {
        board: board.name().clone(),
        board_id: board.id(),
        task: claimed.task,
        run: claimed.run,
        token,
        context: claimed.context,
        resume: claimed.resume,
        files: claimed.files,
        lane,
        lane_name,
        resources,
        home,
        role_prompt: role_prompt.map(str::to_owned),
        skills,
        policy,
        own_uid: claimed.own_uid,
        deadline: claimed.deadline,
        limits,
        config,
        workplaces,
        cancel,
    })
}

/// Returns the session that a run resumes or forks, if there is one, with the task's changes since.
fn resume(
    board: &kernel::Board<'_>,
    run: &Run,
    place: &dyn Fn(&kernel::Attachment) -> Option<String>,
) -> Result<Option<Resume>, kernel::Error> {
    let before = board.session_before(run)?.filter(|(_, session)| session::is_word(session));
    if let Some((last, session)) = before {
        let news = board.news(&run.task_id, last, ContextLimits::default(), place)?;
        return Ok(Some(Resume { session, next: Next::Resume(news.text) }));
    }
    let from = board.forked_by(run)?.filter(|from| session::is_word(&from.session));
    Ok(from.map(|from| Resume { session: from.session.clone(), next: Next::Fork(Box::new(from)) }))
}

/// Returns the skills of a run: its profile's skills and its task's, in this order. A missing skill of the task is left
/// out, because a committed claim must not fail; the creator of the task was warned. Skills of the task beyond
/// [`MOST_SKILLS`] are left out as well.
fn pinned(task: &Task, of_profile: Vec<Skill>, roster: &Roster) -> Vec<Skill> {
    let mut skills = of_profile;
    for name in &task.skills {
        if skills.len() >= MOST_SKILLS || skills.iter().any(|skill| skill.name == *name) {
            continue;
        }
        match roster.skills().skill(name) {
            Ok(skill) => skills.push(skill.clone()),
            Err(why) => tracing::warn!(task = %task.id, why, "skill_missing"),
        }
    }
    skills
}
