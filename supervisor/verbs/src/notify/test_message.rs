//! `notify test`: a test message over a channel, and what came of each step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, printable};
use daemon::OwnerLink;
use delivery::notify::{Tested, test};

/// Send a test message over a channel
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(
    about = "Send a test message, and show the result of each step",
    after_help = "\
Exit code: 0 if the channel has taken the message, else 1.

Examples:
  supervisor notify test ops
  supervisor notify test ops --json"
)]
pub struct NotifyTest {
    /// The channel
    pub channel: String,
}

impl Verb for NotifyTest {
    verb! { "notify-test": Operator, Read, on(None) => Tested }

    async fn run(self, call: Call) -> Result<Tested, Failure> {
        refuse_tenant(&call)?;
        let calls =
            OwnerLink::from_service(&call.service).map(|daemon| daemon.plugins().clone()).unwrap_or_default();
        test(&call.service, &calls, &self.channel, call.board_name().clone()).await
    }
}

/// The channels belong to the root and not to a tenant.
fn refuse_tenant(call: &Call) -> Result<(), Failure> {
    if call.actor.tenant.is_none() {
        return Ok(());
    }
    Err(Failure::new(Code::NotPermitted, "the channels are not a tenant's to test"))
}

impl Command for NotifyTest {
    fn show(reply: &Tested, screen: &mut Screen) {
        for step in &reply.steps {
            let mark = if step.ok { "ok    " } else { "failed" };
            screen.line(format!("{mark}  {:<13}  {}", step.name, printable(&step.detail)));
        }
        let end = if reply.ok { "took" } else { "did not take" };
        screen.line(format!("The channel {} {end} the message.", reply.channel));
    }

    fn verdict(reply: &Tested) -> u8 {
        if reply.ok { 0 } else { Code::Failed.exit() }
    }
}
