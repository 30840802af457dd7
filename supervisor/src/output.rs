//! What a command writes: replies to standard output, refusals, warnings and the log to standard error.

use std::path::Path;

use crate::command::Command;
use crate::environment;
use crate::failure::{Failure, Problem};
use crate::given;
use crate::journal::{Journal, SOCKET};
use crate::terminal::{self, Colour, Ink, LogWriter, Screen, complain, print, printable_lines};

/// How replies and refusals are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    colour: Colour,
}

impl Output {
    /// Output as the global flags ask for it.
    pub(crate) fn new(json: bool, colour: Colour) -> Self {
        Output { json, colour }
    }

    /// A screen for standard output.
    pub(crate) fn screen(self) -> Screen {
        Screen::stdout(self.colour)
    }

    /// Whether JSON was asked for.
    pub(crate) fn json(self) -> bool {
        self.json
    }

    /// Writes a refusal: its JSON to standard output where JSON was asked for, and words to standard error,
    /// with what to do next.
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
        tell(Ink::Cyan, "hint:", &given::repeated(hint));
    }

    /// Writes warnings to standard error, where they do not mix with what a script reads.
    pub(crate) fn warn(self, warnings: &[String]) {
        let screen = Screen::stderr(self.colour);
        for warning in warnings {
            let label = screen.paint(Ink::Yellow, "warning:");
            complain(&format!("{label} {}", printable_lines(&given::repeated(warning))));
        }
    }

    /// Prints a reply as JSON or as text, and returns the exit code that it stands for.
    pub(crate) fn reply<V: Command>(self, reply: &V::Reply) -> Result<u8, Failure> {
        if self.json {
            self.value(reply)?;
        } else {
            let mut screen = self.screen();
            V::show(reply, &mut screen);
            self.text(&screen.into_text())?;
            self.warn(V::warnings(reply));
        }
        Ok(V::verdict(reply))
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn value<T: serde::Serialize>(self, value: &T) -> Result<(), Failure> {
        let text = terminal::json(value)
            .map_err(|e| Failure::failed(format!("the reply cannot be written: {e}")))?;
        self.text(&format!("{text}\n"))
    }

    /// Prints text as it is.
    #[expect(clippy::unused_self, reason = "text is printed through an Output alone")]
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        print(text).map_err(|e| Failure::failed(format!("standard output cannot be written: {e}")))
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// To the journal where standard error leads there, else as text
    #[default]
    Auto,
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
    /// Entries of systemd's journal, with a field for each field of an event
    Journal,
}

/// Logs from a level on, and of the protocol of tools what failed: it tells all that clients send; `RUST_LOG` chooses otherwise.
/// A journal that cannot be reached is replaced by text.
pub(crate) fn start_log(output: Output, level: &str, format: LogFormat) {
    use std::io::IsTerminal as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let asked = environment::text("RUST_LOG");
    let filter = asked.and_then(|asked| tracing_subscriber::EnvFilter::try_new(asked).ok());
    let filter = filter.unwrap_or_else(|| tracing_subscriber::EnvFilter::new(format!("{level},rmcp=error")));
    let to_journal = match format {
        LogFormat::Journal => true,
        LogFormat::Auto => leads_to_the_journal(),
        LogFormat::Text | LogFormat::Json => false,
    };
    let journal = to_journal.then(|| Journal::at(Path::new(SOCKET))).and_then(Result::ok);
    // A second call in one process (a pass inside another) keeps the first log.
    if let Some(journal) = journal {
        drop(tracing_subscriber::registry().with(filter).with(journal).try_init());
        return;
    }
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| LogWriter).with_target(false);
    if format == LogFormat::Json {
        drop(log.json().flatten_event(true).try_init());
        return;
    }
    let colour = output.colour == Colour::Always
        || (output.colour == Colour::Auto
            && std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
    drop(log.with_ansi(colour).try_init());
}

/// Whether standard error is the stream to the journal that systemd has made for this process (`systemd.exec(5)`, `JOURNAL_STREAM`).
fn leads_to_the_journal() -> bool {
    let Some(stream) = environment::text("JOURNAL_STREAM") else { return false };
    let Ok(own) = rustix::fs::fstat(std::io::stderr()) else { return false };
    stream == format!("{}:{}", own.st_dev, own.st_ino)
}
