//! Keys of a schedule file, and their conversion to a schedule of the board.

use std::path::Path;

use kernel::{BoardName, Missed, Overlap, ScheduleName, ScheduleSpec, Timestamp, Timing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::span::span;
use super::task_text::{TaskText, is_false};
use crate::config::definitions::{Defect, Subject};
use crate::config::notify::NOBODY;
use base::environment::with_home;
use base::failure::Failure;
use base::time::duration::WrittenDuration;

/// Verb of every command of a schedule.
const VERB: &str = "dispatch-fleet";

/// Contents of a schedule file: at least one of `cron`, `every` and `at`, and one of `task`, `tasks` and `command`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleText {
    /// Purpose, on one line
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A pattern of five fields: minute, hour, day of the month, month, day of the week
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// A period such as 15m, counted from `start`, else from 1970-01-01 00:00 UTC
    #[serde(serialize_with = "span", skip_serializing_if = "Option::is_none")]
    pub every: Option<WrittenDuration>,
    /// Times of the calendar: 07:00, mon 07:00 or 2026-12-24 18:00
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// Time zone of its times, such as Europe/Berlin; the host's zone if absent
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Longest random delay of its tasks after the tick
    #[serde(serialize_with = "span", skip_serializing_if = "Option::is_none")]
    pub jitter: Option<WrittenDuration>,
    /// Earliest tick: 2026-12-01 00:00, or an RFC 3339 time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Latest tick
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Handling of missed ticks: skip, once or all
    #[serde(skip_serializing_if = "is_default")]
    pub missed: Missed,
    /// Handling of a tick while a task of an earlier tick is open: skip, queue or replace
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// Skip all ticks
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
    /// User who saved it, as uid, if the daemon wrote the file for that user; the supervisor sets it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_by: Option<SavedBy>,
    /// Board of its tasks
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardName>,
    /// Channel for notifications about its tasks, as with `create --notify`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Command for each tick: `dispatch-fleet` and its arguments
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Task of each tick
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskText>,
    /// Tasks of each tick, if it makes several
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskText>,
}

/// User who saved a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SavedBy {
    /// User of this host.
    Uid(u32),
    /// Caller without a known user.
    Word(Unknown),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    Unknown,
}

impl SavedBy {
    /// Returns the entry for the user that saves a schedule through the daemon. None if the owner of the file will be this
    /// user: for root itself, and in a daemon that does not run as root.
    pub(super) fn for_saver(saver: Option<u32>) -> Option<Self> {
        let is_owner = !nix::unistd::geteuid().is_root() || saver == Some(0);
        (!is_owner).then(|| saver.map_or(SavedBy::Word(Unknown::Unknown), SavedBy::Uid))
    }

    fn uid(self) -> Option<u32> {
        match self {
            SavedBy::Uid(uid) => Some(uid),
            SavedBy::Word(Unknown::Unknown) => None,
        }
    }
}

// Decision 0268.
/// Returns the creator of the tasks of a schedule: the author of its file, or in a file of root the user in the entry
/// `saved_by`. In a file of another user the entry does not count, because its author could name any user.
pub(super) fn creator(author: Option<u32>, saved_by: Option<SavedBy>) -> Option<u32> {
    match (author, saved_by) {
        (Some(0), Some(saver)) => saver.uid(),
        (author, _) => author,
    }
}

impl ScheduleText {
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(|e| Failure::failed(format!("the schedule cannot be written: {e}")))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A usable schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Contents of the file.
    pub text: ScheduleText,
    pub board: BoardName,
    /// Definition for the board.
    pub spec: ScheduleSpec,
}

impl Planned {
    /// Parses the text of a file.
    pub fn parse(name: &ScheduleName, text: &str, path: &Path) -> Result<Self, Defect> {
        let subject = || Subject::Schedule(name.to_string());
        let written: ScheduleText =
            toml::from_str(text).map_err(|error| Defect::toml(subject(), path, text, &error))?;
        Planned::from_schedule(name, written).map_err(|(key, why)| {
            let defect = Defect::new(subject(), path, why);
            let sets = |line: &str| {
                line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
            };
            match text.lines().position(sets) {
                Some(line) => defect.at(line + 1, Some(key.to_owned())),
                None => defect,
            }
        })
    }

    /// Sets the creator of the schedule's tasks, for a file with this author.
    #[must_use]
    pub fn saved_in(mut self, author: Option<u32>) -> Self {
        self.spec.creator_uid = creator(author, self.text.saved_by);
        self
    }

    /// Returns the definition for the board; a file without a channel gets the channel `usual`.
    pub(crate) fn with_channel(&self, usual: Option<&str>) -> ScheduleSpec {
        let mut spec = self.spec.clone();
        if self.text.channel.is_none() {
            for template in &mut spec.tasks {
                template.task.origin.channel = usual.map(str::to_owned);
            }
        }
        spec
    }

