//! `run`: creates a task for a command, shows its output, and exits with its exit code.

use kernel::{CommitMode, Profile, RunId, Status, TaskId, Tenant, WaitingCode};

use super::daemon_watch::DaemonWatch;
use super::waits::ReportedReasons;
use super::{CommandLine, create, logs, outcome, wait};
use crate::client::Client;
use crate::output::Output;
use api::command::Command as _;
use base::cli_context;
use base::exit::Code;
use base::failure::Failure;
use base::owner::{OwnerLock, Ownership};
use base::paths::Root;
use base::terminal::{complain, cut};
use base::time::duration::WrittenDuration;
use setup::config::Config;
use setup::roster::{Roster, nearest};
use verbs::{Assignees, Create, Events, Listed, Show, ShownTask};

/// Time that a request waits at the daemon. It is short because the reason of a wait may change without an event of the
/// task.
const WAIT_SECONDS: u64 = 2;
/// The lane whose prompts are shell scripts.
const SHELL: &str = "shell";
/// Words of the shell: its grammar, and commands that are not always programs, or that act on the shell itself.
const OF_SHELL: [&str; 62] = [
    ".", ":", "[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "do",
    "done", "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs", "kill", "let", "local",
    "printf", "pwd", "read", "readonly", "return", "select", "set", "shift", "source", "test", "then",
    "time", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
    "{",
];
/// Limit on the characters of a title made from a command.
const TITLE: usize = 80;
/// Exit code after Ctrl-C, as in shells.
const INTERRUPTED: u8 = 130;

kernel::task_request! { run
/// Run a command as a task, show its output, and exit as it does
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Options come before the command. One argument is a script for sh, or the prompt of an
agent; several are a command with its arguments. An option that is not known is refused: write -- before
a command that begins with `-`. The command reads nothing from standard input, and all that it writes, also to standard error, is shown on standard output. Ctrl-C ends only the display: the task goes on. Unless
--max-retries says otherwise, a command that fails is not tried again.

Exit code: that of the command; 5 if a person has to act (a question, a review).

Examples:
  supervisor run -- make test
  supervisor run --here 'wc -l *.csv | sort -n'
  supervisor run --detach --max-runtime 2h -- ./nightly --full
  supervisor run --assignee claude --workspace worktree:/srv/app 'fix the test'
  supervisor wait $(supervisor run --detach -- make test)")]
pub(super) struct Run {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    command: Vec<String>,
    /// Print the id of the task, and do not wait
    #[arg(long, short)]
    detach: bool,
    /// The assignee: a lane or a profile [default: `run.assignee` of the configuration, `shell` unless set]
    #[arg(long, value_name = "NAME")]
    assignee: Option<Profile>,
    /// The title of the task [default: the command]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The workspace, as in `create` [default: scratch]
    #[arg(long, value_name = "WHERE")]
    workspace: Option<String>,
    /// Work in the current directory
    #[arg(long, conflicts_with = "workspace")]
    here: bool,
    /// Its tenant
    #[arg(long, value_name = "NAME", env = "SUPERVISOR_TENANT")]
    tenant: Option<Tenant>,
    /// The policy of its worker, by name [default: the configured one]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Handling of uncommitted changes in a worktree, as in `create`
    #[arg(long, value_name = "MODE")]
    commit: Option<CommitMode>,
    /// Priority: tasks with a higher number start first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    @first;
    /// Give up after this many failures in a row
    #[arg(long, value_name = "N", default_value_t = 1)]
    max_retries: u32,
    /// Recipient of notifications: a channel of the configuration, as in `create`
    #[arg(long, value_name = "CHANNEL", env = "SUPERVISOR_CHANNEL")]
    notify: Option<String>,
    @last;
}
}

pub(super) async fn run(line: &CommandLine, run: Run) -> Result<u8, Failure> {
    let (client, output) = (&line.client()?, line.output);
    if client.worker().is_some() {
        return Err(Failure::new(Code::NotPermitted, "a worker cannot wait for other tasks")
            .hint("create the task with `supervisor create`, and link it if yours has to wait for it"));
    }
    let detach = run.detach;
    let mut new = run.into_new_task(client, output)?;
    if detach {
        new.quiet = !output.json();
        return create::run(client, new, output).await;
    }
    if !client.is_served().await {
        return Err(unserved(client));
    }
    if let Some(assignee) = &new.assignee {
        require_known(client, assignee).await?;
    }
    new.localize(client.here())?;
    let created = client.call(&new).await?;
    output.warn(&created.warnings);
    let task = created.task.id;
    tokio::select! {
        shown = follow(client, &task, output) => {
            // On any failure here the task stays on the board, and its worker outlives the daemon.
            let goes_on = |failure: Failure| failure.hint(format!("{task} continues. Follow it: supervisor logs -f {task}"));
            end(&shown.map_err(goes_on)?, output)
        }
        // Cancel-safe: `follow` only reads.
        _ = tokio::signal::ctrl_c() => {
            complain(&cli_context::repeated(&format!(
                "\n{task} continues. Follow it: supervisor logs -f {task}\nEnd it: supervisor cancel {task}"
            )));
            Ok(INTERRUPTED)
        }
    }
}

