//! How fast the whole path is: a real daemon on a temporary root, measured from outside. Prints one table.
//!
//! `cargo bench -p supervisor` measures everything; `cargo bench -p supervisor -- latency status` measures what is named.
//! Nothing here is a test: the figures depend on the host and on what else it does.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

mod batch;
mod chain;
mod clients;
mod command;
mod figures;
mod grown;
mod http;
mod idle;
mod latency;
mod reads;
mod root;
mod scale;
mod status;
mod worker;

use figures::Table;

/// A measure: its name for the command line, and what fills in its rows.
type Measure = (&'static str, fn(&mut Table) -> Result<()>);

const MEASURES: [Measure; 8] = [
    ("latency", latency::measure),
    ("chain", chain::measure),
    ("idle", idle::measure),
    ("clients", clients::measure),
    ("command", command::measure),
    ("batch", batch::measure),
    ("status", status::measure),
    ("scale", scale::measure),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(role) = words.first().and_then(|word| worker::Role::named(word)) {
        return role.play();
    }
    // Cargo passes `--bench`.
    let named: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let mut table = Table::default();
    for (name, measure) in MEASURES {
        let is_wanted = named.is_empty() || named.iter().any(|word| *word == name);
        if is_wanted && let Err(error) = measure(&mut table) {
            table.row(name, format!("not measured: {error:#}"), "");
        }
    }
    // A reader that has gone wants no table.
    write!(std::io::stdout(), "{table}").ok();
    ExitCode::SUCCESS
}
