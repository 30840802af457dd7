//! `pause-schedule`: pauses a schedule or resumes it. Ticks during the pause are skipped.

use kernel::ScheduleName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::save::{Saved, save};
use super::{unknown, usable};
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use base::time::timestamp;
use setup::automation::schedules::{Planned, PlannedText, authored_of, path_of, saved_text, with_pause};

/// Pause or resume a schedule
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    /// The schedule.
    pub name: ScheduleName,
    /// True if it is paused from now on.
    pub paused: bool,
}

impl Verb for PauseSchedule {
    verb! {
        "pause-schedule": Operator, Write,
        on(None),
        tool(Operator, "A paused schedule skips its ticks; a resumed one continues with its next tick.")
        => Saved
    }

    async fn run(self, call: Call) -> Result<Saved, Failure> {
        let service = call.service.clone();
        blocking("the schedule was not changed", move || {
            let (name, root) = (&self.name, service.root());
            usable(&service, name)?;
            let path = path_of(root, name);
            let file = authored_of(root, name)?.ok_or_else(|| unknown(&service, name))?;
            let before = file.text.clone();
            let parse = |text: &str| {
                Planned::parse(name, text, &path)
                    .map_err(|defect| Failure::new(Code::Conflict, defect.to_string()))
            };
            let mut wanted = parse(&before)?;
            wanted.text.paused = self.paused;
            wanted.spec.paused = self.paused;
            let text = with_pause(&before, self.paused);
            if parse(&text)? != wanted {
                return Err(Failure::new(
                    Code::Conflict,
                    format!("the pause of {} cannot be changed", path.display()),
                )
                .hint("write `paused = true` or `paused = false` into the file"));
            }
            // A pause does not change the tasks, so their creator stays the same even if the file's owner changes.
            let creator = wanted.clone().saved_in(file.author).spec.creator_uid;
            let paused = PlannedText { text, planned: wanted };
            save(&service, name, &saved_text(name, paused, &path, creator)?, true)
        })
        .await?
    }
}

impl Command for PauseSchedule {
    fn show(reply: &Saved, screen: &mut Screen) {
        let Saved { name, next, paused, .. } = reply;
        screen.line(match next {
            _ if *paused => format!("Paused {name}"),
            Some(at) => format!("Resumed {name}  next tick {}", timestamp::local(*at)),
            None => format!("Resumed {name}  there is no further tick"),
        });
    }
}
