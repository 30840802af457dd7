//! Registry of the chat commands: the verbs of the board, their open arguments, and the right that each needs.

use clap::{ArgMatches, Command as Parser};
use kernel::ScheduleName;

use super::directory::{directory_command, directory_of_thread};
use super::listing::list;
use super::scheduling::add;
use super::verb::{ChatCommand, parsed, parser, permit};
use api::{Verb as _, Working};
use base::exit::Code;
use base::failure::Failure;
use setup::automation::chat::May;
use verbs::{Answer, Create, List, ListSchedules, PauseSchedule, RemoveSchedule, RunSchedule, ScheduleLine};

/// Usage of `/schedules`.
const SCHEDULES: &str = "/schedules takes: list, show NAME, run NAME, pause NAME, resume NAME, rm NAME, \
     add NAME --at TIME|--every DURATION|--cron PATTERN --title TEXT [--assignee NAME]";

/// A verb that is open to chats.
struct ChatVerb {
    name: &'static str,
    may: May,
    /// Ids of the open arguments.
    open: &'static [&'static str],
    parser: fn(&[&str]) -> Parser,
    run: for<'a> fn(&'a ChatCommand<'a>, &ArgMatches) -> Working<'a, String>,
}

/// Expands to the function that fills in a chat's values; to an empty one by default.
macro_rules! prepared {
    () => {
        |_, _| {}
    };
    ($prepare:path) => {
        $prepare
    };
}

macro_rules! rows {
    ($($may:ident { $($verb:ident [$($open:literal)*] $(=> $prepare:path)?,)* })*) => {
        const ROWS: &[ChatVerb] = &[$($(ChatVerb {
            name: verbs::$verb::NAME,
            may: May::$may,
            open: &[$($open,)*],
            parser: |open| parser::<verbs::$verb>("/kanban", open),
            run: |command, matches| command.run::<verbs::$verb>(matches, prepared!($($prepare)?)),
        },)*)*];
    };
}

rows! {
    Read {
        List ["mine" "assignee" "status" "search" "since" "tenant" "archived" "sort" "limit" "why" "cursor"],
        Show ["task_id" "before_comment"],
        Runs ["task_id" "limit" "cursor"],
        Stats [],
        Assignees [],
        // Only this lets some tasks continue.
        Unblock ["task_ids" "reason"],
    }
    Mutate {
        Create [
            "title" "body" "assignee" "parents" "tenant" "priority" "triage" "max_runtime" "not_before" "skills" "pools"
            "max_retries" "require_approval" "approver" "approval_class" "goal" "goal_max_turns" "mission" "project"
            "initial_status" "idempotency_key"
        ] => create,
        Comment ["words"],
        Answer ["task_id" "words"] => answer,
        Assign ["task_id" "profile"],
        Promote ["task_id" "reason"],
        Schedule ["task_id" "reason" "at"],
        Link ["parent_id" "child_id"],
        Unlink ["parent_id" "child_id"],
        Retry ["task_ids" "reason"],
        Cancel ["task_ids" "reason"],
        Archive ["task_ids"],
        Reopen ["task_ids" "reason"],
        Steer ["task_id" "message"],
    }
    Approve {
        Approve ["words"],
        Deny ["task_ids" "reason"],
        RequestChanges ["words"],
    }
}

/// Uses later lines as the body, and the thread's directory as the workspace.
fn create(create: &mut Create, command: &ChatCommand<'_>) {
    create.workspace = command.directory.as_ref().map(|path| format!("dir:{path}"));
    if create.body.is_none()
        && let Some((_, rest)) = command.incoming.text.split_once('\n')
    {
        create.body = Some(rest.trim().to_owned()).filter(|body| !body.is_empty());
    }
}

fn answer(answer: &mut Answer, _: &ChatCommand<'_>) {
    answer.reply = Some(std::mem::take(&mut answer.words).join(" ")).filter(|words| !words.is_empty());
}

/// Handles the words after `/kanban` or `/task`.
pub(super) async fn kanban(command: &mut ChatCommand<'_>, words: &[String]) -> Result<String, Failure> {
    let Some((verb, words)) = words.split_first() else { return Ok(help(command.sender.may)) };
    if verb == "help" {
        return help_of(command.sender.may, words);
    }
    if verb == "here" {
        return directory_command(command, words).await;
    }
    let row = row(verb)?;
    permit(command, row.may, verb)?;
    let matches = parsed((row.parser)(row.open), row.open, words)?;
    if row.name == List::NAME {
        return list(command, &matches).await;
    }
    if row.name == Create::NAME {
        command.directory = directory_of_thread(command).await?;
    }
    (row.run)(command, &matches).await
}

