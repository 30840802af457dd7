//! Composes the prompt of an agent: its role, the context of its task, and the rules for ending the run. All lanes have
//! the same text.

use std::path::Path;

use kernel::{CommitMode, Purpose};

use super::servers::SERVER;
use super::tools::Form;

/// Facts about a run for the prompt, in addition to the task.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Role text of the profile.
    pub role: Option<&'a str>,
    /// Text about the skills.
    pub skills: &'a str,
    pub purpose: Purpose,
    pub workspace: &'a Path,
    /// Notes about the workspace, a sentence each.
    pub notes: &'a [String],
    /// Deadline of the run, in epoch seconds; none without a time limit.
    pub deadline: Option<i64>,
    /// Branch of a run in a worktree.
    pub branch: Option<&'a Branch>,
}

/// Branch of a run in a worktree.
#[derive(Clone, Debug)]
pub struct Branch {
    pub name: String,
    /// Handling of the changes that the run leaves uncommitted.
    pub commit: CommitMode,
}

impl Branch {
    /// Returns the text about commits.
    fn text(&self) -> String {
        let rest = match self.commit {
            CommitMode::Auto => {
                "The supervisor commits the files that you leave uncommitted, in a commit of its own."
            }
            CommitMode::Require => "Files that you leave uncommitted block the task.",
            CommitMode::No => "Files that you leave uncommitted are not part of it.",
        };
        format!(
            "You are in a git worktree on the branch `{}`. What is committed there is what you hand over: commit your work before you \
             complete it or request a review. {rest}\n",
            self.name
        )
    }
}

const WORK: &str = "\
The command `supervisor` speaks for this task. Before you stop, run exactly one of these. A run that stops without one has failed, \
whatever it did.

- `supervisor complete --summary 'what was done'`: the work is done and you have checked it. Add `--artifact FILE` for each file to \
hand over.
- `supervisor request-review --summary 'what to look at'`: it is done, and somebody has to look at it first.
- `supervisor block --question 'what you have to know'`: a person has to decide. Add `--choice ANSWER` for each answer to choose from.
- `supervisor block 'what is missing' --kind capability`: you need something that you cannot do or have.
";

const REVIEW: &str = "\
The command `supervisor` speaks for this task. Before you stop, run exactly one of these. A run that stops without one has failed, \
whatever it found.

- `supervisor approve 'what you looked at'`: the work is good.
- `supervisor request-changes 'what has to change'`: it is not.
";

/// Tools that end a run, by its purpose.
const WORK_TOOLS: [&str; 3] = ["kanban_complete", "kanban_request_review", "kanban_block"];
const REVIEW_TOOLS: [&str; 2] = ["kanban_approve", "kanban_request_changes"];

/// Returns the prompt without the rules for ending the run, for a program that has its own: role, skills, context, and the
/// text about commits.
pub(super) fn unending(context: &str, terms: &Terms<'_>) -> String {
    match commits(terms) {
        Some(commits) => format!("{}{}\n{commits}", bare(context, terms), gap(context)),
        None => bare(context, terms),
    }
}

fn bare(context: &str, terms: &Terms<'_>) -> String {
    let role = terms.role.map(|role| format!("# Your role\n\n{role}\n\n")).unwrap_or_default();
    format!("{role}{}{context}", terms.skills)
}

fn gap(context: &str) -> &'static str {
    if context.ends_with('\n') { "" } else { "\n" }
}

/// Returns the text about commits, for a run that hands over a branch.
fn commits(terms: &Terms<'_>) -> Option<String> {
    terms.branch.filter(|_| terms.purpose == Purpose::Work).map(Branch::text)
}