    /// Converts the contents of a file.
    ///
    /// # Errors
    /// Key that is unusable, with the reason.
    pub fn from_schedule(name: &ScheduleName, text: ScheduleText) -> Result<Self, (&'static str, String)> {
        let tasks = match (&text.task, text.tasks.as_slice()) {
            (Some(_), [_, ..]) => {
                return Err(("tasks", "describe one [task], or several [[tasks]]".to_owned()));
            }
            (Some(task), []) => std::slice::from_ref(task),
            (None, tasks) => tasks,
        };
        let channel = text.channel.as_deref().filter(|channel| *channel != NOBODY);
        let tasks = tasks.iter().map(|task| task.template(channel)).collect::<Result<_, _>>()?;
        let zone = text.time_zone.as_deref();
        let moment = |key: &'static str, written: Option<&String>| {
            written.map(|written| moment(written, zone).map_err(|why| (key, why))).transpose()
        };
        let spec = ScheduleSpec {
            timing: Timing {
                cron: text.cron.clone(),
                every: text.every.map(WrittenDuration::duration),
                at: text.at.clone(),
                time_zone: text.time_zone.clone(),
                start: moment("start", text.start.as_ref())?,
                end: moment("end", text.end.as_ref())?,
            },
            jitter: text.jitter.map(WrittenDuration::duration),
            missed: text.missed,
            overlap: text.overlap,
            paused: text.paused,
            tasks,
            command: text.command.as_deref().map(command).transpose()?,
            // The author of the file decides; see `saved_in`.
            creator_uid: None,
        };
        kernel::check_schedule(name, &spec).map_err(|error| match error {
            kernel::Error::Invalid { field, message, hint } => {
                (field, hint.map_or_else(|| message.clone(), |hint| format!("{message}; {hint}")))
            }
            other => ("", other.to_string()),
        })?;
        let board = text.board.clone().unwrap_or_default();
        Ok(Planned { text, board, spec })
    }
}

/// Parses a point in time, in the zone of the schedule if the text has no offset.
fn moment(written: &str, zone: Option<&str>) -> Result<Timestamp, String> {
    let refuse = || format!("`{written}` is not a time: write '2026-12-01 09:00' or an RFC 3339 time");
    if let Ok(at) = written.parse::<jiff::Timestamp>() {
        return Ok(Timestamp::from_secs(at.as_second()));
    }
    let civil: jiff::civil::DateTime = written.trim().parse().map_err(|_| refuse())?;
    let zone = match zone {
        Some(name) => jiff::tz::TimeZone::get(name).map_err(|_| refuse())?,
        None => jiff::tz::TimeZone::system(),
    };
    let at = civil.to_zoned(zone).map_err(|_| refuse())?;
    Ok(Timestamp::from_secs(at.timestamp().as_second()))
}

/// Options of a command that the schedule decides.
const DECIDED: [&str; 8] =
    ["--tick", "--root", "--board", "--json", "--dry-run", "--system", "--user", "--creator"];

/// Returns the reason to refuse the words of a command. The daemon carries them out with its own rights, for a schedule
/// of any user or browser.
fn unfit(words: &[String]) -> Option<String> {
    if words.first().map(String::as_str) != Some(VERB) {
        return Some(format!(
            "`{}` is not a command of a schedule: write {VERB} PROFILE DIRECTORY, or describe a [task]",
            words.join(" ")
        ));
    }
    if let Some(word) = words.iter().find(|word| DECIDED.iter().any(|option| word.starts_with(option))) {
        return Some(format!("{word} is decided by the schedule; leave it out"));
    }
    let reads_file = words.iter().any(|word| word.starts_with("--body-file"));
    reads_file.then(|| "a tick reads no file: write the text as --body instead of --body-file".to_owned())
}

/// Refuses a stored command that no schedule file can have now: an earlier release, a restored backup or another program
/// has stored it.
///
/// # Errors
/// The reason.
pub fn require_command(words: &[String]) -> Result<(), String> {
    let written = match words {
        [verb, option, _, rest @ ..] if option == "--tick" => [std::slice::from_ref(verb), rest].concat(),
        other => other.to_vec(),
    };
    unfit(&written).map_or(Ok(()), Err)
}

/// Parses a command. Leading names of programs are dropped, and only `dispatch-fleet` is permitted. The command gets the
/// tick as an option, so that repeated tries dispatch a tick once.
fn command(text: &str) -> Result<Vec<String>, (&'static str, String)> {
    let refuse = |why: String| ("command", why);
    let words = shlex::split(text).ok_or_else(|| refuse("a quote is not closed".to_owned()))?;
    let called = words.iter().take_while(|word| ["hermes", "kanban", "supervisor"].contains(&word.as_str()));
    let mut words: Vec<String> = words.iter().skip(called.count()).map(|word| with_home(word)).collect();
    if let Some(why) = unfit(&words) {
        return Err(refuse(why));
    }
    if words.len() < 3 {
        return Err(refuse("write dispatch-fleet PROFILE DIRECTORY".to_owned()));
    }
    // The option comes before the arguments of the file, because after a `--` it would not be an option.
    words.splice(1..1, ["--tick".to_owned(), "{tick}".to_owned()]);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_no_file_with_the_rights_of_the_daemon() {
        for words in ["--body-file /root/key", "--body-file=/root/key"] {
            let refused = command(&format!("dispatch-fleet shell /srv/fleet {words}")).unwrap_err();
            assert_eq!(refused.0, "command");
            assert!(refused.1.starts_with("a tick reads no file"), "{refused:?}");
        }
        assert!(command("dispatch-fleet shell /srv/fleet --body 'read the mail'").is_ok());
    }

    #[test]
    fn a_stored_command_is_held_to_the_rule_of_the_file() {
        let words = |text: &str| shlex::split(text).unwrap();
        let stored = command("dispatch-fleet shell /srv/fleet --title 'at {tick}'").unwrap();
        assert_eq!(require_command(&stored), Ok(()));
        for (text, why) in [
            ("dispatch-fleet --tick x shell /srv/fleet --body-file /root/key", "a tick reads no file"),
            ("dispatch-fleet --tick x --creator 0 shell /srv/fleet", "--creator is decided"),
            ("dispatch-fleet --tick x shell /srv/fleet --tick y", "--tick is decided"),
            ("export --tick x --file /etc/x", "is not a command of a schedule"),
            ("", "is not a command of a schedule"),
        ] {
            let refused = require_command(&words(text)).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
