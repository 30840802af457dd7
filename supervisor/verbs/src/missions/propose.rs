//! `specify`, `decompose`, `mission plan` and `mission review`: ask a profile to propose the text of a task, a division
//! into tasks, or the continuation of a mission. The profile's answer is the result of a task of its own.

use kernel::{
    ApprovalState, Board, EventFilter, EventKind, Filter, Profile, ProposalKind, Status, Task, TaskId, Tenant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, confine_to, verb};
use base::exit::Code;
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Ink, Screen, printable};
use setup::automation::proposals::Maker;
use setup::config::triage::TriageConfig;

use crate::tasks::obstacles;
use crate::views::parse;

/// Limit on the tasks of one request.
const AT_ONCE: u32 = 100;
/// Limit on the pages of tasks in triage that one request reads, each of [`AT_ONCE`] tasks.
const PAGES: usize = 20;

/// Ask a profile to specify an idea in triage
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A task of the profile `specifier` ([triage] in supervisor.toml) returns title, text and
assignee. When it is done, the idea takes them over and leaves triage.

Examples:
  supervisor specify t_0123abcd
  supervisor specify --all --tenant acme")]
pub struct Specify {
    /// The task in triage
    #[arg(value_name = "TASK", required_unless_present = "all")]
    pub task_id: Option<TaskId>,
    /// All tasks in triage except denied ones, 100 at a time
    #[arg(long, conflicts_with = "task_id")]
    pub all: bool,
    /// With --all: only proposals of this tenant
    #[arg(long, value_name = "NAME", requires = "all")]
    pub tenant: Option<Tenant>,
    /// The requester [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub author: Option<String>,
}

/// Ask a profile to split an idea in triage into tasks
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A task of the profile `decomposer` ([triage] in supervisor.toml) returns the tasks. When it
is done, they are created all at once; the idea leaves triage and waits for them.

Examples:
  supervisor decompose t_0123abcd
  supervisor decompose --all --tenant acme")]
pub struct Decompose {
    /// The task in triage
    #[arg(value_name = "TASK", required_unless_present = "all")]
    pub task_id: Option<TaskId>,
    /// All tasks in triage except denied ones, 100 at a time
    #[arg(long, conflicts_with = "task_id")]
    pub all: bool,
    /// With --all: only proposals of this tenant
    #[arg(long, value_name = "NAME", requires = "all")]
    pub tenant: Option<Tenant>,
    /// The requester [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub author: Option<String>,
}

/// Ask a profile to plan the tasks of a mission
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
A task of the profile `planner` ([triage] in supervisor.toml) returns the tasks. The first
task of the mission waits for the plan, and then for all that is planned.

Examples:
  supervisor mission plan t_0123abcd")]
pub struct PlanMission {
    /// Any task of the mission
    #[arg(value_name = "TASK")]
    pub task_id: TaskId,
    /// The requester [default: the caller]
    #[arg(long, value_name = "NAME")]
    #[serde(default)]
    pub author: Option<String>,
}

/// Ask a profile to review the progress of a mission
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
A task of the profile `overseer` ([triage] in supervisor.toml) reads the facts and answers:
continue, another plan, or stop. `review_moves` and `review_idle` there request reviews automatically.

Examples:
  supervisor mission review t_0123abcd")]
pub struct ReviewMission {
    /// Any task of the mission
    #[arg(value_name = "TASK")]
    pub task_id: TaskId,
}

/// Result of the request for one task.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProposalRequest {
    pub task_id: TaskId,
    pub ok: bool,
    /// The task that makes the proposal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<TaskId>,
    /// True if an equal request was open already.
    pub existing: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

