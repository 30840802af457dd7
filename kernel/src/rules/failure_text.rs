//! Error texts for failed runs: the end of the process, and the most useful line of its output or of its agent's words.

use crate::model::outcome::Ending;

/// Longest line of a worker's output in an error, in characters.
const LINE: usize = 300;

/// Text for a worker that the kernel's out-of-memory killer ended.
pub(crate) const OUT_OF_MEMORY: &str =
    "the kernel ended it for lack of memory: it reached its limit, or the host had none left";

/// Returns the text for a worker that a signal ended.
pub(crate) fn by_signal(signal: i32, ending: &Ending) -> String {
    let core = if ending.core_dumped == Some(true) { " and dumped its core" } else { "" };
    format!("ended by signal {signal}{core}")
}

/// Appends the agent's own words to an error.
pub(crate) fn with_trouble(error: &str, ending: &Ending) -> String {
    match &ending.trouble {
        Some(trouble) => format!("{error}: {trouble}"),
        None => error.to_owned(),
    }
}

/// Appends the agent's own words to an error, else the last line of standard error.
pub(crate) fn with_tail(error: String, ending: &Ending) -> String {
    if ending.trouble.is_some() {
        return with_trouble(&error, ending);
    }
    match last_line(ending) {
        Some(line) => format!("{error}: {line}"),
        None => error,
    }
}

/// Returns the last line of standard error that begins with `error:`, else the last line. A program may print advice
/// after its error.
pub(crate) fn last_line(ending: &Ending) -> Option<String> {
    let tail = ending.stderr_tail.as_deref()?;
    let lines = || tail.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.starts_with("error:")).or_else(|| lines().next())?;
    Some(line.chars().take(LINE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::EndCause;

    fn wrote(tail: &str) -> Ending {
        Ending { stderr_tail: Some(tail.to_owned()), ..Ending::new(EndCause::Exited { code: 1 }) }
    }

    #[test]
    fn an_error_has_the_last_line_of_the_output_or_the_last_error_in_it() {
        let long = wrote(&format!("first\n{}\n  \n", "x".repeat(400)));
        assert_eq!(with_tail("exit code 1".to_owned(), &long), format!("exit code 1: {}", "x".repeat(300)));
        let hinted = wrote("error: first\nerror: unknown field `sumary`\nhint: its page describes it\n");
        let error = with_tail("exit code 1".to_owned(), &hinted);
        assert_eq!(error, "exit code 1: error: unknown field `sumary`", "a hint is no reason");
    }

    #[test]
    fn what_an_agent_said_goes_before_what_its_program_wrote() {
        let reported_ending = Ending { trouble: Some("no credit".to_owned()), ..wrote("broken pipe\n") };
        assert_eq!(with_tail("exit code 1".to_owned(), &reported_ending), "exit code 1: no credit");
    }

    #[test]
    fn a_signal_says_whether_it_dumped_the_core_where_that_is_known() {
        for (core_dumped, told) in [
            (None, "ended by signal 11"),
            (Some(false), "ended by signal 11"),
            (Some(true), "ended by signal 11 and dumped its core"),
        ] {
            let ending = Ending { core_dumped, ..Ending::new(EndCause::Signaled { signal: 11 }) };
            assert_eq!(by_signal(11, &ending), told);
        }
    }
}
