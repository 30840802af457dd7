//! `missions` and `mission-show`: list the missions, and show the state of one.

use std::collections::BTreeMap;

use kernel::{
    Counted, Dollars, Mission, MissionDetails, MissionState, MissionTask, ProposedProfile, TaskId, Tenant,
    brief,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::list::ink;
use api::command::Command;
use api::{Call, Verb, verb};
use base::cli_context;
use base::failure::Failure;
use base::terminal::{Cell, Ink, Screen, printable};

/// List the missions, the newest first.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(
    about = "List the missions that are not over",
    after_help = "\
Examples:
  supervisor mission list
  supervisor mission list --all --tenant acme --json"
)]
pub struct ListMissions {
    /// Filters by this tenant.
    #[arg(long, value_name = "NAME", help = "Only those of this tenant")]
    pub tenant: Option<Tenant>,
    /// True if finished and cancelled missions are listed, too.
    #[arg(long, help = "Include missions that are done or cancelled")]
    pub all: bool,
}

/// Show a mission: its progress, tasks and usage, and what waits for a person.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(
    about = "Show a mission: progress, tasks, results, spend, and what waits for a person",
    after_help = "\
Examples:
  supervisor mission show t_0123abcd
  supervisor mission show t_0123abcd --json"
)]
pub struct ShowMission {
    /// Any task of it.
    #[arg(value_name = "TASK")]
    pub mission: TaskId,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Missions {
    missions: Vec<Mission>,
    /// True if there are older ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

/// Returns true if a mission is done or cancelled.
pub(crate) fn is_over(state: MissionState) -> bool {
    match state {
        MissionState::Done | MissionState::Cancelled => true,
        MissionState::Active | MissionState::Waiting | MissionState::Paused => false,
    }
}

impl Verb for ListMissions {
    verb! { "missions": Operator, Read => Missions }

    async fn run(self, call: Call) -> Result<Missions, Failure> {
        let (limits, actor) = (call.service.config().mission_limits(), call.actor.clone());
        call.read(move |view| {
            let (mut missions, more) = view.missions(self.tenant.as_ref(), &limits, &actor)?;
            missions.retain(|mission| self.all || !is_over(mission.state));
            Ok(Missions { missions, more })
        })
        .await
    }
}

impl Command for ListMissions {
    fn show(reply: &Missions, screen: &mut Screen) {
        if reply.missions.is_empty() {
            screen.line(cli_context::repeated("No missions. Create one with: supervisor mission create"));
            return;
        }
        let rows = reply.missions.iter().map(|mission| {
            [
                Cell::from(mission.id.to_string()),
                Cell::inked(ink_of(mission.state), mission.state.to_string()),
                Cell::from(format!("{} of {}", mission.done, mission.tasks)),
                Cell::from(Dollars(mission.usage.cost_micros.used).to_string()),
                Cell::from(mission.title.clone()),
            ]
        });
        screen.list(["MISSION", "STATE", "DONE", "COST", "TITLE"], rows);
        if reply.more {
            screen.line("There are more, older ones.");
        }
    }
}

fn ink_of(state: MissionState) -> Ink {
    match state {
        MissionState::Active => Ink::Cyan,
        MissionState::Waiting | MissionState::Paused => Ink::Yellow,
        MissionState::Done => Ink::Green,
        MissionState::Cancelled => Ink::Dim,
    }
}

impl Verb for ShowMission {
    verb! { "mission-show": Operator, Read => MissionDetails }

    async fn run(self, call: Call) -> Result<MissionDetails, Failure> {
        let (limits, actor) = (call.service.config().mission_limits(), call.actor.clone());
        let roster = call.service.roster();
        let mut shown = call.read(move |view| view.mission(&self.mission, &limits, &actor)).await?;
        // A proposed profile that exists by now is left out.
        shown.profiles.retain(|profile| !roster.knows(&profile.name));
        Ok(shown)
    }
}

impl Command for ShowMission {
    fn show(reply: &MissionDetails, screen: &mut Screen) {
        let mission = &reply.mission;
        let state = screen.paint(ink_of(mission.state), mission.state.as_str());
        screen.line(format!("{}  {}  ({state})", mission.id, printable(&mission.title)));
        let counted = mission.by_status.iter().map(|(status, count)| format!("{count} {status}"));
        let counted: Vec<String> = counted.collect();
        screen.line(format!("  {} of {} done: {}", mission.done, mission.tasks, counted.join(", ")));
        let usage = &mission.usage;
        let time = |seconds| brief(std::time::Duration::from_secs(seconds));
        let (time_used, time_limit) = (time(usage.runtime_seconds.used), time(usage.runtime_seconds.limit));
        let pieces = [
            format!("{} of {}", Counted(usage.tasks.used, "task"), usage.tasks.limit),
            format!("run time {time_used} of {time_limit}"),
            format!("cost {} of {}", Dollars(usage.cost_micros.used), Dollars(usage.cost_micros.limit)),
            format!("depth {}", usage.max_depth),
        ];
        screen.flow("  ", &pieces);
        if let Some(reason) = &mission.paused {
            screen.hanging("  paused: ", &printable(reason));
        }
        show_needs(reply, screen);
        show_profiles(reply, screen);
        screen.heading("Tasks");
        MissionTree::from_tasks(&reply.tree).show(screen);
        if reply.more {
            screen.line(cli_context::repeated("There are more tasks: supervisor list lists all."));
        }
        show_results(&reply.tree, screen);
    }
}

/// Shows the questions of a mission and of its tasks that wait for a person, with the commands that answer them.
fn show_needs(reply: &MissionDetails, screen: &mut Screen) {
    let question = reply.mission.question.as_ref();
    let question = question.map(|question| (question, format!("supervisor answer {} 1", reply.mission.id)));
    let tasks = reply.tree.iter().filter_map(|task| Some((task.needs.as_ref()?, task.command.clone()?)));
    let needs: Vec<_> = question.into_iter().chain(tasks).collect();
    if needs.is_empty() {
        return;
    }
    screen.heading("Waits for a person");
    for (question, command) in needs {
        screen.hanging("  ", &printable(&question.text));
        for (at, choice) in question.choices.iter().enumerate() {
            screen.hanging(&format!("    {}: ", at + 1), &printable(choice));
        }
        screen.line(format!("    {command}"));
    }
}

/// Shows the profiles that the mission's plan proposes and that do not exist yet.
fn show_profiles(reply: &MissionDetails, screen: &mut Screen) {
    if reply.profiles.is_empty() {
        return;
    }
    screen.heading("Proposed profiles");
    for ProposedProfile { name, description, prompt } in &reply.profiles {
        screen.hanging(&format!("  {name}: "), &printable(description));
        for line in prompt.lines() {
            screen.hanging("    | ", &printable(line));
        }
        screen.line(format!("    supervisor profile create {name} --proposed-for {}", reply.mission.id));
    }
}

/// Shows the results of the tasks: summaries, else notes, and files.
fn show_results(tasks: &[MissionTask], screen: &mut Screen) {
    let shown =
        |task: &&MissionTask| task.summary.is_some() || task.notes.is_some() || !task.artifacts.is_empty();
    let shown: Vec<&MissionTask> = tasks.iter().filter(shown).collect();
    if shown.is_empty() {
        return;
    }
    screen.heading("Results");
    for task in shown {
        let text = task.summary.as_deref().or(task.notes.as_deref()).unwrap_or_default();
        screen.line_cut(&format!("  {}  ", task.id), &printable(first_line(text)));
        for file in &task.artifacts {
            screen.line_cut(
                &format!("      file {}: ", file.id),
                &printable(&format!("{} ({} bytes)", file.filename, file.size)),
            );
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Tasks of a mission, each beneath the task to which it belongs.
struct MissionTree<'a> {
    roots: Vec<&'a MissionTask>,
    below: BTreeMap<&'a TaskId, Vec<&'a MissionTask>>,
}

impl<'a> MissionTree<'a> {
    fn from_tasks(tasks: &'a [MissionTask]) -> Self {
        let mut tree = MissionTree { roots: Vec::new(), below: BTreeMap::new() };
        for task in tasks {
            match &task.under {
                Some(above) => tree.below.entry(above).or_default().push(task),
                None => tree.roots.push(task),
            }
        }
        tree
    }

    fn show(&self, screen: &mut Screen) {
        for root in &self.roots {
            line("", root, screen);
            self.show_below(&root.id, "", screen);
        }
    }

    /// Shows the tasks below a task. The mission's limit on depth bounds the recursion.
    fn show_below(&self, above: &TaskId, indent: &str, screen: &mut Screen) {
        let tasks = self.below.get(above).map(Vec::as_slice).unwrap_or_default();
        for (at, task) in tasks.iter().enumerate() {
            let (branch, further) =
                if at + 1 == tasks.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            line(&format!("{indent}{branch}"), task, screen);
            if indent.len() < 300 {
                self.show_below(&task.id, &format!("{indent}{further}"), screen);
            }
        }
    }
}

fn line(branch: &str, task: &MissionTask, screen: &mut Screen) {
    let status = screen.paint(ink(task.status), &format!("{:<9}", task.status));
    let assignee = task.assignee.as_ref().map(|name| format!(" [{name}]")).unwrap_or_default();
    let after = if task.after.is_empty() {
        String::new()
    } else {
        let ids: Vec<&str> = task.after.iter().map(TaskId::as_str).collect();
        format!(" after {}", ids.join(", "))
    };
    screen.line_cut(
        &format!("  {branch}{}  {status}  ", task.id),
        &printable(&format!("{}{assignee}{after}", task.title)),
    );
}

#[cfg(test)]
mod tests {
    use kernel::Status;

    use super::*;

    fn task(id: &str, under: Option<&str>, status: Status) -> MissionTask {
        MissionTask {
            id: id.parse().unwrap(),
            title: format!("the work of {id}, which has a long title that does not fit"),
            status,
            assignee: "shell".parse().ok(),
            under: under.map(|id| id.parse().unwrap()),
            after: Vec::new(),
            needs: None,
            command: None,
            summary: None,
            notes: None,
            artifacts: Vec::new(),
        }
    }

    #[test]
    fn a_tree_keeps_to_the_width_of_its_terminal() {
        let tasks = [
            task("t_00000001", None, Status::Running),
            task("t_00000002", Some("t_00000001"), Status::Done),
            task("t_00000003", Some("t_00000002"), Status::Ready),
            task("t_00000004", Some("t_00000001"), Status::Blocked),
        ];
        let mut screen = Screen::plain(60);
        MissionTree::from_tasks(&tasks).show(&mut screen);
        insta::assert_snapshot!(screen.into_text(), @r"
          t_00000001  running    the work of t_00000001, which has …
          ├─ t_00000002  done       the work of t_00000002, which h…
          │  └─ t_00000003  ready      the work of t_00000003, whic…
          └─ t_00000004  blocked    the work of t_00000004, which h…
        ");
    }
}