/// The reply.
#[derive(Debug, Serialize, Deserialize)]
pub struct Proposals {
    /// The proposing profile.
    pub assignee: Profile,
    pub results: Vec<ProposalRequest>,
    /// Warnings about obstacles that currently keep the profile from starting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Tasks for which a request asks for proposals.
enum ProposalTarget {
    One(TaskId),
    AllInTriage(Option<Tenant>),
}

impl ProposalTarget {
    fn from_arguments(task: Option<TaskId>, all: bool, tenant: Option<Tenant>) -> Result<Self, Failure> {
        match (task, all) {
            (Some(task), false) => Ok(ProposalTarget::One(task)),
            (None, true) => Ok(ProposalTarget::AllInTriage(tenant)),
            (Some(_), true) => {
                Err(Failure::usage("both a task and `all` are given").hint("leave out one of them"))
            }
            (None, false) => Err(Failure::usage("no task is named").hint("name one, or say `--all`")),
        }
    }
}

/// Asks the profile for this kind of proposal about the wanted tasks. An error about a single named task fails the
/// request; an error about one of all tasks in triage becomes a part of the reply.
async fn ask(
    call: Call,
    kind: ProposalKind,
    wanted: ProposalTarget,
    author: Option<String>,
) -> Result<Proposals, Failure> {
    let (roster, config) = (call.service.roster(), call.service.config());
    let maker = Maker::find(kind, &roster, &config).ok_or_else(|| {
        let key = TriageConfig::key(kind);
        Failure::usage(format!("there is no profile to {kind} with"))
            .hint(format!("name one as `{key}` in [triage] of supervisor.toml"))
    })?;
    let assignee = maker.assignee.clone();
    let warnings = obstacles::unrunnable(&assignee, None, None, &call).await?.into_iter().collect();
    let results = call
        .write(move |board, actor| {
            let (tasks, is_single) = match wanted {
                ProposalTarget::One(task) => (vec![task], true),
                ProposalTarget::AllInTriage(tenant) => (in_triage(board, tenant)?, false),
            };
            let mut results = Vec::with_capacity(tasks.len());
            for task_id in tasks {
                let tenant = board.task_for(&task_id, actor)?.tenant;
                let new = maker.asked(task_id.clone(), tenant.as_ref(), author.clone(), &config);
                let asked = ProposalRequest {
                    task_id,
                    ok: true,
                    proposal: None,
                    existing: false,
                    reason: None,
                    hint: None,
                    code: None,
                };
                let refused = |failure: Failure, asked: ProposalRequest| {
                    let reason = Some(failure.message);
                    ProposalRequest {
                        ok: false,
                        reason,
                        hint: failure.hint,
                        code: Some(failure.code),
                        ..asked
                    }
                };
                // The check is made for each task, because the tasks in triage may belong to several tenants.
                if let Err(disabled) = config.tenants.require(tenant.as_ref()) {
                    results.push(refused(disabled, asked));
                    continue;
                }
                // The savepoint undoes a refused request alone, so the others are still made.
                results.push(match board.attempt(|board| board.propose(new, actor)) {
                    Ok(made) => {
                        ProposalRequest { proposal: Some(made.task.id), existing: made.existing, ..asked }
                    }
                    Err(error) if is_single => return Err(error),
                    Err(error) => refused(Failure::from(error), asked),
                });
            }
            Ok(results)
        })
        .await?;
    Ok(Proposals { assignee, results, warnings })
}

fn in_triage(board: &Board<'_>, tenant: Option<Tenant>) -> Result<Vec<TaskId>, kernel::Error> {
    let mut filter = Filter { statuses: vec![Status::Triage], tenant, limit: AT_ONCE, ..Filter::default() };
    let mut ideas = Vec::new();
    // Denied tasks stay in triage. They are skipped, and further pages are read, so that ideas after many denied
    // tasks are found as well.
    for _ in 0..PAGES {
        let page = board.tasks(&filter)?;
        for task in page.tasks {
            if ideas.len() < AT_ONCE as usize && !is_denied(board, &task)? {
                ideas.push(task.id);
            }
        }
        filter.cursor = page.next;
        if filter.cursor.is_none() || ideas.len() == AT_ONCE as usize {
            break;
        }
    }
    Ok(ideas)
}

/// Returns true if a person denied the task. It is then in triage so that a person changes it, and not as an idea for a
/// proposal.
fn is_denied(board: &Board<'_>, task: &Task) -> Result<bool, kernel::Error> {
    if task.approval.state != Some(ApprovalState::Required) {
        return Ok(false);
    }
    let kinds = vec![EventKind::ApprovalDenied.to_string()];
    let denied = EventFilter { task: Some(task.id.clone()), kinds, limit: 1, ..EventFilter::default() };
    Ok(!board.events(&denied)?.is_empty())
}

impl Proposals {
    fn show(&self, screen: &mut Screen) {
        if self.results.is_empty() {
            screen.line("No task is in triage");
        }
        for ProposalRequest { task_id, proposal, existing, reason, hint, .. } in &self.results {
            if let Some(proposal) = proposal {
                let before = if *existing { " before" } else { "" };
                screen.line(format!("Asked {} about {task_id}{before}: {proposal}", self.assignee));
            }
            if let Some(reason) = reason {
                let label = screen.paint(Ink::Red, "failed:");
                screen.line(format!("{label} {task_id}: {}", printable(reason)));
            }
            if let Some(hint) = hint {
                screen.line(format!("        hint: {}", printable(hint)));
            }
        }
    }

    fn verdict(&self) -> u8 {
        self.results.iter().find_map(|one| one.code).map_or(0, Code::exit)
    }
}

/// Implements [`Verb`] and [`Command`] for a verb about ideas in triage.
macro_rules! over_triage {
    ($verb:ident, $kind:expr, $($header:tt)+) => {
        impl Verb for $verb {
            $($header)+

            fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
                confine_to(tenant, &mut self.tenant)?;
                self.author = None;
                Ok(())
            }

            async fn run(self, call: Call) -> Result<Proposals, Failure> {
                let wanted = ProposalTarget::from_arguments(self.task_id, self.all, self.tenant)?;
                ask(call, $kind, wanted, self.author).await
            }
        }

        impl Command for $verb {
            fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
                if self.all { Ok(()) } else { parse::default_to_own_task(&mut self.task_id, here) }
            }

            fn show(reply: &Proposals, screen: &mut Screen) {
                reply.show(screen);
            }

            fn warnings(reply: &Proposals) -> &[String] {
                &reply.warnings
            }

            fn verdict(reply: &Proposals) -> u8 {
                reply.verdict()
            }
        }
    };
}

over_triage!(Specify, ProposalKind::Specify, verb! { "specify": Operator, Write, members => Proposals });
over_triage!(
    Decompose,
    ProposalKind::Decompose,
    verb! { "decompose": Operator, Write, members => Proposals }
);

impl Verb for PlanMission {
    verb! { "mission-plan": Operator, Write => Proposals }

    async fn run(self, call: Call) -> Result<Proposals, Failure> {
        ask(call, ProposalKind::Plan, ProposalTarget::One(self.task_id), self.author).await
    }
}

impl Command for PlanMission {
    fn show(reply: &Proposals, screen: &mut Screen) {
        reply.show(screen);
    }

    fn warnings(reply: &Proposals) -> &[String] {
        &reply.warnings
    }
}

impl Verb for ReviewMission {
    verb! { "mission-review": Operator, Write => Proposals }

    async fn run(self, call: Call) -> Result<Proposals, Failure> {
        ask(call, ProposalKind::Progress, ProposalTarget::One(self.task_id), None).await
    }
}

impl Command for ReviewMission {
    fn show(reply: &Proposals, screen: &mut Screen) {
        reply.show(screen);
    }

    fn warnings(reply: &Proposals) -> &[String] {
        &reply.warnings
    }
}
