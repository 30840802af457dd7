//! `attach-get`: returns the path of an attached file, which the command line then copies.

use std::path::PathBuf;

use kernel::AttachmentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::{StoredAttachment, place_of};
use api::command::Command;
use api::{Call, Verb, verb};
use base::exit::Code;
use base::failure::Failure;
use base::terminal::{Screen, printable};

/// Copy an attached file out of the board; also `attachments get`
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
A file that exists is not replaced.

Examples:
  supervisor attachments t_0123abcd      (the ids)
  supervisor attach-get 12
  supervisor attachments get 12 --output - | less")]
pub struct AttachGet {
    /// The attachment
    #[arg(value_name = "ATTACHMENT")]
    pub attachment_id: AttachmentId,
    /// The file to write, `-` for standard output [default: its name, in the current directory]
    #[arg(long, short, value_name = "FILE")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
}

impl Verb for AttachGet {
    verb! { "attach-get": Operator, Read => StoredAttachment }

    async fn run(self, call: Call) -> Result<StoredAttachment, Failure> {
        let id = self.attachment_id;
        let file = call.read(move |view| view.attachment(id)).await?;
        let file = file.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("no such attachment: {id}"))
                .hint("see `supervisor attachments <task>`")
        })?;
        let place = place_of(&call)?;
        Ok(StoredAttachment::from_file(file, &place))
    }
}

impl Command for AttachGet {
    fn show(reply: &StoredAttachment, screen: &mut Screen) {
        screen.line(format!("{} ({} bytes)", printable(&reply.file.filename), reply.file.size));
    }
}
