//! `spend`: shows usage by mission, tenant, account, profile or day.

use kernel::{Consumed, Spend as Row, SpendBy, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::{parse, usage_text};
use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Cell, Screen};
use base::time::since::Since;

/// Show usage by mission, tenant, account, profile or day
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Requests and bytes are those of proxies; tokens and cost are what agents report, also of
runs that go on. A day is a calendar day of the host, and counts whole.

Examples:
  supervisor spend
  supervisor spend --by day --since 7d
  supervisor spend --by account --tenant acme --json")]
pub struct Spend {
    /// Group the usage by this [default: mission]
    #[arg(long, value_name = "WHAT", value_parser = parse::word::<SpendBy>(SpendBy::ALL.iter().map(|by| by.as_str())))]
    pub by: Option<SpendBy>,
    /// Only days from this one on: 7d, '2026-11-23'
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,
    /// Only what this tenant has used
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<Tenant>,
}

/// Use by group, with the sum of all groups.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ledger {
    by: SpendBy,
    /// First day included, such as `2026-11-23`; none for all days.
    since: Option<String>,
    rows: Vec<Row>,
    /// The sum of all rows.
    total: Consumed,
}

impl Verb for Spend {
    verb! { "spend": Operator, Read => Ledger }

    async fn run(self, call: Call) -> Result<Ledger, Failure> {
        let by = self.by.unwrap_or(SpendBy::Mission);
        let (since, actor) = (self.since.map(Since::timestamp), call.actor.clone());
        call.read(move |view| {
            let since = since.map(kernel::day_of);
            let rows = view.spend(by, since.as_deref(), self.tenant.as_ref(), &actor)?;
            let total = rows.iter().fold(Consumed::default(), |sum, row| sum.plus(row.consumed));
            Ok(Ledger { by, since, rows, total })
        })
        .await
    }
}

impl Command for Spend {
    fn show(reply: &Ledger, screen: &mut Screen) {
        if reply.rows.is_empty() {
            screen.line("Nothing was used.");
            return;
        }
        let rows = reply.rows.iter().map(|row| {
            let [requests, bytes, tokens, cost] = usage_text::consumed(&row.consumed).map(Cell::from);
            let title = row.title.clone().unwrap_or_default();
            [Cell::or_dash(row.name.clone()), cost, tokens, requests, bytes, Cell::from(title)]
        });
        let by = reply.by.as_str().to_uppercase();
        screen.table([by.as_str(), "COST", "TOKENS", "REQUESTS", "BYTES", ""], rows);
        screen.line(format!("Together: {}", kernel::Dollars(reply.total.cost_micros)));
    }
}
