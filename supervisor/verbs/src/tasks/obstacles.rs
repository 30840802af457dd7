//! Obstacles that currently keep a task from running, for the replies of `create` and `assign`.

use std::collections::BTreeSet;

use kernel::{ActorKind, Finding, Label, Pool, Profile, Status, Task};

use api::{Call, blocking, person};
use base::failure::Failure;
use host::home::{home_for, home_of};
use setup::roster::{CannotRun, missing_pool, unread};

/// Returns true if a lane or a profile has a name.
pub(crate) fn is_lane(name: &str, call: &Call) -> bool {
    name.parse::<Profile>().is_ok_and(|profile| call.service.roster().knows(&profile))
}

/// Returns the obstacles of a stored task. A failed search becomes one of them, as the task exists already.
pub(crate) async fn of_task(task: &Task, call: &Call) -> Vec<String> {
    let mut warnings = if let Some(assignee) = &task.assignee {
        match obstacle(assignee, task.policy.as_deref(), Some(task), call).await {
            Ok(found) => Vec::from_iter(found),
            Err(failure) => vec![failure.message],
        }
    } else {
        let id = &task.id;
        vec![match task.status {
            Status::Triage => {
                format!("it waits in triage until it is specified: supervisor specify {id}")
            }
            Status::Todo
            | Status::Scheduled
            | Status::Ready
            | Status::Running
            | Status::Review
            | Status::Blocked
            | Status::Done
            | Status::Archived => format!(
                "nobody is assigned, so nothing runs it: supervisor assign {id} shell, or another of `supervisor assignees`"
            ),
        }]
    };
    warnings.extend(without_body(task, call));
    if task.goal.mode {
        warnings.extend(no_session(task.assignee.as_ref(), call));
    }
    warnings.extend(missing_skills(&task.skills, call));
    warnings.extend(missing_pools(&task.pools, task.assignee.as_ref(), call));
    warnings.extend(unreachable_approver(task, call));
    warnings
}

/// Warns of a task without a body if its lane runs the body as a script.
pub(crate) fn without_body(task: &Task, call: &Call) -> Option<String> {
    if task.body.as_deref().is_some_and(|body| !body.trim().is_empty()) {
        return None;
    }
    let (roster, config) = (call.service.roster(), call.service.config());
    let assignee = task.assignee.as_ref()?;
    let lane = roster.resolve(assignee, task.policy.as_deref(), &config).ok()?.lane;
    let name = roster.lane_name(assignee, &config);
    (!lane.takes_prompt()).then(|| {
        format!("the lane {name} runs the body of a task, and this one has no body: supervisor edit {} --body '…'", task.id)
    })
}

/// Warns of a profile without a skill of the board: its agents know of the board only how to end their run.
pub(crate) fn without_board_skill(assignee: &Profile, call: &Call) -> Option<String> {
    const OF_THE_BOARD: [&str; 2] = ["board-worker", "board-orchestrator"];
    let (roster, config) = (call.service.roster(), call.service.config());
    let resolved = roster.resolve(assignee, None, &config).ok()?;
    let is_profile = resolved.lane_name != *assignee;
    let knows = resolved.skills.iter().any(|skill| OF_THE_BOARD.contains(&skill.name.as_str()));
    (is_profile && resolved.lane.has_tools() && !knows).then(|| {
        format!(
            "the profile {assignee} has no skill of the board, so its workers know of it only how their run ends: \
             write `skills: [board-worker]` into its file"
        )
    })
}

/// Warns that no approver of this name can reach the board: neither the user of the socket, nor root, nor a lane.
fn unreachable_approver(task: &Task, call: &Call) -> Option<String> {
    let approver = task.approval.approver.as_deref()?;
    let user_name = person(nix::unistd::geteuid().as_raw()).name;
    let label = Label::parse(approver);
    let is_person = |name: &str| name == user_name || name == "root";
    let reachable = match label.kind {
        Some(ActorKind::Worker) => is_lane(label.name, call),
        Some(ActorKind::Person) => is_person(label.name),
        Some(ActorKind::System) | None => is_person(approver) || is_lane(approver, call),
    };
    if reachable {
        return None;
    }
    Some(format!(
        "the approver `{approver}` cannot reach this board, which belongs to {user_name}, and no lane has that name: approve the \
         task with `supervisor approve {} --override`",
        task.id
    ))
}