/// Handles the words after `/schedules`.
pub(super) async fn schedules(command: &ChatCommand<'_>, words: &[String]) -> Result<String, Failure> {
    let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    let named = |name: &str| name.parse::<ScheduleName>().map_err(|e| Failure::usage(e.to_string()));
    match arguments.as_slice() {
        [] | ["list"] => {
            let mut lines = command.call(ListSchedules::default()).await?;
            // The board of a schedule with a defective file is unknown, so it is not shown.
            lines
                .retain(|line| line.board.as_ref().is_some_and(|board| command.require_reach(board).is_ok()));
            if lines.is_empty() {
                return Ok("No schedules. /help schedules shows how to add one.".to_owned());
            }
            command.text_of::<ListSchedules>(&lines)
        }
        ["show", name] => command.text_of::<ListSchedules>(&reached(command, named(name)?).await?),
        ["run", name] => {
            permit(command, May::Mutate, "run")?;
            reached(command, named(name)?).await?;
            let tick = command.call(RunSchedule { name: named(name)? }).await?;
            let tasks: Vec<&str> = tick.tasks.iter().map(kernel::TaskId::as_str).collect();
            let made =
                if tasks.is_empty() { "its command has been started".to_owned() } else { tasks.join(" ") };
            Ok(format!("Ran {name}  {made}"))
        }
        [word @ ("pause" | "resume"), name] => {
            permit(command, May::Mutate, word)?;
            let paused = *word == "pause";
            reached(command, named(name)?).await?;
            command.call(PauseSchedule { name: named(name)?, paused }).await?;
            Ok(format!("{} {name}", if paused { "Paused" } else { "Resumed" }))
        }
        ["add", ..] => {
            permit(command, May::Approve, "add")?;
            add(command, words.get(1..).unwrap_or_default()).await
        }
        ["rm", name] => {
            permit(command, May::Approve, "rm")?;
            reached(command, named(name)?).await?;
            let removed = command.call(RemoveSchedule { name: named(name)? }).await?;
            Ok(format!("Removed {}", removed.name))
        }
        _ => Err(Failure::usage(SCHEDULES)),
    }
}

/// Returns a schedule. Refuses it if its board is unknown, or if the sender may not reach that board.
async fn reached(command: &ChatCommand<'_>, name: ScheduleName) -> Result<Vec<ScheduleLine>, Failure> {
    let lines = command.call(ListSchedules { name: Some(name) }).await?;
    for line in &lines {
        let unknown = || {
            let message =
                format!("the file of the schedule {} is defective, so its board is not known", line.name);
            Failure::new(Code::NotPermitted, message)
        };
        command.require_reach(line.board.as_ref().ok_or_else(unknown)?)?;
    }
    Ok(lines)
}

/// Returns true if a verb is open to chats.
pub(super) fn is_open(verb: &str) -> bool {
    ROWS.iter().any(|row| row.name == verb)
}

fn row(verb: &str) -> Result<&'static ChatVerb, Failure> {
    let verb = if verb == "ls" { "list" } else { verb };
    ROWS.iter().find(|row| row.name == verb).ok_or_else(|| {
        let word: String = verb.chars().filter(|c| !c.is_control()).take(40).collect();
        Failure::usage(format!("`{word}` is not open to chats")).hint("/help lists what is")
    })
}

/// Returns the help for a sender's rights.
pub(super) fn help(may: May) -> String {
    let verbs = |of: May| {
        let names = ROWS.iter().filter(|row| row.may == of).map(|row| row.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![
        "/kanban VERB …  as on the command line; /task is the same".to_owned(),
        format!("  {}", verbs(May::Read)),
    ];
    for of in [May::Mutate, May::Approve] {
        if may >= of {
            lines.push(format!("  {}", verbs(of)));
        }
    }
    lines.push("/kanban here  the directory in which the tasks of this thread work".to_owned());
    lines.push("/schedules  tasks that are created at set times".to_owned());
    lines.push("/help VERB  its arguments".to_owned());
    if may >= May::Mutate {
        lines.push("A reply to a question answers it: its number, or words.".to_owned());
        lines.push("@profile in a message makes a task for it.".to_owned());
    }
    lines.join("\n")
}

/// Returns the usage of a verb.
pub(super) fn help_of(may: May, words: &[String]) -> Result<String, Failure> {
    match words.first() {
        None => Ok(help(may)),
        Some(verb) if verb == "schedules" => Ok(SCHEDULES.to_owned()),
        Some(verb) => {
            let row = row(verb)?;
            Ok((row.parser)(row.open).render_help().to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_is_open_is_one_of_its_verb_and_none_names_a_place_of_the_host() {
        for row in ROWS {
            let parser = (row.parser)(row.open);
            let ids: Vec<&str> = parser.get_arguments().map(|argument| argument.get_id().as_str()).collect();
            for open in row.open {
                assert!(ids.contains(open), "{} has no {open}: {ids:?}", row.name);
            }
            for closed in [
                "body_file",
                "workspace",
                "branch",
                "check",
                "policy",
                "notify",
                "rm",
                "created_by",
                "author",
            ] {
                assert!(!row.open.contains(&closed), "{} opens {closed}", row.name);
            }
            parser.debug_assert();
        }
    }

    #[test]
    fn an_argument_that_is_not_open_is_refused_by_its_name_and_is_not_shown() {
        let row = row("create").unwrap();
        for line in
            ["x --body-file /etc/passwd", "x --workspace dir:/etc", "x --policy trusted", "x --check id"]
        {
            let words = shlex::split(line).unwrap();
            let refused = parsed((row.parser)(row.open), row.open, &words).unwrap_err();
            assert!(refused.message.ends_with("is not open to chats"), "{line}: {}", refused.message);
        }
        let help = help_of(May::Read, &["create".to_owned()]).unwrap();
        assert!(help.contains("--assignee") && !help.contains("--workspace"), "{help}");
    }

    #[test]
    fn a_sender_is_shown_what_it_may_do() {
        let (read, approve) = (help(May::Read), help(May::Approve));
        assert!(read.contains("unblock") && !read.contains("create,"), "{read}");
        assert!(approve.contains("create,") && approve.contains("request-changes"), "{approve}");
    }
}
