//! Schedule files of `hermes kanban`: YAML with a cron pattern and a command, such as `cron/insta-fleet.yaml`.
//!
//! A command that changes such a schedule writes `NAME.toml` and removes the YAML file: only one form is written, and
//! the other has no place for `missed`, `overlap` or a channel.

use std::path::Path;

use kernel::ScheduleName;
use serde::Deserialize;

use super::text::ScheduleText;
use base::failure::Failure;

/// Contents of such a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    schedule: String,
    command: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "timezone")]
    time_zone: Option<String>,
    #[serde(default)]
    enabled: Option<bool>,
}

/// File name extensions.
pub const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// Parses such a file in `schedules.d/`. The name of the file is the name of the schedule.
pub fn installed(name: &ScheduleName, path: &Path, text: &str) -> Result<ScheduleText, String> {
    let (named, schedule) = imported(path, text).map_err(|failure| failure.message)?;
    match named {
        Some(named) if named != name.as_str() => {
            Err(format!("its `name` is `{named}`, but a schedule has the name of its file"))
        }
        Some(_) | None => Ok(schedule),
    }
}

/// Parses such a file. Returns the name in the file, if any, and the schedule.
pub fn imported(path: &Path, text: &str) -> Result<(Option<String>, ScheduleText), Failure> {
    let entry: Entry = serde_saphyr::from_str(text).map_err(|e| {
        let why = e.to_string();
        Failure::usage(format!("{}: {}", path.display(), why.trim_start_matches("error: "))).hint(
            "it has the keys `schedule` (a pattern of five fields) and `command`; `name`, `description`, `time_zone` and \
             `enabled` may be there",
        )
    })?;
    let schedule = ScheduleText {
        description: entry.description,
        cron: Some(entry.schedule),
        time_zone: entry.time_zone,
        paused: entry.enabled == Some(false),
        command: Some(entry.command),
        ..ScheduleText::default()
    };
    Ok((entry.name, schedule))
}
