//! Passes messages to the agent from the run directory to the relay, and takes the receipts back.
//!
//! Each message is passed on once: the shim lives as long as the run, and counts. A receipt of the relay is accepted if
//! it is new for a message that was passed on. The output of the relay is bounded, and nothing waits for it.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use crate::rundir::{MessagesRecord, Received, RunDir};

/// Limit on a line of the relay, in bytes; a longer line is dropped.
const LINE_BYTES: usize = 256;

/// The shim's ends of the relay's two pipes, both non-blocking.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) messages: PipeWriter,
    pub(crate) receipts: PipeReader,
}

/// The messages of one run.
#[derive(Debug)]
pub(crate) struct Mailbox<'a> {
    run: &'a RunDir,
    messages: Option<PipeWriter>,
    receipts: Option<PipeReader>,
    /// The number of the next message.
    next: u32,
    /// True if the file of the next message may exist.
    is_due: bool,
    /// Rest of the previous message that is not in the pipe yet.
    rest: Vec<u8>,
    unparsed: Vec<u8>,
    record: MessagesRecord,
    /// True if the file of receipts lacks a part of the record.
    is_unwritten: bool,
}

impl<'a> Mailbox<'a> {
    pub(crate) fn new(run: &'a RunDir, channel: Channel) -> Self {
        Mailbox {
            run,
            messages: Some(channel.messages),
            receipts: Some(channel.receipts),
            next: 1,
            is_due: true,
            rest: Vec::new(),
            unparsed: Vec::new(),
            record: MessagesRecord::default(),
            is_unwritten: false,
        }
    }

    /// Makes the next call of [`Mailbox::attend`] look for a new message.
    pub(crate) fn notice_message(&mut self) {
        self.is_due = true;
    }

    /// Passes messages on as far as there is room, and takes receipts. Returns the new receipts.
    pub(crate) fn attend(&mut self) -> Vec<Received> {
        self.pass_on();
        let news = self.take_receipts();
        self.is_unwritten |= !news.is_empty();
        if self.is_unwritten {
            // On a full disk the daemon gets the receipts once there is space, or at the next call.
            self.is_unwritten = self.run.write_messages(&self.record).is_err();
        }
        news
    }

