//! `schedules` at the command line: tasks that are created at set times.

use std::path::{Path, PathBuf};

use kernel::{Clock as _, ScheduleName, SystemClock};
use serde::Serialize;

use super::call;
use super::editor;
use crate::client::Client;
use crate::output::Output;
use base::exit::Code;
use base::failure::Failure;
use base::terminal::printable;
use base::time::timestamp;
use setup::automation::schedules::{ENDINGS, Planned, ScheduleText, imported, installed, path_of, text_of};
use verbs::{
    ListSchedules, PauseSchedule, RemoveSchedule, RunSchedule, SaveSchedule, read_text, show_schedule,
};

/// Limit on the ticks that a check shows.
const AHEAD: usize = 5;

/// Show a schedule, its latest ticks and the next ones
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules show brief")]
pub(super) struct Show {
    /// The schedule
    name: ScheduleName,
}

/// Change a schedule in $VISUAL or $EDITOR, or take the text of a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules edit brief
  supervisor schedules edit brief --file brief.toml")]
pub(super) struct Edit {
    /// The schedule
    name: ScheduleName,
    /// The file with the new text, or `-`
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Pause a schedule: its ticks are skipped
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules pause brief")]
pub(super) struct Pause {
    /// The schedule
    name: ScheduleName,
}

/// Resume a paused schedule with its next tick
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules resume brief")]
pub(super) struct Resume {
    /// The schedule
    name: ScheduleName,
}

/// Remove a schedule; its tasks stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules rm brief
  supervisor schedules rm brief inbox")]
pub(super) struct Rm {
    /// The schedules
    #[arg(required = true)]
    names: Vec<ScheduleName>,
}

/// Check the files of the schedules, or a file that is not installed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules check
  supervisor schedules check brief.toml")]
pub(super) struct Check {
    /// A file [default: all files of schedules.d]
    file: Option<PathBuf>,
}

/// Import a schedule of `hermes kanban`: a YAML file with a pattern and a command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  supervisor schedules import ~/.hermes/cron/insta-fleet.yaml")]
pub(super) struct Import {
    /// The file, or `-` for standard input
    file: PathBuf,
    /// Its name [default: the name in the file, else the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<ScheduleName>,
    /// Replace a schedule of that name
    #[arg(long)]
    force: bool,
}

/// A file of a schedule that was checked.
#[derive(Debug, Serialize)]
struct CheckedSchedules {
    path: PathBuf,
    ok: bool,
    error: Option<String>,
    /// The ticks to come, in epoch seconds.
    ahead: Vec<kernel::Timestamp>,
}

pub(super) async fn pause(client: &Client, Pause { name }: Pause, output: Output) -> Result<u8, Failure> {
    call(client, PauseSchedule { name, paused: true }, output).await
}

pub(super) async fn resume(client: &Client, Resume { name }: Resume, output: Output) -> Result<u8, Failure> {
    call(client, PauseSchedule { name, paused: false }, output).await
}

pub(super) async fn tick(
    client: &Client,
    RunSchedule { name }: RunSchedule,
    output: Output,
) -> Result<u8, Failure> {
    let tick = client.call(&RunSchedule { name: name.clone() }).await?;
    if output.json() {
        output.value(&tick)?;
    } else {
        let tasks: Vec<&str> = tick.tasks.iter().map(kernel::TaskId::as_str).collect();
        let made = if tasks.is_empty() { "its command has been started".to_owned() } else { tasks.join(" ") };
        output.text(&format!("Ran {name}  {made}\n"))?;
    }
    Ok(0)
}

pub(super) async fn rm(client: &Client, Rm { names }: Rm, output: Output) -> Result<u8, Failure> {
    for name in names {
        call(client, RemoveSchedule { name }, output).await?;
    }
    Ok(0)
}

pub(super) async fn show(client: &Client, Show { name }: Show, output: Output) -> Result<u8, Failure> {
    let found = client.call(&ListSchedules { name: Some(name) }).await?;
    let Some(line) = found.first() else { return Ok(0) };
    if output.json() {
        output.value(line)?;
    } else {
        let mut screen = output.screen();
        show_schedule(line, &mut screen);
        output.text(&screen.into_text())?;
    }
    Ok(0)
}

pub(super) async fn edit(client: &Client, Edit { name, file }: Edit, output: Output) -> Result<u8, Failure> {
    let before = text_of(client.root(), &name)?.ok_or_else(|| {
        Failure::new(Code::NotFound, format!("there is no schedule `{name}`"))
            .hint("`supervisor schedules list` lists them")
    })?;
    let after = match file {
        Some(file) => read_text(&file)?,
        None if editor::has_terminal() => editor::edited(before, ".toml").await?,
        None => {
            return Err(Failure::usage("`schedules edit` opens an editor, and this is not a terminal")
                .hint(format!("give the new text: supervisor schedules edit {name} --file FILE")));
        }
    };
    let kept = after.clone();
    let saved = call(client, SaveSchedule { name, schedule: None, text: Some(after), replace: true }, output);
    saved.await.map_err(|failure| match editor::keep_draft("schedule", ".toml", &kept) {
        Some(path) => {
            failure.hint(format!("your text is in {}: correct it, and give it with --file", path.display()))
        }
        None => failure,
    })
}

/// Checks files by the daemon's rules, without the daemon.
pub(super) fn check(client: &Client, Check { file }: Check, output: Output) -> Result<u8, Failure> {
    let files = if let Some(file) = file {
        vec![file]
    } else {
        let dir = client.root().schedules_dir();
        let listed = std::fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok);
        let mut files: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
        files.retain(|path| is_toml(path) || is_foreign(path));
        files.sort();
        files
    };
    let checked: Vec<CheckedSchedules> = files.iter().map(|path| checked(path)).collect();
    if output.json() {
        output.value(&checked)?;
    } else {
        let mut screen = output.screen();
        for one in &checked {
            let path = printable(&one.path.display().to_string()).clone();
            let next = one.ahead.first().map(|at| format!(", next tick {}", timestamp::local(*at)));
            match &one.error {
                None => screen.line(format!("ok    {path}{}", next.unwrap_or_default())),
                Some(error) => screen.hanging("wrong ", &printable(error)),
            }
        }
        if checked.is_empty() {
            screen.line("No schedules.");
        }
        output.text(&screen.into_text())?;
    }
    Ok(if checked.iter().all(|one| one.ok) { 0 } else { Code::Failed.exit() })
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml")
}

