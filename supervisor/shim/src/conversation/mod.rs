//! The relay, which `confine` becomes if the agent takes messages while it works. The relay is the agent's parent, in
//! the sandbox and as the agent's user.
//!
//! It passes the agent's output on unchanged and parses it: it sends each message in the agent's form, reports the
//! receipt of each message to the shim, and ends the conversation when a turn has ended and no message waits. So a
//! conversation needs no daemon. The relay ends with the exit code or the signal of the agent.
//!
//! The relay never waits for the agent alone: all pipes to it are non-blocking.
//!
//! See decision 0106.

mod acp;
mod app_server;
#[cfg(test)]
mod fuzz_tests;
mod input;
mod json_rpc;
mod lines;
mod stream_json;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use self::acp::Acp;
use self::app_server::AppServer;
use self::input::Input;
use self::lines::Lines;
use self::stream_json::StreamJson;
use crate::rundir::{AgentMessage, Conversation, Form, Receipt, Received};
use crate::signals::RelaySignals;

/// Time after the end of a turn for which a message that the agent has not confirmed keeps the conversation open.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);
/// Time that a program has to end after its conversation before it gets TERM, and again between TERM and KILL.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
/// Size of a read of the agent's output, and of messages.
const READ_BYTES: usize = 16 * 1024;
/// Limit on the output that an ended agent leaves in its pipe: the largest pipe that an ordinary user can make.
const LAST_BYTES: usize = 1024 * 1024;
/// Limit on the bytes that wait for room in the agent's input. Beyond it, no further message is read.
const INPUT_BYTES: usize = 1024 * 1024;
/// Limit on the answers that wait for room in the agent's input, in bytes. Beyond it, the output is not read, because
/// each line may require another answer.
const ANSWER_BYTES: usize = 1024 * 1024;
/// Longest message, in bytes.
const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Protocol of a program.
trait Speech: std::fmt::Debug {
    /// Returns the first bytes to write.
    fn begin(&mut self, prompt: &str) -> Vec<u8>;
    /// Returns a message in the form of the program; none if it is sent later, when the program is ready.
    fn say(&mut self, message: &AgentMessage) -> Option<Vec<u8>>;
    /// Takes a line of the program.
    fn hear(&mut self, line: &[u8]) -> LineEffects;
    /// Returns true if a turn has ended, and no other has begun.
    fn is_idle(&self) -> bool;
    /// Returns true if the program has confirmed all messages.
    fn is_confirmed(&self) -> bool;
}

/// Effects of a line of the program.
#[derive(Debug, Default)]
struct LineEffects {
    /// Messages that the program confirms.
    confirmed: Vec<u32>,
    /// Messages that the program refuses.
    refused: Vec<u32>,
    /// Bytes to send now; the bytes of a message carry its number.
    say: Vec<(Option<u32>, Vec<u8>)>,
    /// Reason why there is no conversation.
    failed: Option<String>,
}

/// The relay's ends of the two pipes to its shim.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Messages.
    pub(crate) messages: File,
    /// New receipts of messages.
    pub(crate) receipts: File,
}

/// The relay of a run whose agent has been started.
#[derive(Debug)]
pub(crate) struct Relay {
    agent: Child,
    output: Option<ChildStdout>,
    input: Input,
    lines: Lines,
    messages: Option<File>,
    posted: Lines,
    receipts: File,
    log: File,
    speech: Box<dyn Speech>,
    signals: RelaySignals,
    /// Time since which the conversation could end.
    idle_since: Option<Instant>,
    has_failed: bool,
    leaving: Leaving,
}

/// Steps by which a program ends after its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// The conversation goes on, or the program ends by itself.
    No,
    /// The program may end by itself until it gets TERM.
    Asked(Instant),
    /// The program has got TERM, and may end until it is killed.
    Terminated(Instant),
    /// The program was killed.
    Killed,
}

