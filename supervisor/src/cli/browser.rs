//! The browser of the person at this terminal: whether there is one, and how it is started.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::environment;

/// A program that opens an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Browser {
    program: String,
    arguments: Vec<String>,
}

impl Browser {
    /// The browser that `BROWSER` names, else the one of the desktop. None where there is no display.
    pub(super) fn find() -> Option<Self> {
        Self::named(environment::text)
    }

    fn named(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // A list, of which the first is taken; its program may have arguments, as in `firefox --new-window %s`.
        let named = variable("BROWSER").and_then(|list| {
            let mut words = shlex::split(list.split(':').next()?)?.into_iter();
            Some(Browser { program: words.next()?, arguments: words.collect() })
        });
        if named.is_some() {
            return named;
        }
        let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| variable(name).is_some());
        has_display.then(|| Browser { program: "xdg-open".to_owned(), arguments: Vec::new() })
    }

    /// Opens an address, and does not wait for the browser to end.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn open(&self, url: &str) -> Result<(), String> {
        let started = Command::new(&self.program)
            .args(self.words(url))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at this terminal is not for the browser.
            .process_group(0)
            .spawn();
        started.map(drop).map_err(|e| format!("{} was not started: {e}", self.program))
    }

    fn words(&self, url: &str) -> Vec<String> {
        let mut words: Vec<String> = self.arguments.iter().map(|word| word.replace("%s", url)).collect();
        if words == self.arguments {
            words.push(url.to_owned());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_the_one_that_is_named_or_that_of_the_display() {
        let found = |pairs: &[(&str, &str)]| {
            Browser::named(|name| {
                pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(found(&[]), None, "neither a display nor a name");
        assert_eq!(found(&[("DISPLAY", ":0")]).unwrap().words("u"), ["u"]);
        let named = found(&[("BROWSER", "firefox --new-window %s:w3m"), ("DISPLAY", ":0")]).unwrap();
        assert_eq!(
            (named.program.as_str(), named.words("u")),
            ("firefox", vec!["--new-window".into(), "u".into()])
        );
        assert_eq!(found(&[("BROWSER", "helper.sh")]).unwrap().words("u#1"), ["u#1"]);
    }
}
