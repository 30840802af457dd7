//! The agent's standard input: the bytes that wait for room in it, and the progress of each message.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ChildStdin;

/// The input, while it is open.
#[derive(Debug)]
pub(super) struct Input {
    pipe: Option<ChildStdin>,
    /// True once the agent has closed its end.
    is_broken: bool,
    waiting: VecDeque<u8>,
    /// Number of bytes that were written into the pipe.
    written: u64,
    /// Number of bytes that were queued, written or not.
    sent_bytes: u64,
    /// End of each message, as a position in `sent_bytes`. Messages that are not in the pipe yet are the last ones.
    ends: VecDeque<(u32, u64)>,
    /// Number of these messages in the pipe.
    confirmed: usize,
    /// Answers to the agent that are not in the pipe as a whole: the end of each, as a position in `sent_bytes`, and
    /// its length.
    answers: VecDeque<(u64, usize)>,
    /// Sum of the lengths in `answers`.
    answering: usize,
}

impl Input {
    pub(super) fn new(pipe: Option<ChildStdin>) -> Self {
        Input {
            pipe,
            is_broken: false,
            waiting: VecDeque::new(),
            written: 0,
            sent_bytes: 0,
            ends: VecDeque::new(),
            confirmed: 0,
            answers: VecDeque::new(),
            answering: 0,
        }
    }

    /// Returns true if the input still takes bytes.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some() && !self.is_broken
    }

    /// Returns the number of bytes that wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of bytes of answers to the agent that wait for room.
    pub(super) fn answering(&self) -> usize {
        self.answering
    }

    /// Queues an answer to a request of the agent.
    pub(super) fn answer(&mut self, number: Option<u32>, bytes: Vec<u8>) {
        if self.is_open() {
            self.answering += bytes.len();
            self.answers.push_back((self.sent_bytes + bytes.len() as u64, bytes.len()));
        }
        self.queue(number, bytes);
    }

    /// Adds bytes; the bytes of a message carry its number. A closed input takes none.
    pub(super) fn queue(&mut self, number: Option<u32>, bytes: Vec<u8>) {
        self.sent_bytes += bytes.len() as u64;
        if self.is_open() {
            self.waiting.extend(bytes);
        }
        if let Some(number) = number {
            self.ends.push_back((number, self.sent_bytes));
        }
    }

    /// Writes as much as there is room for. Returns the messages that are in the pipe as a whole now.
    pub(super) fn write(&mut self) -> Vec<u32> {
        while let Some(pipe) = self.pipe.as_mut().filter(|_| !self.is_broken) {
            let (front, _) = self.waiting.as_slices();
            if front.is_empty() {
                break;
            }
            match pipe.write(front) {
                Ok(count) => {
                    self.waiting.drain(..count);
                    self.written += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The agent has closed its input, or has ended.
                Err(_) => {
                    self.is_broken = true;
                    self.drop_waiting();
                }
            }
        }
        while let Some((_, length)) = self.answers.pop_front_if(|(end, _)| *end <= self.written) {
            self.answering -= length;
        }
        let done: Vec<u32> = self
            .ends
            .iter()
            .skip(self.confirmed)
            .take_while(|(_, end)| *end <= self.written)
            .map(|(number, _)| *number)
            .collect();
        self.confirmed += done.len();
        done
    }

    /// Returns the descriptor to wait for, while bytes wait for room in it.
    pub(super) fn sink(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// Closes the input. Nothing more is sent.
    pub(super) fn close(&mut self) {
        self.pipe = None;
        self.drop_waiting();
    }

    fn drop_waiting(&mut self) {
        self.waiting.clear();
        self.answers.clear();
        self.answering = 0;
    }

    /// Returns the messages in the pipe that an ended agent has not read as a whole. A closed input counts as read,
    /// because its rest cannot be seen any more.
    pub(super) fn unread(&self) -> Vec<u32> {
        let Some(pipe) = &self.pipe else { return Vec::new() };
        // The pipe keeps unread bytes as long as its other end is open.
        let unread = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        let read = self.written.saturating_sub(unread);
        self.ends
            .iter()
            .take(self.confirmed)
            .filter(|(_, end)| *end > read)
            .map(|(number, _)| *number)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_an_agent_has_not_read_is_known_after_its_end() {
        let mut child =
            Command::new("/bin/sh").args(["-c", "read line; exit 0"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = Input::new(child.stdin.take());
        rustix::io::ioctl_fionbio(input.pipe.as_ref().unwrap(), true).unwrap();
        input.queue(None, b"prompt\n".to_vec());
        assert_eq!(input.write(), [0; 0]);
        child.wait().unwrap();
        for number in [1, 2] {
            input.queue(Some(number), b"x\n".to_vec());
        }
        // Its reader is gone, so nothing more goes in.
        assert_eq!(input.write(), [0; 0]);
        assert!(!input.is_open());

        let mut child = Command::new("/bin/sh")
            .args(["-c", "read a; read b; read c; kill -STOP $$"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = Input::new(child.stdin.take());
        rustix::io::ioctl_fionbio(input.pipe.as_ref().unwrap(), true).unwrap();
        for number in [1, 2, 3] {
            input.queue(Some(number), format!("{number}\n").into_bytes());
        }
        assert_eq!(input.write(), [1, 2, 3]);
        // A shell reads its lines byte by byte.
        while rustix::io::ioctl_fionread(input.pipe.as_ref().unwrap()).unwrap() > 0 {
            std::thread::yield_now();
        }
        input.queue(Some(4), vec![b'x'; 10]);
        input.queue(Some(5), vec![b'y'; 10]);
        assert_eq!(input.write(), [4, 5]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(input.unread(), [4, 5]);
    }
}