fn unserved(client: &Client) -> Failure {
    let failure = client.no_daemon();
    if OwnerLock::ownership(client.root()) == Ownership::Hidden {
        return failure;
    }
    Failure { message: format!("{failure}, so nothing would run it"), ..failure }
        .hint("start one with: supervisor daemon; or create the task for later with --detach")
}

impl Run {
    fn into_new_task(self, client: &Client, output: Output) -> Result<Create, Failure> {
        let assignee = match self.assignee {
            Some(assignee) => assignee,
            None => default_assignee(client.root(), output),
        };
        if self.command.iter().all(|word| word.trim().is_empty()) {
            return Err(Failure::usage("the command is empty").hint("name one: supervisor run -- make test"));
        }
        let is_command = is_program(&self.command);
        let body = script(self.command)?;
        let title = self.title.unwrap_or_else(|| cut(body.trim().lines().next().unwrap_or_default(), TITLE));
        // With `exec` the command replaces the shell, so that it gets the signals to the worker.
        let body =
            if is_command && is_of_shell(client.root(), &assignee) { format!("exec {body}") } else { body };
        let workspace = if self.here { Some(here()?) } else { self.workspace };
        let plain = kernel::passed_fields! { run self => Create };
        Ok(Create {
            title,
            body: Some(body),
            assignee: Some(assignee),
            workspace,
            tenant: self.tenant,
            policy: self.policy,
            commit: self.commit,
            priority: self.priority,
            max_retries: Some(self.max_retries),
            notify: self.notify,
            ..plain
        })
    }
}

/// Returns the default assignee. An unusable configuration is only a warning, as the daemon continues with the last
/// usable one.
fn default_assignee(root: &Root, output: Output) -> Profile {
    let (config, defect) = Config::to_read_with(root);
    if let Some(defect) = defect {
        output.warn(&[format!(
            "{defect}; the assignee is `{}`, because --assignee is not given",
            config.run.assignee
        )]);
    }
    config.run.assignee
}

