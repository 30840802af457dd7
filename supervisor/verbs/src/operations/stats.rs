//! `stats`: counts tasks by status, and sums usage.

use kernel::{DayUse, Stats as BoardStats, Tenant, brief};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::usage_text;
use api::command::Command;
use api::{Call, Verb, confine_to, verb};
use base::cli_context;
use base::failure::Failure;
use base::terminal::Screen;

/// Show task counts by status and assignee, and usage
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Requests and bytes are those of proxies; tokens and cost are what agents report. A day is
a calendar day of the host.

Examples:
  supervisor stats
  supervisor stats --tenant acme --json")]
pub struct Stats {
    /// Only tasks of this tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<Tenant>,
}

impl Verb for Stats {
    verb! { "stats": Operator, Read, members => BoardStats }

    fn confine(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        confine_to(tenant, &mut self.tenant)
    }

    async fn run(self, call: Call) -> Result<BoardStats, Failure> {
        call.read(move |view| view.stats(self.tenant.as_ref())).await
    }
}

impl Command for Stats {
    fn show(reply: &BoardStats, screen: &mut Screen) {
        if reply.by_status.is_empty() {
            screen.line("No tasks.");
            return;
        }
        screen.table(
            ["STATUS", "TASKS"],
            reply.by_status.iter().map(|(status, n)| [status.to_string(), n.to_string()]),
        );
        let rows: Vec<[String; 3]> = reply
            .by_assignee
            .iter()
            .flat_map(|(name, counts)| {
                counts.iter().map(move |(status, n)| [name.clone(), status.to_string(), n.to_string()])
            })
            .collect();
        if !rows.is_empty() {
            screen.heading("By assignee");
            screen.table(["ASSIGNEE", "STATUS", "TASKS"], rows);
            if !reply.more.is_empty() {
                screen.line(cli_context::repeated("There are more: supervisor assignees lists all."));
            }
        }
        show_used("Used today", &reply.used_today, screen);
        show_used("Used in all", &reply.used, screen);
        if let Some(age) = reply.oldest_ready_age_seconds {
            let age = brief(std::time::Duration::from_secs(age.max(0).unsigned_abs()));
            screen.line(format!("The oldest ready task has waited {age}."));
        }
    }
}

fn show_used(heading: &str, used: &[DayUse], screen: &mut Screen) {
    if used.is_empty() {
        return;
    }
    screen.heading(heading);
    let rows = used.iter().map(|day| {
        let [requests, bytes, tokens, cost] = usage_text::consumed(&day.consumed);
        [day.payer.to_string(), requests, bytes, tokens, cost]
    });
    screen.table(["BY", "REQUESTS", "BYTES", "TOKENS", "COST"], rows);
}
