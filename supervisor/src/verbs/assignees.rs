//! `assignees`: who there is to do the work.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::command::Command;
use crate::failure::Failure;
use crate::terminal::Screen;

/// List the possible assignees and their tasks
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor assignees
  supervisor assignees --json")]
pub(crate) struct Assignees {}

/// One name.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AssigneeLine {
    /// The name.
    pub(crate) name: String,
    /// Whether a lane or profile of this name exists here.
    pub(crate) on_disk: bool,
    /// Its tasks by status.
    pub(crate) counts: BTreeMap<String, i64>,
}

impl Verb for Assignees {
    const NAME: &'static str = "assignees";
    const AUDIENCE: Audience = Audience::Worker;
    const EFFECT: Effect = Effect::Read;
    type Reply = Vec<AssigneeLine>;

    async fn run(self, call: Call) -> Result<Vec<AssigneeLine>, Failure> {
        let lanes = call.service.lanes();
        let worker = call.actor.kind == kernel::ActorKind::Worker;
        let loads = call.read(|view| view.assignees()).await?;
        let mut named: BTreeMap<String, AssigneeLine> = lanes
            .names()
            .into_iter()
            .map(|name| {
                (
                    name.to_owned(),
                    AssigneeLine { name: name.to_owned(), on_disk: true, counts: BTreeMap::new() },
                )
            })
            .collect();
        // A worker sees who there is; how much each has to do belongs to all tenants together.
        for known in loads.into_iter().filter(|_| !worker) {
            let line = named.entry(known.name.clone()).or_insert_with(|| AssigneeLine {
                name: known.name,
                on_disk: false,
                counts: BTreeMap::new(),
            });
            line.counts = known.counts;
        }
        Ok(named.into_values().collect())
    }
}

impl Command for Assignees {
    fn show(reply: &Vec<AssigneeLine>, screen: &mut Screen) {
        let rows: Vec<[String; 3]> = reply
            .iter()
            .map(|line| {
                let counts: Vec<String> =
                    line.counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
                let here = if line.on_disk { "yes" } else { "no" };
                [line.name.clone(), here.to_owned(), counts.join(", ")]
            })
            .collect();
        screen.table(["NAME", "RUNS HERE", "TASKS"], rows);
    }
}
