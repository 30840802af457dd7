//! `schedules`: lists the schedules and their ticks. `supervisor schedules` sends it.

mod line;
mod pause;
mod remove;
mod run;
mod save;
mod screen;

use kernel::ScheduleName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::line::ScheduleLine;
pub use self::pause::PauseSchedule;
pub use self::remove::RemoveSchedule;
pub use self::run::RunSchedule;
pub use self::save::SaveSchedule;
pub use self::screen::show_one;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::Screen;
use service::Service;
use setup::automation::schedules::Planned;
use setup::config::definitions::Lookup;

/// List the schedules, with their next ticks and the outcome of the latest
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor schedules list
  supervisor schedules list --json")]
pub struct ListSchedules {
    /// Only this one, with its latest ticks and the next ones.
    #[arg(skip)]
    pub name: Option<ScheduleName>,
}

impl Verb for ListSchedules {
    verb! { "schedules": Operator, Read, on(None), tool(Operator, "") => Vec<ScheduleLine> }

    async fn run(self, call: Call) -> Result<Vec<ScheduleLine>, Failure> {
        let service = call.service.clone();
        blocking("the schedules were not read", move || list(&service, self.name.as_ref())).await?
    }
}

impl Command for ListSchedules {
    fn show(reply: &Vec<ScheduleLine>, screen: &mut Screen) {
        screen::show(reply, screen);
    }
}

fn list(service: &Service, only: Option<&ScheduleName>) -> Result<Vec<ScheduleLine>, Failure> {
    let schedules = service.schedules();
    let asked = |name: &&str| only.is_none_or(|only| only.as_str() == *name);
    let line = |name: &str| match schedules.find(name) {
        Lookup::Usable(planned) => Some(ScheduleLine::from_planned(service, name, planned, only.is_some())),
        Lookup::Disabled(defect) => Some(ScheduleLine::defective(name, defect)),
        Lookup::Absent => None,
    };
    let lines: Vec<ScheduleLine> = schedules.names().filter(asked).filter_map(line).collect();
    match only {
        Some(name) if lines.is_empty() => Err(unknown(service, name)),
        _ => Ok(lines),
    }
}

/// Returns a schedule that can be used.
fn usable(service: &Service, name: &ScheduleName) -> Result<Planned, Failure> {
    match service.schedules().find(name.as_str()) {
        Lookup::Usable(planned) => Ok(planned.clone()),
        Lookup::Disabled(defect) => {
            Err(Failure::new(Code::Conflict, defect.to_string()).hint("correct its file first"))
        }
        Lookup::Absent => Err(unknown(service, name)),
    }
}

fn unknown(service: &Service, name: &ScheduleName) -> Failure {
    let failure = Failure::new(Code::NotFound, format!("there is no schedule `{name}`"));
    let schedules = service.schedules();
    let names = schedules.names().map(str::to_owned).collect();
    match setup::roster::nearest(name.as_str(), names) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`supervisor schedules list` lists them"),
    }
}