/// Refuses an assignee without a lane or profile: its task would wait forever.
async fn require_known(client: &Client, assignee: &Profile) -> Result<(), Failure> {
    let lines = match client.call(&Assignees::default()).await {
        Ok(Listed::Rows(lines)) => lines,
        Ok(Listed::Page { .. }) => return Ok(()),
        // Users of a tenant may not list assignees. `create` warns of one that nothing runs.
        Err(failure) if failure.code == Code::NotPermitted => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let known: Vec<String> = lines.into_iter().filter(|line| line.on_disk).map(|line| line.name).collect();
    if known.iter().any(|name| name == assignee.as_str()) {
        return Ok(());
    }
    let near = nearest(assignee.as_str(), known);
    let near = near.map(|near| format!("is `{near}` meant? ")).unwrap_or_default();
    Err(Failure::usage(format!(
        "no lane or profile has the name `{assignee}`, so nothing here would run the command"
    ))
    .hint(format!(
        "{near}`supervisor assignees` lists all names; --detach creates the task for a worker that claims it"
    )))
}

/// Returns the current directory as a workspace.
fn here() -> Result<String, Failure> {
    let here = std::env::current_dir()
        .map_err(|e| Failure::failed(format!("failed to find the current directory: {e}")))?;
    match here.to_str() {
        Some(here) => Ok(format!("dir:{here}")),
        None => Err(Failure::usage(format!("the path of {} is not UTF-8", here.display()))
            .hint("go to another directory")),
    }
}

/// Returns the script: a single word unchanged, or several words quoted as one command for a shell.
fn script(mut words: Vec<String>) -> Result<String, Failure> {
    if words.len() == 1 {
        return Ok(words.remove(0));
    }
    shlex::try_join(words.iter().map(String::as_str)).map_err(|_| {
        Failure::usage("an argument of the command has a NUL byte").hint("no shell takes one: leave it out")
    })
}

/// Returns true if the prompts of an assignee are scripts for sh.
fn is_of_shell(root: &Root, assignee: &Profile) -> bool {
    let lane = |config: Config| Roster::load(root).lane_name(assignee, &config);
    lane(Config::to_read_with(root).0).as_str() == SHELL
}

/// Returns true if the words are a program with arguments, and not a command of the shell.
fn is_program(words: &[String]) -> bool {
    let [program, _, ..] = words else { return false };
    !program.is_empty()
        && !program.starts_with('-')
        && !program.contains('=')
        && !OF_SHELL.contains(&program.as_str())
}

/// Shows the output of a task's runs until the task no longer continues by itself.
async fn follow(client: &Client, task: &TaskId, output: Output) -> Result<ShownTask, Failure> {
    let show = Show { task_id: Some(task.clone()), ..Show::default() };
    let mut events = Events { task: Some(task.clone()), limit: 1000, ..Events::default() };
    let mut seen = RunId(0);
    let mut waits = ReportedReasons::default();
    let mut served = DaemonWatch::default();
    loop {
        served.check(client);
        // The cursor is read before the task, so that a start in between ends the wait early.
        events.since = client.call(&events).await?.cursor;
        let shown = client.call(&show).await?;
        // Until its command is started, a run has no log, and the wait may have a reason.
        let has_log = |run: &&kernel::Run| run.spawned_at.is_some() || run.ended_at.is_some();
        if let Some(run) = shown.runs.iter().filter(has_log).find(|run| run.id > seen) {
            seen = run.id;
            events.wait = 0;
            if !output.json() {
                logs::RunLog::of_run(task, seen).follow_to_end(client, output).await?;
                continue;
            }
        }
        if outcome::of_task(&shown).is_some() {
            return Ok(shown);
        }
        // A reason in the first iteration often passes in a moment, so it is not reported yet.
        if events.wait > 0 {
            waits.tell(&shown);
        }
        events.wait = WAIT_SECONDS;
    }
}

fn end(shown: &ShownTask, output: Output) -> Result<u8, Failure> {
    let code = outcome::of_task(shown).unwrap_or_default();
    if output.json() {
        output.value(shown)?;
    } else if code != 0 {
        let task = &shown.task;
        complain(&format!("{} {}{}", task.id, task.status, wait::ending(shown)));
        let next = match task.open_question() {
            Some(question) => format!("; {}", question.command(&task.id)),
            None => next(shown).map(|verb| format!("; supervisor {verb} {}", task.id)).unwrap_or_default(),
        };
        complain(&cli_context::repeated(&format!("supervisor show {}{next}", task.id)));
    }
    Ok(code)
}

/// Returns the verb that makes a waiting task continue.
fn next(shown: &ShownTask) -> Option<&'static str> {
    let code = shown.why.as_ref()?.code;
    // A task that was blocked with a request for review has no work to approve.
    let is_blocked = shown.task.status == Status::Blocked;
    Some(if code == WaitingCode::Question {
        "answer"
    } else if code == WaitingCode::Triage {
        "promote"
    } else if code == WaitingCode::Review && is_blocked {
        "unblock"
    } else if matches!(code, WaitingCode::Review | WaitingCode::Approval) {
        "approve"
    } else {
        "retry"
    })
}

#[cfg(test)]
mod tests {
    use super::script;

    fn of(words: &[&str]) -> String {
        script(words.iter().map(|word| (*word).to_owned()).collect()).unwrap()
    }

    #[test]
    fn one_word_is_a_script_and_several_are_a_command_as_it_was_given() {
        assert_eq!(of(&["ls | wc -l"]), "ls | wc -l");
        assert_eq!(of(&["make", "-j4", "test"]), "make -j4 test");
        assert_eq!(of(&["echo", "a b", "$HOME", "it's"]), r#"echo 'a b' '$HOME' "it's""#);
        assert!(script(vec!["a".to_owned(), "b\0".to_owned()]).is_err());
    }

    #[test]
    fn only_a_program_with_arguments_takes_the_place_of_the_shell() {
        let is_program = |words: &[&str]| {
            super::is_program(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert!(is_program(&["make", "test"]) && is_program(&["./nightly", "--full"]));
        for words in
            [&["ls -l"][..], &["cd", "/"], &["if", "true"], &["A=1", "make"], &["-x", "y"], &["", "y"]]
        {
            assert!(!is_program(words), "{words:?}");
        }
    }
}
