//! All schedules: the files of `schedules.d/`, one file a schedule, named by the file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{BoardName, ScheduleName, ScheduleSpec};

use super::crontab::{ENDINGS, installed};
use super::text::Planned;
use crate::config::definitions::{
    Defect, Definitions, FileDefinition, FileLimit, NamedFile, Subject, with_ending,
};
use crate::config::settings;
use base::paths::Root;

/// All schedules by name.
pub type Schedules = Definitions<Planned>;

#[derive(Debug)]
pub struct OfBoard {
    pub defined: Vec<(ScheduleName, ScheduleSpec)>,
    /// Schedules that stay unchanged, because their files are unusable.
    pub kept: BTreeSet<ScheduleName>,
}

impl FileDefinition for Planned {
    const SUBJECT: fn(String) -> Subject = Subject::Schedule;
    const MOST: Option<FileLimit> = Some(FileLimit { files: 1000, noun: "schedules" });

    fn directory(root: &Root) -> PathBuf {
        root.schedules_dir()
    }

    fn file_of(entry: &Path) -> Option<NamedFile> {
        // `x.toml` comes before `x.yaml`.
        with_ending(entry, &["toml"]).or_else(|| with_ending(entry, &ENDINGS))
    }

    fn from_text(name: &str, path: &Path, text: &str) -> Result<Self, Defect> {
        let defect = |why: String| Defect::new(Subject::Schedule(name.to_owned()), path, why);
        let named: ScheduleName =
            name.parse().map_err(|e| defect(format!("{e}; the file's name is the schedule's name")))?;
        if path.extension().is_some_and(|ending| ending == "toml") {
            return Planned::parse(&named, text, path);
        }
        let schedule = installed(&named, path, text).map_err(defect)?;
        Planned::from_schedule(&named, schedule).map_err(|(key, why)| defect(format!("{key}: {why}")))
    }

    fn from_file(name: &str, path: &Path) -> Result<Self, Defect> {
        let file = settings::read_authored(path)
            .map_err(|e| Defect::unreadable(Subject::Schedule(name.to_owned()), path, &e))?;
        Ok(<Planned as FileDefinition>::from_text(name, path, &file.text)?.saved_in(file.author))
    }
}

impl Definitions<Planned> {
    /// Returns the schedules for a board; a schedule without a channel gets the channel `usual`. None if the
    /// directory cannot be listed and nothing is known.
    pub fn of_board(&self, board: &BoardName, usual: Option<&str>) -> Option<OfBoard> {
        let is_known = self.is_listed() || self.usable().next().is_some();
        let named = |name: &str| name.parse::<ScheduleName>().ok();
        let of_board = self.usable().filter(|(_, planned)| planned.board == *board);
        let defined =
            of_board.filter_map(|(name, planned)| Some((named(name)?, planned.with_channel(usual))));
        is_known.then(|| OfBoard {
            defined: defined.collect(),
            kept: self.disabled().filter_map(named).collect(),
        })
    }
}
