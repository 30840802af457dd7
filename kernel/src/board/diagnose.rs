//! Reads the facts for the diagnosis of a board.

use super::view::View;
use crate::model::error::Error;
use crate::model::event::EventKind;
use crate::model::examined_task::ExaminedTask;
use crate::model::filter::EventFilter;
use crate::model::hold::Hold;
use crate::model::id::TaskId;
use crate::model::note::Event;
use crate::rules::diagnose::{Diagnosed, ENDINGS, Facts, is_failing};

impl View<'_> {
    /// Returns the tasks with problems, sorted by severity, the worst first, then by id. Examines the named task, or all.
    pub fn diagnose(&self, task: Option<&TaskId>) -> Result<Vec<Diagnosed>, Error> {
        let holds = self.holds()?;
        let mut diagnosed = Vec::new();
        for examined in self.tx.examined_tasks(task, self.now())? {
            let diagnostics = self.facts(&examined, &holds)?.findings();
            if !diagnostics.is_empty() {
                let ExaminedTask { id, title, status, assignee, .. } = examined;
                let (task_id, status) = (Some(id), Some(status));
                diagnosed.push(Diagnosed { task_id, title, status, assignee, diagnostics });
            }
        }
        Diagnosed::sort(&mut diagnosed);
        Ok(diagnosed)
    }

    /// Returns the facts about a task. Events and runs are read only if a diagnosis can need them.
    fn facts<'a>(&self, examined: &'a ExaminedTask, holds: &'a [Hold]) -> Result<Facts<'a>, Error> {
        let events = |kinds: &[EventKind]| EventFilter {
            task: Some(examined.id.clone()),
            kinds: kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
            ..EventFilter::default()
        };
        let ending: Option<Event> = if examined.failures > 0 {
            self.events(&EventFilter { limit: 1, newest_first: true, ..events(&ENDINGS) })?.pop()
        } else {
            None
        };
        Ok(Facts {
            ending,
            runs: if is_failing(examined) { self.runs(&examined.id)? } else { Vec::new() },
            unblocked: if examined.was_blocked {
                self.events(&events(&[EventKind::Unblocked]))?
            } else {
                Vec::new()
            },
            examined,
            holds,
            now: self.now(),
        })
    }
}
