//! Output of a command: replies go to standard output; refusals, warnings and the log go to standard error.

use std::path::Path;

use tracing_subscriber::filter::{LevelFilter, Targets};

use api::command::{Command, Replies, Reply};
use base::cli_context;
use base::environment;
use base::failure::{Failure, Problem};
use base::journal::{Journal, SOCKET};
use base::json::Buffer;
use base::terminal::{self, Colour, Ink, LogWriter, Screen, complain, print, printable_lines};

/// Format of replies and refusals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    colour: Colour,
}

impl Output {
    /// Makes an output from the global flags.
    pub(crate) fn new(json: bool, colour: Colour) -> Self {
        Output { json, colour }
    }

    /// Returns a screen for standard output.
    pub(crate) fn screen(self) -> Screen {
        Screen::stdout(self.colour)
    }

    /// Returns true if the command line asks for JSON.
    pub(crate) fn json(self) -> bool {
        self.json
    }

    /// Writes a refusal and its next step to standard error, and in JSON mode a problem document to standard output.
    pub(crate) fn fail(self, failure: &Failure) {
        if self.json
            && let Ok(text) = terminal::json(&serde_json::json!({ "error": Problem::from(failure) }))
        {
            drop(print(&format!("{text}\n")));
        }
        let screen = Screen::stderr(self.colour);
        let tell = |ink, label, text: &str| {
            let label = screen.paint(ink, label);
            complain(&format!("{label} {}", printable_lines(text)));
        };
        tell(Ink::Red, "error:", &failure.message);
        let hint = failure.hint.as_deref().unwrap_or_else(|| failure.code.next_step());
        tell(Ink::Cyan, "hint:", &cli_context::repeated(hint));
    }

    /// Writes warnings to standard error, which keeps them out of the output that scripts read.
    pub(crate) fn warn(self, warnings: &[String]) {
        let screen = Screen::stderr(self.colour);
        for warning in warnings {
            let label = screen.paint(Ink::Yellow, "warning:");
            complain(&format!("{label} {}", printable_lines(&cli_context::repeated(warning))));
        }
    }

    /// Prints a reply as JSON, or as text with its warnings. Returns its exit code.
    pub(crate) fn reply<V: Command>(self, reply: &V::Reply) -> Result<u8, Failure> {
        self.reply_any(Replies::of::<V>(), reply)
    }

    /// Prints a reply of any verb.
    pub(crate) fn reply_any(self, replies: Replies, reply: &Reply) -> Result<u8, Failure> {
        if self.json {
            let mut buffer = Buffer::of(usize::MAX);
            let written = reply.write(&mut buffer).and_then(|()| buffer.into_text());
            self.line(written.map(terminal::json_of))?;
        } else {
            let mut screen = self.screen();
            (replies.show)(reply, &mut screen)?;
            self.text(&screen.into_text())?;
            self.warn((replies.warnings)(reply)?);
        }
        (replies.verdict)(reply)
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn value<T: serde::Serialize>(self, value: &T) -> Result<(), Failure> {
        self.line(terminal::json(value))
    }

    fn line(self, json: serde_json::Result<String>) -> Result<(), Failure> {
        let text = json.map_err(|e| Failure::failed(format!("the reply cannot be written: {e}")))?;
        self.text(&format!("{text}\n"))
    }

    /// Prints a text without changes.
    #[expect(clippy::unused_self, reason = "text is printed through an Output alone")]
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        print(text).map_err(|e| Failure::failed(format!("standard output cannot be written: {e}")))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// To the journal where standard error leads there, else as text
    #[default]
    Auto,
    /// Lines for people
    Text,
    /// A JSON object for each line
    Json,
    /// Entries of systemd's journal, with a field for each field of an event
    Journal,
}

/// Starts the log, with the events from `level` on; `RUST_LOG` replaces this filter. `rmcp` logs errors only, because
/// it would otherwise log every message of its clients. If the journal cannot be reached, the log is written as text.
pub(crate) fn start_log(output: Output, level: &str, format: LogFormat) {
    use std::io::IsTerminal as _;
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let to_journal = match format {
        LogFormat::Journal => true,
        LogFormat::Auto => leads_to_the_journal(),
        LogFormat::Text | LogFormat::Json => false,
    };
    let colour = output.colour == Colour::Always
        || (output.colour == Colour::Auto
            && std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
    let lines = tracing_subscriber::fmt::layer().with_writer(|| LogWriter).with_target(false);
    let log = match to_journal.then(|| Journal::at(Path::new(SOCKET))).and_then(Result::ok) {
        Some(journal) => journal.boxed(),
        None if format == LogFormat::Json => lines.json().flatten_event(true).boxed(),
        None => lines.with_ansi(colour).boxed(),
    };
    // After a second call in one process (a dispatch pass inside a command), the first log stays in use.
    drop(tracing_subscriber::registry().with(log).with(filter(level)).try_init());
}

/// Returns the events that are logged.
fn filter(level: &str) -> Targets {
    let asked = environment::text("RUST_LOG").and_then(|asked| asked.parse().ok());
    asked.unwrap_or_else(|| {
        let level = level.parse().unwrap_or(LevelFilter::INFO);
        Targets::new().with_default(level).with_target("rmcp", LevelFilter::ERROR)
    })
}

/// Returns true if standard error is the stream to the journal that systemd opened for this process
/// (`systemd.exec(5)`, `JOURNAL_STREAM`). The variable is inherited, so the device and the inode are compared.
fn leads_to_the_journal() -> bool {
    let Some(stream) = environment::text("JOURNAL_STREAM") else { return false };
    let Ok(stderr) = rustix::fs::fstat(std::io::stderr()) else { return false };
    stream == format!("{}:{}", stderr.st_dev, stderr.st_ino)
}
