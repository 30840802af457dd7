//! `holds`: what is held, by whom or by what, and until when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Audience, Call, Effect, Verb};
use crate::failure::Failure;
use crate::moment;
use crate::terminal::{Cell, Screen};

/// Show what is held, why and until when
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
Examples:
  supervisor holds
  supervisor holds --json")]
pub(crate) struct Holds {}

impl Verb for Holds {
    const NAME: &'static str = "holds";
    const AUDIENCE: Audience = Audience::Operator;
    const EFFECT: Effect = Effect::Read;
    type Reply = Vec<kernel::Hold>;

    async fn run(self, call: Call) -> Result<Vec<kernel::Hold>, Failure> {
        call.read(|view| view.holds()).await
    }

    fn show(reply: &Vec<kernel::Hold>, screen: &mut Screen) {
        if reply.is_empty() {
            screen.line("Nothing is held.");
            return;
        }
        let rows = reply.iter().map(|hold| {
            [
                Cell::from(hold.on().to_string()),
                Cell::from(hold.kind.to_string()),
                Cell::or_dash(hold.until.map(moment::local)),
                Cell::from(hold.placed_by.clone()),
                Cell::from(hold.reason.clone()),
            ]
        });
        screen.table(["HELD", "KIND", "UNTIL", "BY", "REASON"], rows);
    }
}