/// Returns the obstacle that currently keeps a task of this assignee from running, where it is known.
pub(crate) async fn obstacle(
    assignee: &Profile,
    policy: Option<&str>,
    task: Option<&Task>,
    call: &Call,
) -> Result<Option<String>, Failure> {
    let resolved = call.service.roster().resolve(assignee, policy, &call.service.config()).map(drop);
    if matches!(resolved, Err(CannotRun::Pull { .. })) {
        // Its tasks wait for an external worker to claim them, which is no obstacle.
        return Ok(None);
    }
    let obstacle = unrunnable(assignee, policy, task, call).await?;
    let no_daemon = || {
        let text = "no daemon is running, so nothing runs it yet: supervisor daemon, or supervisor dispatch";
        call.service.daemon().is_none().then(|| text.to_owned())
    };
    Ok(obstacle.or_else(no_daemon))
}

/// Warns of a goal on a lane whose turns do not continue one session.
fn no_session(assignee: Option<&Profile>, call: &Call) -> Option<String> {
    let (roster, config) = (call.service.roster(), call.service.config());
    let assignee = assignee?;
    let lane = roster.resolve(assignee, None, &config).ok()?.lane;
    let name = roster.lane_name(assignee, &config);
    lane.state().is_none().then(|| {
        format!(
            "the lane {name} cannot resume a session, so each turn begins with the whole context of the task"
        )
    })
}

/// Returns the skills that no worker gets at present.
pub(crate) fn missing_skills(skills: &[String], call: &Call) -> Vec<String> {
    let roster = call.service.roster();
    let missing = skills.iter().filter_map(|name| roster.skills().skill(name).err());
    missing.map(|why| format!("{why}; without it the worker starts all the same")).collect()
}

/// Returns the pools named by a task or its assignee that the configuration does not have.
pub(crate) fn missing_pools(named: &BTreeSet<Pool>, assignee: Option<&Profile>, call: &Call) -> Vec<String> {
    let config = call.service.config();
    let mut missing: Vec<Finding> =
        named.iter().filter_map(|pool| missing_pool(pool, "it", &config)).collect();
    // A tenant's user must not see what the operator configured for an assignee.
    if let Some(assignee) = assignee.filter(|_| call.confined().is_none()) {
        let share = call.service.roster().pool_claim(assignee, &config);
        let others = share.pools.iter().filter(|pool| !named.contains(pool));
        missing.extend(others.filter_map(|pool| missing_pool(pool, assignee.as_str(), &config)));
    }
    missing.iter().map(Finding::sentence).collect()
}

/// Returns why the tasks of an assignee, or only this one, cannot run at present.
pub(crate) async fn unrunnable(
    assignee: &Profile,
    policy: Option<&str>,
    task: Option<&Task>,
    call: &Call,
) -> Result<Option<String>, Failure> {
    let (roster, config) = (call.service.roster(), call.service.config());
    let (assignee, policy, root) = (assignee.clone(), policy.map(str::to_owned), call.service.root().clone());
    let task = task.cloned();
    // The search runs on a blocking thread: a directory of programs may be on a file system that hangs.
    blocking("failed to look for its program", move || {
        match roster.resolve(&assignee, policy.as_deref(), &config) {
            Err(CannotRun::Pull { .. }) => None,
            Err(why) if why.is_unknown() => Some(match unread(&root, &assignee) {
                Some(unread) => format!("{why}: {unread}"),
                None => why.warning(),
            }),
            Err(why) => Some(why.warning()),
            Ok(resolved) => {
                let home = task.as_ref().map_or_else(|| home_of(None), home_for);
                resolved.without_program(home.as_deref())
            }
        }
    })
    .await
}
