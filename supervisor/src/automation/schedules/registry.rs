//! The schedules that there are: those of `schedules.d/*.toml`, one file a schedule, named by the file.

use std::collections::BTreeSet;

use kernel::{BoardName, ScheduleName, ScheduleSpec};

use super::text::Planned;
use crate::config::definitions::{self, Defect, Definitions, Found, Subject};
use crate::paths::Root;

/// How many schedules a root may have.
const MOST: usize = 1000;

/// All schedules, by name.
#[derive(Clone, Debug)]
pub(crate) struct Schedules {
    defined: Definitions<Planned>,
    /// Whether the directory could be listed.
    listed: bool,
}

/// What a board has to know of the schedules.
pub(crate) struct OfBoard {
    pub(crate) defined: Vec<(ScheduleName, ScheduleSpec)>,
    /// Those that it keeps as they are, because their files cannot be used.
    pub(crate) kept: BTreeSet<ScheduleName>,
}

impl Schedules {
    /// Reads those of the configuration.
    pub(crate) fn load(root: &Root) -> Self {
        let mut defined = Definitions::builtin([]);
        let mut count = 0;
        let listed =
            definitions::read_all(&root.schedules_dir(), "toml", Subject::Schedule, |name, path, text| {
                count += 1;
                let subject = || Subject::Schedule(name.to_owned());
                let read = name
                    .parse::<ScheduleName>()
                    .map_err(|e| {
                        Defect::new(subject(), path, format!("{e}; the file's name is the schedule's name"))
                    })
                    .and_then(|named| Planned::parse(&named, &text?, path));
                let read = if count > MOST {
                    Err(Defect::new(subject(), path, format!("there are more than {MOST} schedules")))
                } else {
                    read
                };
                defined.define(name, read);
            });
        let is_listed = listed.is_ok();
        if let Err(defect) = listed {
            defined.not_listed(defect);
        }
        Schedules { defined, listed: is_listed }
    }

    /// The same, read again: what is defective now and was good in `before` stays as it was.
    pub(crate) fn reload(root: &Root, before: &Self) -> Self {
        let mut now = Schedules::load(root);
        now.defined.keep(&before.defined);
        now
    }

    pub(crate) fn find(&self, name: &str) -> Found<'_, Planned> {
        self.defined.find(name)
    }

    /// The names of all, also of those that cannot be used.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.defined.names()
    }

    pub(crate) fn defects(&self) -> impl Iterator<Item = &Defect> {
        self.defined.defects()
    }

    /// What a board has to know; a schedule that names no channel has the `usual` one. None where the directory cannot be listed and
    /// nothing is known.
    pub(crate) fn of_board(&self, board: &BoardName, usual: Option<&str>) -> Option<OfBoard> {
        let is_known = self.listed || self.defined.usable().next().is_some();
        let named = |name: &str| name.parse::<ScheduleName>().ok();
        let of_board = self.defined.usable().filter(|(_, planned)| planned.board == *board);
        let defined =
            of_board.filter_map(|(name, planned)| Some((named(name)?, planned.with_channel(usual))));
        let disabled = self.defined.names().filter(|name| matches!(self.find(name), Found::Disabled(_)));
        is_known.then(|| OfBoard { defined: defined.collect(), kept: disabled.filter_map(named).collect() })
    }
}
