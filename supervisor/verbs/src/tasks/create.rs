//! `create`: creates a task.

use std::path::PathBuf;
use std::str::FromStr as _;

use kernel::{
    ActorKind, Approval, ApprovalClass, ApprovalState, Check, Clock as _, CommitMode, Commits, Goal,
    InitialState, Label, Lineage, NewTask, Origin, Pool, Profile, Status, SystemClock, Task, TaskId, Tenant,
    WorkspaceSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{obstacles, tenant_defaults};
use crate::notify::default_subscriber;
use crate::views::parse;
use api::command::Command;
use api::{Call, Verb, confine_to, not_for_members, verb};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Ink, Screen, printable};
use base::time::duration::WrittenDuration;
use base::time::timestamp::{self, When};
use daemon::{Presence, check_workspace};
use service::details;

/// A time that has come.
const IS_OVER: &str = "the start time has already passed, so it delays nothing";
const NO_GOAL: &str = "the turn limit is stored but has no effect: the task has no goal (--goal)";
const NO_BRANCH: &str =
    "the branch is stored but has no effect: its workspace is not a worktree (--workspace worktree)";

kernel::task_request! { create
/// Create a task
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor create 'say hello' --assignee shell --body 'echo hello'
  supervisor create 'run the tests' --assignee shell --body 'make test' \\
      --workspace worktree:/srv/app --max-runtime 30m
  supervisor create 'fix the test' --assignee claude --check 'cargo test' \\
      --workspace worktree:/srv/app
  supervisor create 'make the suite green' --assignee claude --goal \\
      --check 'make test' --workspace worktree:/srv/app
  supervisor create 'summarise' --assignee shell --body-file sum.sh \\
      --parent t_0123abcd --parent t_4567cdef
  supervisor create 'water the plants' --assignee shell --body ./water \\
      --not-before 'tomorrow 9am'
  supervisor create 'nightly report' --assignee shell --body ./report \\
      --idempotency-key nightly-2026-11-21 --json")]
pub struct Create {
    /// The title: the work in one line
    pub title: String,
    /// The body: the prompt of an agent, or the script of the shell lane
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// Read the body from a file, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub body_file: Option<PathBuf>,
    /// The profile that does the work, or a lane such as `shell`; with any other name, the task waits for an external worker to claim it
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<Profile>,
    /// A task that must be done first (repeatable)
    #[arg(long = "parent", value_name = "TASK")]
    pub parents: Vec<TaskId>,
    /// The tenant of the task
    #[arg(long, value_name = "NAME", env = "SUPERVISOR_TENANT")]
    pub tenant: Option<Tenant>,
    /// The worker's directory
    #[arg(
        long,
        value_name = "WHERE",
        help = "The worker's directory: scratch, dir:/path, worktree:/repository, or worktree for the board's default \
                workdir, else for the repository that contains the current directory [default: scratch]"
    )]
    pub workspace: Option<String>,
    /// The branch to base a worktree on [default: HEAD]
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    @first;
    /// Add the task to the mission that contains this task
    #[arg(long, value_name = "TASK")]
    pub mission: Option<TaskId>,
    /// Priority: tasks with a higher number start first
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "0", value_parser = parse::priority)]
    pub priority: i64,
    /// Put the task in triage until it is specified
    #[arg(long)]
    pub triage: bool,
    /// Key of the request: a second create with the same key returns the existing task
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    @second;
    /// Do not start before this time: 2h, '2026-11-23 09:00', 'tomorrow 9am', an RFC 3339 time, epoch seconds
    #[arg(long, value_name = "WHEN")]
    pub not_before: Option<When>,
    /// The requester [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub created_by: Option<String>,
    /// A skill for the worker to load (repeatable)
    #[arg(long = "skill", value_name = "NAME")]
    pub skills: Vec<String>,
    /// A configured pool in which each run takes a place (repeatable)
    #[arg(long = "pool", value_name = "NAME")]
    pub pools: Vec<Pool>,
    @third;
    /// The command that verifies the work, run with `sh -c` in the workspace after the worker has ended
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,
    /// Block the task after this many failed checks in a row [default: 3]
    #[arg(long, value_name = "N", requires = "check")]
    pub max_checks: Option<u32>,
    /// Handling of the changes that a run in a worktree leaves uncommitted when it hands its work over: `auto` commits them, `require`
    /// blocks the task, `no` leaves them [default: the lane's]
    #[arg(long, value_name = "MODE")]
    pub commit: Option<CommitMode>,
    /// Name of the policy that limits the worker's access [default: the configured one]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Wait for approval once the parents are done
    #[arg(long)]
    pub require_approval: bool,
    /// The approver: the workers of a lane, or the person of that name if no lane has it; person:NAME and worker:NAME name one
    /// of the two [default: any person]
    #[arg(long, value_name = "NAME", requires = "require_approval")]
    pub approver: Option<String>,
    /// The class of action that needs approval: `spend`, `book`, `send_as_me`, `destructive`, or a class of `[approvals]`; the
    /// configuration of the class decides if the task waits, continues or is refused
    #[arg(long, value_name = "CLASS")]
    pub approval_class: Option<ApprovalClass>,
    /// Repeat turns in one session until the check passes or the worker completes the task
    #[arg(long)]
    pub goal: bool,
    /// Limit on the turns of a goal; the task then asks a person, or is blocked if it has a check [default: 20]
    #[arg(long, value_name = "N")]
    pub goal_max_turns: Option<u32>,
    @last;
    /// `blocked`: the task waits until a person unblocks it
    #[arg(long, value_name = "STATUS", value_parser = ["running", "blocked"])]
    pub initial_status: Option<String>,
    /// Recipient of notifications: a channel of the configuration, CHANNEL:CHAT or CHANNEL:CHAT:THREAD; `none` for no notifications
    #[arg(long, value_name = "CHANNEL", env = "SUPERVISOR_CHANNEL")]
    pub notify: Option<String>,
    /// Print only the task's id
    #[arg(long, short, conflicts_with = "json")]
    #[serde(skip)]
    pub quiet: bool,
}
}

