//! `attach-rm`: removes a file from its task.

use kernel::{Attachment, AttachmentId, Sweep, SweepScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use api::command::Command;
use api::{Call, Verb, verb};
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// Remove a file from its task
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[command(after_help = "\
The stored content is removed too, unless another attachment shares it.

Examples:
  supervisor attachments t_0123abcd      (the ids)
  supervisor attach-rm 12")]
pub struct AttachRm {
    /// The attachment
    #[arg(value_name = "ATTACHMENT")]
    pub attachment_id: AttachmentId,
}

impl Verb for AttachRm {
    verb! { "attach-rm": Operator, Write, members => Attachment }

    async fn run(self, call: Call) -> Result<Attachment, Failure> {
        let id = self.attachment_id;
        let removed = call.write(move |board, actor| board.detach_file(id, actor)).await?;
        call.sweep_blobs(SweepScope::Only([removed.sha256.clone()].into()), Sweep::Remove).await?;
        Ok(removed)
    }
}

impl Command for AttachRm {
    fn show(reply: &Attachment, screen: &mut Screen) {
        screen.line(format!("Removed {} from {}", printable(&reply.filename), reply.task_id));
    }
}