/// Composes the prompt of a run. `tools` is the form in which the program gets the board's tools; none if it gets none.
pub(super) fn prompt(context: &str, terms: &Terms<'_>, tools: Option<Form>) -> String {
    let (end, ends) = endings(terms.purpose);
    let tools = tools.map(|form| about_tools(form, ends)).unwrap_or_default();
    let until = match terms.deadline.and_then(|at| jiff::Timestamp::from_second(at).ok()) {
        Some(at) => format!(" The run is ended at {}.", at.strftime("%Y-%m-%d %H:%M UTC")),
        None => String::new(),
    };
    let gap = gap(context);
    let commits = commits(terms).map(|text| format!("{text}\n")).unwrap_or_default();
    format!(
        "{before}{gap}
# How this run ends

{end}{tools}
{commits}Nobody is there to answer while you work. What you print is kept as a log. `supervisor comment 'text'` leaves a note on the task, \
`supervisor context` prints your task again, `supervisor --help` has the rest.

Work in {workspace}, the current directory. You may write there and in `$TMPDIR`; most else is read-only or out of reach, and so may \
be the network. Do not work around a refusal: block the task and name what was refused.{until}
{notes}",
        before = bare(context, terms),
        workspace = terms.workspace.display(),
        notes = terms.notes.iter().map(|note| ["\n", note, "\n"].concat()).collect::<String>(),
    )
}

/// Returns the reminder for an agent that ended its turn without a verdict.
pub fn reminder(purpose: Purpose, tools: Form) -> String {
    let (end, ends) = endings(purpose);
    format!("This run has no verdict yet.\n\n{end}{}", about_tools(tools, ends))
}

