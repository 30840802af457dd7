//! `gc`: removes files and rows that nothing needs any more, and reports the others with the reason why they stay.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::{Clock as _, SystemClock, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::views::usage_text::bytes_brief;
use api::command::Command;
use api::{Call, Verb, blocking, verb};
use base::failure::Failure;
use base::terminal::{Ink, Screen};
use daemon::REPLY_AGE;
use daemon::gc::{Ages, Collection, Cursor, Item, Sweep};

/// Time for which one call works. Its reply has a cursor from which the client's next call goes on.
const SLICE: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_hours(24);

/// Remove leftovers of archived tasks and ended runs
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
gc removes scratch workspaces of archived tasks, their worktrees if nothing would be
lost, old logs, old usage records, and the remains of interrupted removals. It
keeps and reports what is in use, dirty, unmerged or not created by this program.

Events are kept unless --event-retention-days is given: older ones are folded into
a snapshot from which `doctor --replay` starts.

Examples:
  supervisor gc --dry-run
  supervisor gc --log-retention-days 7
  supervisor gc --event-retention-days 90 --json")]
pub struct Gc {
    /// Print what would be removed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Fold events older than this [default: keep all]
    #[arg(long, value_name = "DAYS")]
    pub(crate) event_retention_days: Option<u32>,
    /// Remove logs of runs that ended longer ago than this
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    #[serde(default = "month")]
    pub(crate) log_retention_days: u32,
    /// Remove usage older than this from the ledger of `spend`
    #[arg(long, value_name = "DAYS", default_value_t = 400)]
    #[serde(default = "year")]
    pub(crate) spend_retention_days: u32,
    /// Cursor in the reply to the call before
    #[arg(skip)]
    pub cursor: Option<String>,
}

fn month() -> u32 {
    30
}

/// Returns 400 days: a year, and the month in which its costs are settled.
fn year() -> u32 {
    400
}

/// Items that were removed (or would be, in a dry run), and items that stay, with the reasons.
#[derive(Debug, Serialize, Deserialize)]
pub struct Collected {
    pub dry_run: bool,
    pub removed: Vec<Item>,
    pub kept: Vec<Item>,
    pub(crate) freed_bytes: u64,
    /// Value of `cursor` for the next call; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Collected {
    /// Adds the result of the next call.
    pub fn add(&mut self, more: Collected) {
        for item in more.removed {
            // Rows removed by several calls are counted as one item.
            match self.removed.last_mut().filter(|last| last.kind == item.kind && item.kind.is_rows()) {
                Some(last) => last.grow(&item),
                None => self.removed.push(item),
            }
        }
        self.kept.extend(more.kept);
        self.freed_bytes += more.freed_bytes;
        self.cursor = more.cursor;
    }
}

impl Verb for Gc {
    verb! { "gc": Operator, Write => Collected }

    fn answered_within(&self) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(self, call: Call) -> Result<Collected, Failure> {
        let from: Cursor = self.cursor.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let now = SystemClock.now();
        let days = |days: u32| now.before(DAY.saturating_mul(days)).max(Timestamp::from_secs(0));
        let collection = Collection {
            service: Arc::clone(&call.service),
            board: Arc::clone(call.board()?),
            sweep: if self.dry_run { Sweep::Look } else { Sweep::Remove },
            ages: Ages {
                logs: days(self.log_retention_days),
                replies: now.before(REPLY_AGE),
                ledger: kernel::day_of(days(self.spend_retention_days)),
                events: self.event_retention_days.map(days),
            },
            until: Instant::now() + SLICE,
        };
        let batch = blocking("the collection did not finish", move || collection.go_on(from)).await??;
        let (removed, kept): (Vec<Item>, Vec<Item>) =
            batch.items.into_iter().partition(|item| item.why.is_none());
        Ok(Collected {
            dry_run: self.dry_run,
            freed_bytes: removed.iter().map(|item| item.bytes).sum(),
            removed,
            kept,
            cursor: batch.next.map(|next| next.to_string()),
        })
    }
}

impl Command for Gc {
    fn show(reply: &Collected, screen: &mut Screen) {
        if !reply.removed.is_empty() {
            let what = if reply.dry_run { "WOULD REMOVE" } else { "REMOVED" };
            let rows = reply
                .removed
                .iter()
                .map(|item| [item.kind.name().to_owned(), bytes_brief(item.bytes), item.path.clone()]);
            screen.table([what, "SIZE", ""], rows);
        }
        if !reply.kept.is_empty() {
            screen.heading("Kept");
            for item in &reply.kept {
                let why = item.why.as_deref().unwrap_or_default();
                screen.hanging(&format!("  {} {}: ", item.kind.name(), item.path), why);
            }
        }
        let size = screen.paint(Ink::Bold, &bytes_brief(reply.freed_bytes));
        match (reply.removed.is_empty(), reply.dry_run) {
            (true, _) => screen.line("Nothing to remove."),
            (false, true) => screen.line(format!("{size} would be freed; nothing was changed.")),
            (false, false) => screen.line(format!("{size} freed.")),
        }
    }
}