/// The reply: the task, and what its creator should know.
#[derive(Debug, Serialize, Deserialize)]
pub struct CreateReply {
    #[serde(flatten)]
    pub task: Task,
    /// True if the idempotency key named an existing task.
    pub existing: bool,
    /// Obstacles that currently keep the task from running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Create {
    fn place(&self) -> Result<WorkspaceSpec, Failure> {
        match &self.workspace {
            None => Ok(WorkspaceSpec::Scratch),
            Some(text) => WorkspaceSpec::from_str(text)
                .map_err(|e| Failure { hint: e.hint(), ..Failure::usage(e.to_string()) }),
        }
    }

    fn into_new_task(self) -> Result<NewTask, Failure> {
        let workspace = self.place()?;
        parse::require_skill_names(&self.skills)?;
        let initial = match (self.triage, self.initial_status.as_deref()) {
            (true, Some("blocked")) => {
                return Err(Failure::usage("a task is created in triage or blocked, not both")
                    .hint("leave out triage, or the initial status"));
            }
            (true, _) => InitialState::Triage,
            (false, Some("blocked")) => InitialState::Blocked,
            (false, _) => InitialState::Normal,
        };
        let new = kernel::filled_task! { create self => NewTask };
        Ok(NewTask {
            title: self.title,
            body: self.body,
            assignee: self.assignee.filter(|profile| !parse::is_nobody(profile.as_str())),
            parents: self.parents,
            tenant: self.tenant,
            priority: self.priority,
            workspace: workspace.into(),
            branch: self.branch,
            initial_state: initial,
            idempotency_key: self.idempotency_key,
            skills: self.skills,
            pools: self.pools.into_iter().collect(),
            not_before: self.not_before.map(When::timestamp),
            created_by: self.created_by,
            policy: self.policy,
            check: Check { command: self.check, max_checks: self.max_checks },
            commits: Commits { mode: self.commit },
            approval: Approval {
                state: self.require_approval.then_some(ApprovalState::Required),
                class: self.approval_class,
                approver: self.approver,
            },
            lineage: Lineage { mission: self.mission.map(|id| id.to_string()), ..Lineage::default() },
            goal: Goal { mode: self.goal, max_turns: self.goal_max_turns },
            ..new
        })
    }
}

impl Verb for Create {
    verb! {
        "create": Worker, Write,
        members,
        tool(Worker, "It runs in parallel with your task; link the two if one has to wait for the other.")
        => CreateReply
    }

    fn policy(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)?;
        self.created_by = None;
        if self.notify.as_deref().is_some_and(|channel| channel != "none") {
            return Err(not_for_members("a channel of messages"));
        }
        Ok(())
    }

    async fn run(self, mut call: Call) -> Result<CreateReply, Failure> {
        let mission = self.mission.clone();
        let (new, warnings) = self.prepare(&mut call).await?;
        let created = call
            .write(move |board, actor| {
                let created = board.create(new, actor)?;
                Ok(CreateReply { task: created.task, existing: created.existing, warnings })
            })
            .await;
        let created = match created {
            Ok(created) => created,
            Err(refusal) if refusal.code == Code::Exhausted => {
                // The refusal has undone its write: the question to a person is one of its own.
                let ask = move |board: &mut kernel::Board<'_>, actor: &kernel::Actor| {
                    if let Some(mission) = &mission {
                        return board.ask_for_more_tasks_in(mission, actor);
                    }
                    board.ask_for_more_tasks(actor)?;
                    board.ask_for_more_depth(actor)
                };
                call.write_further(ask).await?;
                return Err(refusal.after_a_change());
            }
            Err(refusal) => return Err(refusal),
        };
        Ok(created.warned(&call).await)
    }
}

impl CreateReply {
    /// Adds the obstacles that currently keep the task from running.
    pub(crate) async fn warned(self, call: &Call) -> Self {
        let mut warnings = obstacles::of_task(&self.task, call).await;
        warnings.extend(self.warnings);
        CreateReply { warnings, ..self }
    }
}

