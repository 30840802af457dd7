//! Shows the progress of a demo: a live line on a terminal, plain lines elsewhere, nothing with `--json`.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use base::terminal::complain;

/// Progress of one demo, on standard error.
#[derive(Debug)]
pub(super) struct DemoProgress {
    since: Instant,
    form: ProgressForm,
}

#[derive(Debug)]
enum ProgressForm {
    Live(ProgressBar),
    Lines,
    Silent,
}

impl DemoProgress {
    /// Starts the clock, and chooses the form of the progress for this output and standard error.
    pub(super) fn new(output: Output) -> Self {
        use std::io::IsTerminal as _;
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let form = if output.json() {
            ProgressForm::Silent
        } else if std::io::stderr().is_terminal() && !dumb {
            let bar = ProgressBar::new_spinner();
            // The style has no colours, so it does not depend on the user's settings.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>3}  {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            ProgressForm::Live(bar)
        } else {
            ProgressForm::Lines
        };
        DemoProgress { since: Instant::now(), form }
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Shows the current step. Only a terminal shows it.
    pub(super) fn now(&self, text: impl Into<String>) {
        if let ProgressForm::Live(bar) = &self.form {
            bar.set_message(text.into());
        }
    }

    pub(super) fn done(&self, text: &str) {
        let line = format!("{:5.1} s  {text}", self.elapsed().as_secs_f64());
        match &self.form {
            ProgressForm::Live(bar) => bar.println(line),
            ProgressForm::Lines => complain(&line),
            ProgressForm::Silent => {}
        }
    }

    pub(super) fn finish(&self) {
        if let ProgressForm::Live(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}