impl Relay {
    /// Starts the agent. An error means that the command was not executed.
    pub(crate) fn start(
        command: &mut Command,
        conversation: &Conversation,
        cwd: &Path,
        ends: Ends,
    ) -> io::Result<Self> {
        // The handlers come before the agent, so that no signal is lost.
        let signals = RelaySignals::register()?;
        let log = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let mut agent =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let (input, output) = (agent.stdin.take(), agent.stdout.take());
        let pipes = input.iter().map(AsFd::as_fd).chain(output.iter().map(AsFd::as_fd));
        for fd in pipes.chain([ends.messages.as_fd()]) {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        let speech: Box<dyn Speech> = match conversation.form {
            Form::StreamJson => Box::new(StreamJson::new(conversation.id.clone())),
            Form::Acp => Box::new(Acp::new(conversation.resumed.clone(), cwd.to_string_lossy().into_owned())),
            Form::AppServer => Box::new(AppServer::new(
                conversation.id.clone(),
                conversation.resumed.clone(),
                cwd.to_string_lossy().into_owned(),
            )),
        };
        Ok(Relay {
            agent,
            output,
            input: Input::new(input),
            lines: Lines::cut(),
            messages: Some(ends.messages),
            posted: Lines::new(MESSAGE_BYTES),
            receipts: ends.receipts,
            log,
            speech,
            signals,
            idle_since: None,
            has_failed: false,
            leaving: Leaving::No,
        })
    }

    /// Serves the agent until it ends, then ends in the same way.
    pub(crate) fn run(mut self) -> ExitCode {
        nix::sys::prctl::set_name(c"supervisor-talk").ok();
        let mut prompt = Vec::new();
        // Without a readable prompt, the agent starts with less, and reports that itself.
        io::stdin().read_to_end(&mut prompt).ok();
        let first = self.speech.begin(&String::from_utf8_lossy(&prompt));
        drop(prompt);
        self.input.queue(None, first);
        let status = loop {
            self.pass_signals();
            let ended = self.agent.try_wait().ok().flatten();
            if ended.is_some() {
                self.listen(LAST_BYTES);
            } else if self.hears() {
                self.listen(READ_BYTES);
            }
            if let Some(status) = ended {
                break status;
            }
            self.take_messages();
            self.write();
            self.end_if_over();
            self.end_what_lingers();
            self.sleep();
        };
        for number in self.input.unread() {
            self.record_receipt(number, Receipt::Unread);
        }
        if matches!(self.leaving, Leaving::Terminated(_) | Leaving::Killed) && !self.has_failed {
            // Its turn had ended, and its output has the result.
            return ExitCode::SUCCESS;
        }
        if self.has_failed && status.success() { ExitCode::FAILURE } else { end_as(status) }
    }

    /// Passes on the signals that were sent to the worker, because other processes know only this process as the
    /// worker.
    fn pass_signals(&self) {
        // The agent is not reaped yet, so the number is still its own.
        let agent = i32::try_from(self.agent.id()).ok().and_then(Pid::from_raw);
        for signal in self.signals.take() {
            let signal = Signal::from_named_raw(signal);
            if let (Some(agent), Some(signal)) = (agent, signal) {
                kill_process(agent, signal).ok();
            }
        }
    }

    /// Returns true if the agent's output is read now. The output of an agent that sends requests and reads no answers
    /// is not read. Waiting messages do not count, because an agent may write much before it reads.
    fn hears(&self) -> bool {
        self.input.answering() < ANSWER_BYTES
    }

    /// Passes on the agent's output, up to a number of bytes.
    fn listen(&mut self, mut most: usize) {
        let mut buffer = [0; READ_BYTES];
        while most > 0 {
            let Some(output) = &mut self.output else { return };
            let count = match output.read(&mut buffer) {
                Ok(0) => {
                    self.output = None;
                    return;
                }
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.output = None;
                    return;
                }
            };
            most = most.saturating_sub(count);
            // The shim reads as long as it lives.
            self.log.write_all(&buffer[..count]).ok();
            let mut effects = Vec::new();
            let speech = &mut self.speech;
            self.lines.take(&buffer[..count], |line| effects.push(speech.hear(line)));
            for effects in effects {
                self.act_on(effects);
            }
        }
    }

    fn act_on(&mut self, effects: LineEffects) {
        for number in effects.confirmed {
            self.record_receipt(number, Receipt::Confirmed);
        }
        for number in effects.refused {
            self.record_receipt(number, Receipt::Refused);
        }
        for (number, bytes) in effects.say {
            self.input.answer(number, bytes);
        }
        if let Some(why) = effects.failed {
            writeln!(io::stderr(), "error: {why}").ok();
            self.has_failed = true;
            self.input.close();
        }
    }

    /// Takes the messages that have arrived.
    fn take_messages(&mut self) {
        let mut buffer = [0; READ_BYTES];
        while self.input.waiting() < INPUT_BYTES {
            let Some(messages) = &mut self.messages else { return };
            let count = match messages.read(&mut buffer) {
                Ok(count) if count > 0 => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {
                    self.messages = None;
                    return;
                }
            };
            let mut come = Vec::new();
            self.posted
                .take(&buffer[..count], |line| come.extend(serde_json::from_slice::<AgentMessage>(line)));
            for message in come {
                if self.input.is_open() {
                    if let Some(bytes) = self.speech.say(&message) {
                        self.input.queue(Some(message.number), bytes);
                    }
                } else {
                    self.record_receipt(message.number, Receipt::Closed);
                }
            }
        }
    }

    /// Writes as much as the agent's input has room for.
    fn write(&mut self) {
        for number in self.input.write() {
            self.record_receipt(number, Receipt::Written);
        }
    }

