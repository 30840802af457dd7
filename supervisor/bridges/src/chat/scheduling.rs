//! Schedule written in a chat: its times and one task, whose messages return to the same thread.

use clap::{CommandFactory as _, FromArgMatches as _};
use kernel::{Missed, Overlap, Profile, ScheduleName};

use super::directory::directory_of_thread;
use super::verb::{ChatCommand, parsed};
use base::failure::Failure;
use setup::automation::schedules::{ScheduleText, TaskText, TimesText};
use verbs::{SaveSchedule, of_address};

/// Arguments of `/schedules add`.
#[derive(Debug, clap::Parser)]
#[command(
    name = "add",
    bin_name = "/schedules add",
    no_binary_name = true,
    disable_help_flag = true,
    color = clap::ColorChoice::Never,
    term_width = 0
)]
struct AddArguments {
    /// Its name
    name: ScheduleName,
    #[command(flatten)]
    times: TimesText,
    /// Ticks that were missed: skip, once or all
    #[arg(long, value_name = "RULE", default_value = "once")]
    missed: Missed,
    /// A tick while an earlier task is open: skip, queue or replace
    #[arg(long, value_name = "RULE", default_value = "skip")]
    overlap: Overlap,
    /// The title of its task; lines after the first are the body
    #[arg(long, value_name = "TEXT")]
    title: String,
    /// The assignee: a profile or a lane
    #[arg(long, value_name = "NAME")]
    assignee: Option<Profile>,
}

/// Adds the schedule described by the words after `/schedules add`.
pub(super) async fn add(command: &ChatCommand<'_>, words: &[String]) -> Result<String, Failure> {
    let parser = AddArguments::command();
    let open: Vec<String> = parser.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let matches = parsed(parser, &open, words)?;
    let add = AddArguments::from_arg_matches(&matches).map_err(|e| Failure::usage(e.to_string()))?;
    let body = command.incoming.text.split_once('\n').map(|(_, rest)| rest.trim().to_owned());
    let task = TaskText {
        title: add.title,
        body: body.filter(|body| !body.is_empty()),
        assignee: add.assignee,
        workspace: directory_of_thread(command).await?.map(|path| format!("dir:{path}")),
        ..TaskText::default()
    };
    let schedule = ScheduleText {
        cron: add.times.cron,
        every: add.times.every,
        at: add.times.at,
        time_zone: add.times.time_zone,
        missed: add.missed,
        overlap: add.overlap,
        board: Some(command.board.clone()),
        channel: Some(of_address(&command.address())),
        task: Some(task),
        ..ScheduleText::default()
    };
    command.shown(SaveSchedule { name: add.name, schedule: Some(schedule), text: None, replace: false }).await
}
