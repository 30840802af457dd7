//! Writes log events to systemd's journal: a message that is readable without the fields, and each field by itself.
//!
//! Protocol: <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>, one datagram for each entry.
//!
//! `tracing-journald` writes the name of an event as the message, so `journalctl` without `-o verbose` shows no task.
//! A journal that is behind is waited for only briefly: the board has the facts.

use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

pub const SOCKET: &str = "/run/systemd/journal/socket";
/// Field of a tracing event that holds the event's name.
const NAME: &str = "message";
/// Longest wait for a journal that is behind; then the entry is dropped.
const WAIT: Duration = Duration::from_millis(100);
/// Limit on the value of a field, in bytes. A datagram takes about 200 KiB, and no event has ten fields.
const LONGEST: usize = 16 * 1024;

/// Writes events to the journal.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
}

/// Entry under construction.
#[derive(Debug)]
struct JournalEntry {
    name: String,
    /// Fields with their values, formatted for a person.
    logged: String,
    bytes: Vec<u8>,
}

impl Journal {
    /// Connects to the journal at a socket path.
    ///
    /// # Errors
    /// No process listens at the path.
    pub fn at(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        socket.set_write_timeout(Some(WAIT))?;
        Ok(Journal { socket })
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = JournalEntry { name: String::new(), logged: String::new(), bytes: Vec::new() };
        event.record(&mut entry);
        let metadata = event.metadata();
        entry.put("PRIORITY", priority(*metadata.level()));
        entry.put("SYSLOG_IDENTIFIER", "supervisor");
        entry.put("TARGET", metadata.target());
        let (message, name) = (format!("{}{}", entry.name, entry.logged), std::mem::take(&mut entry.name));
        entry.put("SUPERVISOR_EVENT", &name);
        entry.put("MESSAGE", &message);
        // An entry that the journal does not take is dropped: the log must not stop the work, and the board records
        // the events.
        drop(self.socket.send(&entry.bytes));
    }
}

/// Returns the priority of a level by `syslog(3)`.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        _ => "7",
    }
}

impl JournalEntry {
    /// Appends a field in the journal's format.
    fn put(&mut self, name: &str, value: &str) {
        let value = &value.as_bytes()[..value.floor_char_boundary(LONGEST)];
        self.bytes.extend_from_slice(name.as_bytes());
        if value.contains(&b'\n') {
            // A value with a newline is sent in the binary form: name, newline, length as 64 bits little-endian,
            // value.
            self.bytes.push(b'\n');
            self.bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            self.bytes.push(b'=');
        }
        self.bytes.extend_from_slice(value);
        self.bytes.push(b'\n');
    }

    fn take(&mut self, field: &Field, value: &str) {
        if field.name() == NAME {
            value.clone_into(&mut self.name);
            return;
        }
        // The journal allows capitals, digits and `_` in field names.
        let name: String = field
            .name()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        self.put(&format!("SUPERVISOR_{name}"), value);
        let is_plain = !value.is_empty() && !value.contains(' ') && value.escape_debug().eq(value.chars());
        let logged = if is_plain { value.to_owned() } else { format!("{value:?}") };
        self.logged.extend([" ", field.name(), "=", &logged]);
    }
}

impl Visit for JournalEntry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Returns the entries that the journal gets for events in `act`.
    fn entries(act: impl FnOnce()) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        journal.set_nonblocking(true).unwrap();
        let log = tracing_subscriber::registry().with(Journal::at(&path).unwrap());
        tracing::subscriber::with_default(log, act);
        let mut buffer = vec![0; 1 << 18];
        let next = || {
            journal
                .recv(&mut buffer)
                .ok()
                .map(|length| String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_message_is_read_without_its_fields_and_each_field_is_found_by_itself() {
        let logged = entries(
            || tracing::warn!(task = %"default/t_1", run = 7_i64, error = %"no space left", "stop_not_delivered"),
        );
        let [entry] = logged.as_slice() else { panic!("{logged:?}") };
        let lines: Vec<&str> = entry.lines().collect();
        for line in [
            "SUPERVISOR_TASK=default/t_1",
            "SUPERVISOR_RUN=7",
            "SUPERVISOR_ERROR=no space left",
            "PRIORITY=4",
            "SYSLOG_IDENTIFIER=supervisor",
            "SUPERVISOR_EVENT=stop_not_delivered",
            "MESSAGE=stop_not_delivered task=default/t_1 run=7 error=\"no space left\"",
        ] {
            assert!(lines.contains(&line), "{line}: {lines:#?}");
        }
    }

    #[test]
    fn a_value_of_several_lines_adds_no_field_and_one_that_is_too_long_is_cut() {
        let long = "ä".repeat(LONGEST);
        let logged = entries(|| tracing::info!(why = %"a\nPRIORITY=0\nb", long = %long, "odd"));
        let [entry] = logged.as_slice() else { panic!("{} entries", logged.len()) };
        let start = entry.find("SUPERVISOR_WHY\n").unwrap();
        let length = &entry.as_bytes()[start + "SUPERVISOR_WHY\n".len()..][..8];
        assert_eq!(u64::from_le_bytes(length.try_into().unwrap()), 14);
        assert!(entry.contains("MESSAGE=odd why=\"a\\nPRIORITY=0\\nb\""));
        assert!(entry.len() < 3 * LONGEST + 1024, "{}", entry.len());
    }
}