    /// Returns the descriptor to read from.
    pub(crate) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.receipts.as_ref().map(AsFd::as_fd)
    }

    /// Returns the descriptor to write to, while bytes wait for room in it.
    pub(crate) fn sink(&self) -> Option<BorrowedFd<'_>> {
        self.messages.as_ref().filter(|_| !self.rest.is_empty()).map(AsFd::as_fd)
    }

    fn pass_on(&mut self) {
        while let Some(pipe) = &mut self.messages {
            if self.rest.is_empty() {
                let message = if self.is_due { self.run.message(self.next).ok().flatten() } else { None };
                let Some(message) = message else {
                    self.is_due = false;
                    self.rest = Vec::new();
                    return;
                };
                self.rest = message;
                self.next += 1;
            }
            match pipe.write(&self.rest) {
                Ok(count) => drop(self.rest.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The relay has ended, and the run with it.
                Err(_) => {
                    self.messages = None;
                    self.rest = Vec::new();
                }
            }
        }
    }

    fn take_receipts(&mut self) -> Vec<Received> {
        let mut news = Vec::new();
        let mut buffer = [0; 1024];
        let Some(pipe) = &mut self.receipts else { return news };
        // One buffer at a time: a relay that writes faster waits, and nothing else does.
        match pipe.read(&mut buffer) {
            Ok(0) => self.receipts = None,
            Ok(count) => self.unparsed.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(_) => self.receipts = None,
        }
        while let Some(end) = self.unparsed.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unparsed.drain(..=end).collect();
            let Ok(received) = serde_json::from_slice::<Received>(&line) else { continue };
            let known = self.record.receipts.get(&received.number).copied();
            let is_ours = (1..self.next).contains(&received.number);
            if is_ours && received.receipt.follows(known) {
                self.record.receipts.insert(received.number, received.receipt);
                news.push(received);
            }
        }
        if self.unparsed.len() > LINE_BYTES {
            self.unparsed = Vec::new();
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::{AgentMessage, Receipt};

    struct Ends {
        _place: tempfile::TempDir,
        run: RunDir,
        messages: PipeReader,
        receipts: PipeWriter,
    }

    fn channel() -> (Ends, Channel) {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::open(place.path()).unwrap();
        let ((messages, to), (from, receipts)) = (io::pipe().unwrap(), io::pipe().unwrap());
        for fd in [messages.as_fd(), to.as_fd(), from.as_fd()] {
            rustix::io::ioctl_fionbio(fd, true).unwrap();
        }
        (Ends { _place: place, run, messages, receipts }, Channel { messages: to, receipts: from })
    }

    fn message(number: u32, text: &str) -> AgentMessage {
        AgentMessage { number, id: format!("id-{number}"), text: text.to_owned() }
    }

    fn read(pipe: &mut PipeReader) -> String {
        let mut text = Vec::new();
        // The pipe stays open, so the end of what is there is an error.
        pipe.read_to_end(&mut text).unwrap_err();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn each_message_is_passed_on_once_in_its_order_and_none_after_a_gap() {
        let (mut ends, channel) = channel();
        for number in [1, 3] {
            ends.run.post(&message(number, "x")).unwrap();
        }
        let run = ends.run.clone();
        let mut mailbox = Mailbox::new(&run, channel);
        mailbox.attend();
        assert_eq!(read(&mut ends.messages), "{\"number\":1,\"id\":\"id-1\",\"text\":\"x\"}\n");
        // A daemon that does not know how far an earlier one came writes it once more.
        ends.run.post(&message(1, "x")).unwrap();
        ends.run.post(&message(2, "y")).unwrap();
        mailbox.attend();
        assert_eq!(read(&mut ends.messages), "", "it looks when it is asked to");
        mailbox.notice_message();
        mailbox.attend();
        let text = read(&mut ends.messages);
        let numbers: Vec<u32> =
            text.lines().map(|line| serde_json::from_str::<AgentMessage>(line).unwrap().number).collect();
        assert_eq!(numbers, [2, 3]);
    }

    #[test]
    fn a_relay_that_does_not_read_keeps_nobody_waiting_and_gets_the_rest_later() {
        let (mut ends, channel) = channel();
        let text = "x".repeat(200_000);
        ends.run.post(&message(1, &text)).unwrap();
        let run = ends.run.clone();
        let mut mailbox = Mailbox::new(&run, channel);
        let mut got = String::new();
        mailbox.attend();
        assert!(mailbox.sink().is_some(), "it waits for room");
        while mailbox.sink().is_some() {
            got.push_str(&read(&mut ends.messages));
            mailbox.attend();
        }
        got.push_str(&read(&mut ends.messages));
        assert_eq!(serde_json::from_str::<AgentMessage>(&got).unwrap().text, text);
    }

    #[test]
    fn what_became_of_a_message_is_recorded_and_nothing_else_is_believed() {
        let (mut ends, channel) = channel();
        ends.run.post(&message(1, "x")).unwrap();
        let run = ends.run.clone();
        let mut mailbox = Mailbox::new(&run, channel);
        mailbox.attend();
        assert_eq!(ends.run.messages().unwrap(), None);
        let lines = [
            r#"{"number":2,"receipt":"confirmed"}"#,
            r#"{"number":0,"receipt":"confirmed"}"#,
            "nonsense",
            r#"{"number":1,"receipt":"written"}"#,
            r#"{"number":1,"receipt":"confirmed"}"#,
            r#"{"number":1,"receipt":"unread"}"#,
        ];
        writeln!(ends.receipts, "{}", lines.join("\n")).unwrap();
        let news = mailbox.attend();
        assert_eq!(news.len(), 2, "{news:?}");
        let record = ends.run.messages().unwrap().unwrap();
        assert_eq!(record.receipts.into_iter().collect::<Vec<_>>(), [(1, Receipt::Confirmed)]);
        ends.receipts.write_all(&vec![b'x'; 60_000]).unwrap();
        for _ in 0..60 {
            mailbox.attend();
            assert!(mailbox.unparsed.len() <= LINE_BYTES);
        }
    }
}