/// Returns true if a file has the format of `hermes kanban`, which is YAML.
fn is_foreign(path: &Path) -> bool {
    path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending))
}

fn checked(path: &Path) -> CheckedSchedules {
    let read = || {
        let name = name_of(path)?;
        let text = read_text(path).map_err(|e| e.to_string())?;
        let planned = if is_foreign(path) {
            let name_in_file = installed(&name, path, &text)?;
            let at = |(key, why): (&str, String)| format!("{}: {key}: {why}", path.display());
            Planned::from_schedule(&name, name_in_file).map_err(at)?
        } else {
            Planned::parse(&name, &text, path).map_err(|defect| defect.to_string())?
        };
        kernel::ticks_ahead(&name, &planned.spec, SystemClock.now(), AHEAD).map_err(|e| e.to_string())
    };
    match read() {
        Ok(ahead) => CheckedSchedules { path: path.to_owned(), ok: true, error: None, ahead },
        Err(error) => {
            CheckedSchedules { path: path.to_owned(), ok: false, error: Some(error), ahead: Vec::new() }
        }
    }
}

/// Returns the name of a schedule from the name of its file.
fn name_of(path: &Path) -> Result<ScheduleName, String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.parse().map_err(|e: kernel::ParseError| format!("{}: {e}", path.display()))
}

pub(super) async fn import(client: &Client, import: Import, output: Output) -> Result<u8, Failure> {
    let Import { file, name, force: replace } = import;
    let (name_in_file, schedule) = imported(&file, &read_text(&file)?)?;
    let unnamed = |why: String| Failure::usage(why).hint("choose a name with --name");
    let name = match (name, name_in_file) {
        (Some(name), _) => name,
        (None, Some(name)) => name.parse().map_err(|e: kernel::ParseError| unnamed(e.to_string()))?,
        (None, None) => name_of(&file).map_err(unnamed)?,
    };
    let path = path_of(client.root(), &name);
    let board = Some(client.board().clone()).filter(|board| *board != kernel::BoardName::default());
    let schedule = ScheduleText { board, ..schedule };
    // An invalid command is refused here, with the name of its file.
    Planned::from_schedule(&name, schedule.clone()).map_err(|(key, why)| {
        Failure::usage(format!("{}: {key}: {why}", file.display())).hint(format!(
            "write {} yourself: `supervisor help docs/schedules.md` describes it",
            path.display()
        ))
    })?;
    call(client, SaveSchedule { name, schedule: Some(schedule), text: None, replace }, output).await
}
