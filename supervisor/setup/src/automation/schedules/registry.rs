//! All schedules: the files of `schedules.d/`, one file a schedule, named by the file.

use std::collections::BTreeSet;
use std::path::Path;

use kernel::{BoardName, ScheduleName, ScheduleSpec};

use super::crontab::{ENDINGS, installed};
use super::text::Planned;
use crate::config::definitions::{self, Defect, Definitions, Lookup, Subject};
use crate::config::settings;
use base::paths::Root;

/// Limit on the schedules of a root.
const MOST: usize = 1000;

/// All schedules by name.
#[derive(Clone, Debug)]
pub struct Schedules {
    defined: Definitions<Planned>,
    /// True if the directory could be listed.
    listed: bool,
}

#[derive(Debug)]
pub struct OfBoard {
    pub defined: Vec<(ScheduleName, ScheduleSpec)>,
    /// Schedules that stay unchanged, because their files are unusable.
    pub kept: BTreeSet<ScheduleName>,
}

/// Parses one file.
fn parse(name: &str, path: &Path, text: &str) -> Result<Planned, Defect> {
    let defect = |why: String| Defect::new(Subject::Schedule(name.to_owned()), path, why);
    let named: ScheduleName =
        name.parse().map_err(|e| defect(format!("{e}; the file's name is the schedule's name")))?;
    if path.extension().is_some_and(|ending| ending == "toml") {
        return Planned::parse(&named, text, path);
    }
    let schedule = installed(&named, path, text).map_err(defect)?;
    Planned::from_text(&named, schedule).map_err(|(key, why)| defect(format!("{key}: {why}")))
}

impl Schedules {
    /// Loads the schedules of the configuration.
    pub fn load(root: &Root) -> Self {
        let mut defined = Definitions::builtin([]);
        let mut count = 0;
        let file_of = |path: &Path| {
            let ending = path.extension()?.to_str()?;
            let is_one = ending == "toml" || ENDINGS.contains(&ending);
            Some((path.file_stem().filter(|_| is_one)?.to_str()?.to_owned(), path.to_owned()))
        };
        // Sorted by name, so `x.toml` comes before `x.yaml`.
        let files = match definitions::files_of(&root.schedules_dir(), &file_of) {
            Ok(files) => files,
            Err(defect) => {
                defined.not_listed(defect);
                return Schedules { defined, listed: false };
            }
        };
        for (name, path) in files {
            count += 1;
            let subject = || Subject::Schedule(name.clone());
            let defect = |why: String| Defect::new(subject(), &path, why);
            let read = if count > MOST {
                Err(defect(format!("there are more than {MOST} schedules")))
            } else if !matches!(defined.find(&name), Lookup::Absent) {
                Err(defect(format!("another file defines the schedule {name} as well; remove one of them")))
            } else {
                let read = settings::read_authored(&path);
                let read = read.map_err(|e| Defect::unreadable(subject(), &path, &e));
                read.and_then(|file| Ok(parse(&name, &path, &file.text)?.saved_in(file.author)))
            };
            defined.define(&name, read);
        }
        Schedules { defined, listed: true }
    }

    /// Loads the files again. Schedules that are defective now and were good in `before` keep their last good
    /// version.
    pub fn reload(root: &Root, before: &Self) -> Self {
        let mut now = Schedules::load(root);
        now.defined.keep(&before.defined);
        now
    }

    pub fn find(&self, name: &str) -> Lookup<'_, Planned> {
        self.defined.find(name)
    }

    /// Returns all names, including names of unusable schedules.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    pub fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }

    /// Returns the schedules for a board; a schedule without a channel gets the channel `usual`. None if the
    /// directory cannot be listed and nothing is known.
    pub fn of_board(&self, board: &BoardName, usual: Option<&str>) -> Option<OfBoard> {
        let is_known = self.listed || self.defined.usable().next().is_some();
        let named = |name: &str| name.parse::<ScheduleName>().ok();
        let of_board = self.defined.usable().filter(|(_, planned)| planned.board == *board);
        let defined =
            of_board.filter_map(|(name, planned)| Some((named(name)?, planned.with_channel(usual))));
        let disabled = self.defined.names().filter(|name| matches!(self.find(name), Lookup::Disabled(_)));
        is_known.then(|| OfBoard { defined: defined.collect(), kept: disabled.filter_map(named).collect() })
    }
}