/// Returns the text about the commands that end a run, and the names of the tools that do the same, by the purpose of the
/// run. A check has no agent, so its prompt is never read.
fn endings(purpose: Purpose) -> (&'static str, &'static [&'static str]) {
    match purpose {
        Purpose::Work | Purpose::Check => (WORK, &WORK_TOOLS),
        Purpose::Review => (REVIEW, &REVIEW_TOOLS),
    }
}

/// Returns the text that names the tools equivalent to the commands.
fn about_tools(form: Form, ends: &[&str]) -> String {
    let names: Vec<String> = ends.iter().map(|tool| format!("`{}`", form.name_of(tool))).collect();
    let (server, show, comment) = (SERVER, form.name_of("kanban_show"), form.name_of("kanban_comment"));
    format!(
        "
The tools of the MCP server `{server}` do the same without a shell: {}. Call one of them in place of its command. `{show}` and \
`{comment}` are there too.
",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(purpose: Purpose) -> Terms<'static> {
        Terms {
            role: None,
            skills: "",
            purpose,
            workspace: Path::new("/w/t_1"),
            notes: &[],
            deadline: None,
            branch: None,
        }
    }

    #[test]
    fn a_worker_reads_its_context_and_how_its_run_ends() {
        let terms = Terms { deadline: Some(1_800_000_000), ..terms(Purpose::Work) };
        insta::assert_snapshot!(prompt("# Fix the parser", &terms, None), @r"
        # Fix the parser

        # How this run ends

        The command `supervisor` speaks for this task. Before you stop, run exactly one of these. A run that stops without one has failed, whatever it did.

        - `supervisor complete --summary 'what was done'`: the work is done and you have checked it. Add `--artifact FILE` for each file to hand over.
        - `supervisor request-review --summary 'what to look at'`: it is done, and somebody has to look at it first.
        - `supervisor block --question 'what you have to know'`: a person has to decide. Add `--choice ANSWER` for each answer to choose from.
        - `supervisor block 'what is missing' --kind capability`: you need something that you cannot do or have.

        Nobody is there to answer while you work. What you print is kept as a log. `supervisor comment 'text'` leaves a note on the task, `supervisor context` prints your task again, `supervisor --help` has the rest.

        Work in /w/t_1, the current directory. You may write there and in `$TMPDIR`; most else is read-only or out of reach, and so may be the network. Do not work around a refusal: block the task and name what was refused. The run is ended at 2027-01-15 08:00 UTC.
        ");
    }

    #[test]
    fn a_worker_reads_what_its_workspace_lacks() {
        let notes = ["The file `a` is a pointer.".to_owned(), "More.".to_owned()];
        let text = prompt("# Fix the parser", &Terms { notes: &notes, ..terms(Purpose::Work) }, None);
        assert!(text.ends_with("refused.\n\nThe file `a` is a pointer.\n\nMore.\n"), "{text}");
    }

    #[test]
    fn the_role_of_a_profile_is_read_first() {
        let role = Some("You are Ann.\n\nYou write.");
        let terms = Terms { role, ..terms(Purpose::Work) };
        let text = prompt("# Fix the parser", &terms, None);
        assert!(
            text.starts_with("# Your role\n\nYou are Ann.\n\nYou write.\n\n# Fix the parser\n"),
            "{text}"
        );
    }

    #[test]
    fn a_reviewer_reads_how_a_review_ends() {
        let terms = terms(Purpose::Review);
        insta::assert_snapshot!(prompt("# Look at it\n", &terms, None), @r"
        # Look at it

        # How this run ends

        The command `supervisor` speaks for this task. Before you stop, run exactly one of these. A run that stops without one has failed, whatever it found.

        - `supervisor approve 'what you looked at'`: the work is good.
        - `supervisor request-changes 'what has to change'`: it is not.

        Nobody is there to answer while you work. What you print is kept as a log. `supervisor comment 'text'` leaves a note on the task, `supervisor context` prints your task again, `supervisor --help` has the rest.

        Work in /w/t_1, the current directory. You may write there and in `$TMPDIR`; most else is read-only or out of reach, and so may be the network. Do not work around a refusal: block the task and name what was refused.
        ");
    }

    #[test]
    fn a_worker_in_a_worktree_reads_that_it_has_to_commit_and_a_reviewer_does_not() {
        let lines_of = |purpose, commit| {
            let branch = Branch { name: "task/t_1".to_owned(), commit };
            let terms = Terms { branch: Some(&branch), ..terms(purpose) };
            [prompt("# It", &terms, None), unending("# It", &terms)].map(|text| {
                text.lines().find(|line| line.contains("task/t_1")).unwrap_or_default().to_owned()
            })
        };
        let [task_line, bare] = lines_of(Purpose::Work, CommitMode::Auto);
        assert_eq!(task_line, bare);
        insta::assert_snapshot!(task_line, @"You are in a git worktree on the branch `task/t_1`. What is committed there is what you hand over: commit your work before you complete it or request a review. The supervisor commits the files that you leave uncommitted, in a commit of its own.");
        assert!(
            lines_of(Purpose::Work, CommitMode::Require)[0]
                .ends_with("Files that you leave uncommitted block the task.")
        );
        assert!(lines_of(Purpose::Work, CommitMode::No)[0].ends_with("are not part of it."));
        assert_eq!(lines_of(Purpose::Review, CommitMode::Auto), ["", ""]);
    }

    #[test]
    fn the_tools_are_named_as_the_model_of_each_program_sees_them() {
        let lines_of = |purpose, form| {
            let terms = terms(purpose);
            let text = prompt("# It", &terms, Some(form));
            text.lines().find(|line| line.contains("MCP server")).unwrap_or_default().to_owned()
        };
        insta::assert_snapshot!(lines_of(Purpose::Work, Form::Claude), @"The tools of the MCP server `board` do the same without a shell: `mcp__board__kanban_complete`, `mcp__board__kanban_request_review`, `mcp__board__kanban_block`. Call one of them in place of its command. `mcp__board__kanban_show` and `mcp__board__kanban_comment` are there too.");
        insta::assert_snapshot!(lines_of(Purpose::Work, Form::Codex), @"The tools of the MCP server `board` do the same without a shell: `kanban_complete`, `kanban_request_review`, `kanban_block`. Call one of them in place of its command. `kanban_show` and `kanban_comment` are there too.");
        insta::assert_snapshot!(lines_of(Purpose::Work, Form::Opencode), @"The tools of the MCP server `board` do the same without a shell: `board_kanban_complete`, `board_kanban_request_review`, `board_kanban_block`. Call one of them in place of its command. `board_kanban_show` and `board_kanban_comment` are there too.");
        insta::assert_snapshot!(lines_of(Purpose::Review, Form::Gemini), @"The tools of the MCP server `board` do the same without a shell: `mcp_board_kanban_approve`, `mcp_board_kanban_request_changes`. Call one of them in place of its command. `mcp_board_kanban_show` and `mcp_board_kanban_comment` are there too.");
    }
}
