//! `attach`: attaches a file to a task. The command line reads the file with the caller's own rights and sends its
//! bytes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Bytes;
use kernel::{Counted, NewAttachment, Sealed, TaskId, Tenant};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::read;
use super::list::{self as attachments, StoredAttachment};
use crate::views::parse;
use api::command::{Command, ToolProcess};
use api::{Call, Verb, VerbRequest, verb};
use base::failure::Failure;
use base::invocation::Invocation;
use base::terminal::{Screen, printable};

/// Attach a file to a task, or follow its agent
#[derive(Debug, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[command(after_help = "\
The file is copied, up to 25 MiB. The task's worker reads the copy at the path named
in its context.

With a task alone, what its agent writes is shown as it happens, over all attempts,
until the task waits for somebody. In a terminal, a line that is typed is sent to the
agent as by `steer`. Where its lane has a `terminal`, that is shown, and each key goes
to it; Ctrl-] detaches. With --json, an object a line: {\"run_id\": …, \"line\": \"…\"}, with
what the agent wrote as it wrote it, without empty lines and the supervisor's own.

Examples:
  supervisor attach t_0123abcd spec.pdf --content-type application/pdf
  supervisor attach t_0123abcd /tmp/x1 --name 'error log.txt'
  supervisor attach report.md   (inside a run: to the run's own task)
  supervisor attach t_0123abcd  (shows what its agent does)")]
pub struct Attach {
    /// The task, then the file; inside a run the task may be left out
    #[arg(value_name = "TASK/FILE", required = true, num_args = 1..=2)]
    #[serde(skip)]
    pub words: Vec<OsString>,
    /// The task; inside a run, the run's own task if none is named
    #[arg(skip)]
    pub task_id: Option<TaskId>,
    /// The name of the attachment [default: the name of the file]
    #[arg(long = "name", value_name = "NAME")]
    pub filename: Option<String>,
    /// The media type, such as text/csv
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// The author [default: the caller]
    #[arg(long, value_name = "NAME")]
    pub author: Option<String>,
    /// The text of the file
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// The bytes of the file in base64, where it is not text
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    content_base64: Option<String>,
    /// The path of the file; `supervisor mcp` reads it with its own rights, the daemon reads none
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[arg(skip)]
    #[serde(skip)]
    bytes: Bytes,
    #[arg(skip)]
    #[serde(skip)]
    sealed: Option<Sealed>,
}

impl Attach {
    /// Returns the task if it is the only argument: then the caller attaches no file but follows the task's agent.
    pub fn task_alone(&self, here: &Invocation) -> Option<TaskId> {
        match self.words.as_slice() {
            [word] if here.worker().is_none() => word.to_str()?.parse().ok(),
            _ => None,
        }
    }

    /// Checks that the caller may attach the file, before its bytes are received.
    pub async fn permit(&self, call: &Call) -> Result<(), Failure> {
        let (id, name, actor) = (parse::named(self.task_id.clone())?, self.named()?, call.actor.clone());
        call.read(move |view| view.may_attach(&id, &name, &actor)).await
    }

    /// Returns the request with another task.
    #[must_use]
    pub fn to(self, task: TaskId) -> Self {
        Attach { task_id: Some(task), ..self }
    }

    /// Returns the request with its bytes, which are synced to disk.
    #[must_use]
    pub fn with(self, sealed: Sealed) -> Self {
        Attach { sealed: Some(sealed), ..self }
    }

    /// Reads a file into the request. The attachment gets the file's name unless the request names another.
    fn take_in(&mut self, path: &Path) -> Result<(), Failure> {
        if self.filename.is_none() {
            let name = path.file_name().and_then(|name| name.to_str());
            self.filename = Some(name.map(str::to_owned).ok_or_else(|| {
                Failure::usage(format!("the name of {} is not valid text", path.display()))
                    .hint("give one with --name")
            })?);
        }
        self.bytes = read(path)?.into();
        Ok(())
    }

    /// Stores the content given in the request itself, as text or base64.
    async fn written(&self, call: &Call) -> Result<Sealed, Failure> {
        let bytes = match (&self.content, &self.content_base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(text)) => BASE64_STANDARD.decode(text).map_err(|e| {
                Failure::usage(format!("content_base64 is not base64: {e}"))
                    .hint("give text as it is, in `content`")
            })?,
            (Some(_), Some(_)) => {
                return Err(Failure::usage("the file has two contents")
                    .hint("give one of `content` and `content_base64`"));
            }
            (None, None) => return Err(self.without_bytes()),
        };
        self.permit(call).await?;
        let blobs = call.board()?.blobs().clone();
        let sealed = tokio::task::spawn_blocking(move || {
            let mut draft = blobs.draft()?;
            draft.write(&bytes)?;
            draft.seal()
        });
        let sealed =
            sealed.await.map_err(|panic| Failure::failed(format!("the file was not stored: {panic}")))?;
        sealed.map_err(|error| kernel::Error::from(error).into())
    }

    fn without_bytes(&self) -> Failure {
        let (Some(path), Some(id)) = (&self.path, &self.task_id) else {
            return Failure::usage("the file has no content")
                .hint("give the text in `content`, or the bytes in `content_base64`");
        };
        Failure::usage(format!("the daemon does not read {} for its callers", path.display())).hint(format!(
            "give `content` or `content_base64`, or send the bytes as the body of POST /api/v1/tasks/{id}/attachments?filename=…"
        ))
    }

    fn named(&self) -> Result<String, Failure> {
        self.filename
            .clone()
            .ok_or_else(|| Failure::usage("the file has no name").hint("give filename, such as report.md"))
    }
}

impl Verb for Attach {
    verb! {
        "attach": Worker, Write,
        members,
        tool(Worker, "Give the text in `content`, or other bytes in `content_base64`, or the path of a file that you can read in `path`.")
        => StoredAttachment
    }

    fn http_request(&self) -> Result<VerbRequest, Failure> {
        if self.content.is_some() || self.content_base64.is_some() {
            return VerbRequest::from_verb(self);
        }
        let id = parse::named(self.task_id.clone())?;
        let mut path = format!("/api/v1/tasks/{id}/attachments");
        let mut mark = '?';
        for (name, value) in
            [("filename", &self.filename), ("content_type", &self.content_type), ("author", &self.author)]
        {
            if let Some(value) = value {
                path.push(mark);
                path.push_str(name);
                path.push('=');
                path.extend(escaped(value));
                mark = '&';
            }
        }
        let body = self.bytes.clone();
        Ok(VerbRequest { path, content_type: "application/octet-stream", body })
    }

    fn substance(&self) -> Result<Vec<u8>, Failure> {
        let sha256 = self.sealed.as_ref().map(|sealed| &sealed.digest);
        serde_json::to_vec(&(self, sha256))
            .map_err(|e| Failure::failed(format!("the request cannot be written: {e}")))
    }

    fn answered_within(&self) -> Duration {
        Duration::from_mins(10)
    }

    fn default_to_own(&mut self, own: &TaskId) {
        self.task_id.get_or_insert_with(|| own.clone());
    }

    fn confine(&mut self, _tenant: &Tenant) -> Result<(), Failure> {
        self.author = None;
        Ok(())
    }

    async fn run(mut self, call: Call) -> Result<StoredAttachment, Failure> {
        let (id, filename) = (parse::named(self.task_id.clone())?, self.named()?);
        let sealed = match self.sealed.take() {
            Some(sealed) => sealed,
            None => self.written(&call).await?,
        };
        let file = NewAttachment {
            filename,
            content_type: self.content_type,
            sha256: sealed.digest.clone(),
            size: sealed.size,
            author: self.author,
        };
        // `published` marks the bytes as in use until the commit: a concurrent sweep would otherwise delete them as
        // unreferenced.
        let published = Arc::new(OnceLock::new());
        let kept = Arc::clone(&published);
        let attached = call
            .write(move |board, actor| {
                let attached = board.attach(&id, &file, actor)?;
                // The bytes get their final name only after the board has accepted the attachment, so a refusal leaves
                // no file.
                drop(kept.set(sealed.publish()?));
                Ok(attached)
            })
            .await?;
        drop(published);
        Ok(StoredAttachment::from_file(attached, &attachments::place_of(&call)?))
    }
}

impl Command for Attach {
    fn localize(&mut self, here: &Invocation) -> Result<(), Failure> {
        let mut words = std::mem::take(&mut self.words);
        let path = PathBuf::from(words.pop().unwrap_or_default());
        let task = match words.pop() {
            None if here.worker().is_none() => {
                let word = path.display();
                return Err(Failure::usage(format!(
                    "`{word}` is not a task id, and a file needs a task before it"
                ))
                .hint(format!("for a file: supervisor attach t_0123abcd {word}")));
            }
            None => None,
            Some(word) => {
                let word = word.to_string_lossy();
                Some(word.parse().map_err(|e: kernel::ParseError| Failure::usage(e.to_string()))?)
            }
        };
        self.task_id = Some(parse::own_task(task, here)?);
        self.take_in(&path)
    }

    fn as_tool(&mut self, side: ToolProcess) -> Result<(), Failure> {
        match self.path.clone() {
            Some(path)
                if side == ToolProcess::Caller && self.content.is_none() && self.content_base64.is_none() =>
            {
                self.take_in(&path)
            }
            // The request is sent without the path. A caller that prepares it without reading the file must be refused.
            Some(_) if self.content.is_none() && self.content_base64.is_none() => Err(self.without_bytes()),
            Some(_) | None => Ok(()),
        }
    }

    fn show(reply: &StoredAttachment, screen: &mut Screen) {
        screen.line(format!(
            "Attached {} to {} as {} ({})",
            printable(&reply.file.filename),
            reply.file.task_id,
            reply.file.id,
            Counted(reply.file.size, "byte")
        ));
    }
}

/// Characters that a query has to escape (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Escapes text for use as a value in a query.
fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_kind_comes_through_a_query() {
        assert_eq!(escaped("a b&c=ä.md").to_string(), "a%20b%26c%3D%C3%A4.md");
    }
}