    /// Closes the agent's input when a turn has ended and no message waits.
    fn end_if_over(&mut self) {
        if !self.speech.is_idle() || self.input.waiting() > 0 {
            self.idle_since = None;
            return;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        if self.speech.is_confirmed() || since.elapsed() >= CONFIRMED_WITHIN {
            self.input.close();
        }
    }

    /// Ends a program that continues although its conversation is over.
    fn end_what_lingers(&mut self) {
        if self.input.is_open() || !(self.speech.is_idle() || self.has_failed) {
            self.leaving = Leaving::No;
            return;
        }
        let is_due = |since: Instant| since.elapsed() >= ENDS_WITHIN;
        self.leaving = match self.leaving {
            Leaving::No => Leaving::Asked(Instant::now()),
            Leaving::Asked(since) if is_due(since) => {
                // The program is not reaped yet, so the number is still its own.
                if let Some(agent) = i32::try_from(self.agent.id()).ok().and_then(Pid::from_raw) {
                    kill_process(agent, Signal::TERM).ok();
                }
                Leaving::Terminated(Instant::now())
            }
            Leaving::Terminated(since) if is_due(since) => {
                self.agent.kill().ok();
                Leaving::Killed
            }
            other => other,
        };
    }

    fn record_receipt(&mut self, number: u32, receipt: Receipt) {
        let Ok(mut line) = serde_json::to_vec(&Received { number, receipt }) else { return };
        line.push(b'\n');
        // Shorter than PIPE_BUF, so the write is atomic (pipe(7)). Without a shim, the receipt has no reader.
        self.receipts.write_all(&line).ok();
    }

    /// Waits until something happens or is due.
    fn sleep(&self) {
        let due = match self.leaving {
            Leaving::Asked(since) | Leaving::Terminated(since) => Some((since, ENDS_WITHIN)),
            Leaving::No if self.input.is_open() => self.idle_since.map(|since| (since, CONFIRMED_WITHIN)),
            Leaving::No | Leaving::Killed => None,
        };
        let due = due.map(|(since, limit)| limit.saturating_sub(since.elapsed()));
        let timeout = due.and_then(|due| Timespec::try_from(due).ok());
        let read = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let messages = self.messages.as_ref().filter(|_| self.input.waiting() < INPUT_BYTES);
        let sources: Vec<BorrowedFd<'_>> = std::iter::once(self.signals.fd())
            .chain(self.output.as_ref().filter(|_| self.hears()).map(AsFd::as_fd))
            .chain(messages.map(AsFd::as_fd))
            .collect();
        let mut polled: Vec<PollFd<'_>> = sources.into_iter().map(read).collect();
        polled.extend(self.input.sink().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        // EINTR means a signal, whose handler has written to its pipe.
        poll(&mut polled, timeout.as_ref()).ok();
    }
}

/// Ends this process with the status of another one.
fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // No core of this process: the agent's own core counts.
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0).ok();
        signal_hook::low_level::emulate_default_handler(signal).ok();
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A relay of a program that speaks ACP.
    fn relay(script: &str) -> Relay {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let conversation = Conversation { form: Form::Acp, id: "first".to_owned(), resumed: None };
        let (messages, _) = io::pipe().unwrap();
        let receipts = File::options().write(true).open("/dev/null").unwrap();
        let ends = Ends { messages: File::from(std::os::fd::OwnedFd::from(messages)), receipts };
        let mut relay = Relay::start(&mut command, &conversation, Path::new("/"), ends).unwrap();
        relay.log = File::options().write(true).open("/dev/null").unwrap();
        relay
    }

    #[test]
    fn an_agent_that_asks_and_reads_no_answer_is_not_listened_to() {
        let mut relay = relay(&format!("yes '{{\"id\":1,\"method\":\"{}\"}}'", "m".repeat(2000)));
        while relay.hears() {
            relay.listen(READ_BYTES);
            relay.write();
        }
        // What one look at the output calls for is the most that comes on top.
        assert!(relay.input.waiting() < ANSWER_BYTES + 4 * READ_BYTES, "{} bytes", relay.input.waiting());
        assert!(relay.output.is_some());
        // The answers of an agent that has closed its input, or whose conversation is over, wait nowhere.
        relay.input.close();
        assert!(relay.hears());
        for _ in 0..100 {
            relay.listen(READ_BYTES);
        }
        assert_eq!((relay.input.waiting(), relay.input.answering()), (0, 0));
        relay.agent.kill().unwrap();
        relay.agent.wait().unwrap();
    }

    #[test]
    fn an_agent_that_reads_its_answers_is_listened_to_again() {
        let mut relay = relay("exec cat > /dev/null");
        relay.input.answer(None, vec![b'x'; ANSWER_BYTES]);
        assert!(!relay.hears());
        while !relay.hears() || relay.input.waiting() > 0 {
            relay.write();
        }
        assert_eq!(relay.input.answering(), 0);
        relay.input.close();
        relay.agent.wait().unwrap();
    }
}