impl Create {
    /// Checks the request against the host. Returns the task, and warnings about parts of the request that have no
    /// effect yet.
    pub(crate) async fn prepare(mut self, call: &mut Call) -> Result<(NewTask, Vec<String>), Failure> {
        if call.actor.kind == ActorKind::Worker {
            self.created_by = None;
        } else if let Some(workspace) = &self.workspace {
            let place = details::workspace(call.service.root(), call.board()?.name(), workspace);
            self.workspace = place.or(self.workspace);
        }
        let place = self.place()?;
        if call.actor.kind != ActorKind::Worker {
            // The task of a plugin that is called for a tenant is one of this tenant, whether it says so or not.
            self.tenant = self.tenant.or_else(|| call.actor.tenant.clone());
            tenant_defaults::fill_in(call, self.tenant.as_ref(), &mut self.assignee, &mut self.policy)?;
            tenant_defaults::require_workspace(call, self.tenant.as_ref(), &place)?;
            call.actor.uid = tenant_defaults::acting_uid(call);
        }
        // A worker names no place of its own: the kernel lets it have scratch, or the workspace of its own task.
        let presence = match call.actor.kind {
            ActorKind::Worker => Presence::There,
            ActorKind::Person | ActorKind::System => {
                check_workspace(&call.service, &place, call.actor.uid).await?
            }
        };
        if let Some(policy) = &self.policy {
            call.service.roster().policies().find(policy)?;
        }
        let mut warnings = Vec::new();
        if self.not_before.is_some_and(|when| when.timestamp() <= SystemClock.now()) {
            warnings.push(IS_OVER.to_owned());
        }
        if !self.goal && self.goal_max_turns.is_some() {
            warnings.push(NO_GOAL.to_owned());
        }
        if presence == Presence::ToBeMade {
            let text = place.to_string();
            let path = text.strip_prefix("dir:").unwrap_or(&text);
            warnings
                .push(format!("{path} does not exist yet: it is created when the task starts or is claimed"));
        }
        if self.branch.is_some() && !matches!(place, WorkspaceSpec::Worktree { .. }) {
            warnings.push(NO_BRANCH.to_owned());
        }
        self.approver = self.approver.map(|approver| typed_approver(approver, call));
        let channel = default_subscriber::channel(call, self.notify.as_deref())?;
        let new = self.into_new_task()?;
        Ok((NewTask { origin: Origin { channel, ..new.origin }, ..new }, warnings))
    }
}

impl Command for Create {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        if let Some(path) = self.body_file.take() {
            self.body = Some(parse::read_text(&path)?);
        }
        if let Some(text) = &self.workspace {
            self.workspace = Some(localized(here, text)?);
        }
        Ok(())
    }

    fn show(reply: &CreateReply, screen: &mut Screen) {
        let word = if reply.existing { "Already exists:" } else { "Created" };
        let id = screen.paint(Ink::Bold, reply.task.id.as_str());
        let starts = reply.task.not_before.filter(|_| reply.task.status == Status::Scheduled);
        let starts = starts.map(|at| format!(", starts at {}", timestamp::local(at))).unwrap_or_default();
        screen.line(format!("{word} {id}  {} ({}{starts})", printable(&reply.task.title), reply.task.status));
    }

    fn warnings(reply: &CreateReply) -> &[String] {
        &reply.warnings
    }
}

/// Resolves a workspace for the caller: a workspace of the board takes precedence over a relative path.
pub(crate) fn localized(here: &Invocation, text: &str) -> Result<String, Failure> {
    match details::workspace(here.root(), here.board(), text) {
        Some(place) => Ok(place),
        None => parse::local_workspace(text),
    }
}

/// Checks a workspace that a person names for an existing task, with this person's rights.
pub(crate) async fn place(call: &Call, workspace: &str) -> Result<WorkspaceSpec, Failure> {
    let text = details::workspace(call.service.root(), call.board()?.name(), workspace);
    let create =
        Create { workspace: Some(text.unwrap_or_else(|| workspace.to_owned())), ..Create::default() };
    let place = create.place()?;
    check_workspace(&call.service, &place, call.actor.uid).await?;
    Ok(place)
}

/// Checks a workspace for new tasks of a tenant as `create` does. Sets the caller's uid to the uid of the tenant's
/// workers.
pub async fn place_of(
    call: &mut Call,
    tenant: Option<&Tenant>,
    workspace: &str,
) -> Result<WorkspaceSpec, Failure> {
    let create = Create { workspace: Some(workspace.to_owned()), ..Create::default() };
    let place = create.place()?;
    tenant_defaults::require_workspace(call, tenant, &place)?;
    call.actor.uid = tenant_defaults::acting_uid(call);
    check_workspace(&call.service, &place, call.actor.uid).await?;
    Ok(place)
}

/// Adds the kind to an approver: a bare name of a lane means workers of the lane, any other name a person.
fn typed_approver(approver: String, call: &Call) -> String {
    if !obstacles::is_lane(&approver, call) {
        return approver;
    }
    Label { kind: Some(ActorKind::Worker), name: &approver }.to_string()
}
