//! `holds`: lists the holds, their authors or causes, and their ends.

use kernel::{Clock as _, Hold, HoldScope, SystemClock, Tenant, View, Within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Cell, Screen};
use base::time::timestamp;

/// List holds, with reason and end
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor holds
  supervisor holds --json")]
pub struct Holds {}

impl Verb for Holds {
    verb! { "holds": Operator, Read, members => Vec<kernel::Hold> }

    async fn run(self, call: Call) -> Result<Vec<kernel::Hold>, Failure> {
        let tenant = call.confined().cloned();
        let now = SystemClock.now();
        call.read(move |view| {
            let mut holds = view.holds()?;
            // An expired hold stays a row until the daemon removes it, but has no effect any more.
            holds.retain(|hold| !hold.is_over(now));
            if let Some(tenant) = &tenant {
                let mut own = Vec::new();
                for hold in holds {
                    if is_of_tenant(&hold, view, tenant)? {
                        own.push(hold);
                    }
                }
                holds = own;
            }
            Ok(holds)
        })
        .await
    }
}

/// Returns true if a hold is on a tenant, or on one of its tasks. A tenant does not see holds on others, or on all.
fn is_of_tenant(hold: &Hold, view: &View<'_>, tenant: &Tenant) -> Result<bool, kernel::Error> {
    match hold.scope {
        HoldScope::Tenant => Ok(hold.name == tenant.as_str()),
        HoldScope::Task | HoldScope::Mission => {
            let Ok(id) = hold.name.parse() else { return Ok(false) };
            Ok(view.task(&id)?.is_some_and(|task| task.tenant.as_ref() == Some(tenant)))
        }
        HoldScope::Profile | HoldScope::Account | HoldScope::Environment | HoldScope::Host => Ok(false),
    }
}

impl Command for Holds {
    fn show(reply: &Vec<kernel::Hold>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("Nothing is held.");
            return;
        }
        let now = SystemClock.now();
        let until = |hold: &kernel::Hold| {
            let until = timestamp::local(hold.until?);
            Some(if hold.is_probed(now) { format!("{until}, the next run tries") } else { until })
        };
        let rows = reply.iter().map(|hold| {
            [
                Cell::from(held(hold)),
                Cell::from(hold.kind.to_string()),
                Cell::or_dash(until(hold)),
                Cell::from(by(hold)),
                Cell::from(hold.reason.clone()),
            ]
        });
        screen.table(["HELD", "KIND", "UNTIL", "BY", "REASON"], rows);
    }
}

/// Returns the subject of a hold, and the tenant if it is limited to one.
fn held(hold: &kernel::Hold) -> String {
    match &hold.within {
        Within::Board => hold.on().to_string(),
        Within::Tenant(Some(tenant)) => format!("{} (tenant {tenant})", hold.on()),
        Within::Tenant(None) => format!("{} (tasks without a tenant)", hold.on()),
    }
}

/// Author of the hold, and the run that met the limit.
fn by(hold: &kernel::Hold) -> String {
    let run = hold.run_id.map(|run| format!(", run {run}")).unwrap_or_default();
    let task = hold.met_by_task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
    format!("{}{run}{task}", hold.placed_by)
}
