//! Actions of the keys of `top`: each key changes the model and yields orders for the rest of the program.

use kernel::Question;

use super::message::{Act, Order};
use super::model::{Answering, Approved, Approving, Mode, Model, Notice, Prompt, Purpose, Target};
use super::peek::Peek;
use super::picture::Kind;
use base::terminal::full_screen::Key;

/// Number of rows of a page key.
const PAGE: usize = 15;
/// Limit on a typed line, in characters. A longer text has to be given at the command line.
const LONGEST: usize = 2000;

impl Model {
    /// Handles a key.
    pub(super) fn press(&mut self, key: Key) -> Vec<Order> {
        match key {
            Key::Control('c') => return vec![Order::Quit],
            Key::Control('z') => return vec![Order::Suspend],
            Key::Control('l') => return vec![Order::Redraw],
            _ => {}
        }
        match std::mem::take(&mut self.mode) {
            Mode::Browse => self.browse(key),
            Mode::Help => Vec::new(),
            Mode::Peek(peek) => self.peek(peek, key),
            Mode::Answer(answering) => self.answer(answering, key),
            Mode::Approve(approving) => self.approve(approving, key),
            Mode::Cancel(target) => self.confirm(target, key),
            Mode::Prompt(prompt) => self.prompt(prompt, key),
        }
    }

    /// Handles pasted text: adds it to the line being typed, if any.
    pub(super) fn paste(&mut self, text: &str) {
        if let Mode::Prompt(prompt) = &mut self.mode {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let room = LONGEST.saturating_sub(prompt.text.chars().count());
            prompt.text.extend(line.chars().take(room));
        }
    }

    fn browse(&mut self, key: Key) -> Vec<Order> {
        self.hush();
        let at = self.at();
        let to = match key {
            Key::Char('q') => return vec![Order::Quit],
            Key::Char('?' | 'h') => {
                self.mode = Mode::Help;
                return Vec::new();
            }
            Key::Char('t') => {
                let text = self.query.tenant.as_ref().map(ToString::to_string).unwrap_or_default();
                return self.ask(Purpose::Tenant, text);
            }
            Key::Char('/') => {
                let text = self.query.search.clone().unwrap_or_default();
                return self.ask(Purpose::Search, text);
            }
            Key::Escape => return self.everything(),
            Key::Char('j') | Key::Down => at + 1,
            Key::Char('k') | Key::Up => at.saturating_sub(1),
            Key::PageDown | Key::Control('d' | 'f') => at + PAGE,
            Key::PageUp | Key::Control('u' | 'b') => at.saturating_sub(PAGE),
            Key::Char('g') | Key::Home => 0,
            Key::Char('G') | Key::End => usize::MAX,
            Key::Tab => self.next_section(),
            other => return self.act(other),
        };
        self.choose(to);
        self.more().into_iter().collect()
    }

    /// Returns the index of the first row of the next section; in the last section, the index of the first row.
    fn next_section(&self) -> usize {
        let here = self.row().map(|row| row.kind.section());
        self.rows().position(|row| Some(row.kind.section()) > here).unwrap_or_default()
    }

    /// Removes the search, or else the tenant filter.
    fn everything(&mut self) -> Vec<Order> {
        if self.query.search.is_some() {
            return vec![self.read(self.query.searching(None))];
        }
        if self.query.tenant.is_some() {
            return vec![self.read(self.query.of_tenant(None))];
        }
        Vec::new()
    }

    /// Acts on the selected task.
    fn act(&mut self, key: Key) -> Vec<Order> {
        let Some(row) = self.row() else { return Vec::new() };
        let (kind, priority, question) = (row.kind, row.priority, row.question.clone());
        let target = Target { task: row.id.clone(), title: row.title.clone() };
        let task = target.task.clone();
        match key {
            Key::Enter => {
                self.mode = Mode::Peek(Peek::of(task.clone(), target.title));
                vec![Order::Follow(task)]
            }
            Key::Char('a') => match question {
                Some(question) => self.answer_to(target, question),
                None => self.refuse(format!("{task} has no open question")),
            },
            Key::Char('A') => {
                let of = match kind {
                    Kind::Approval => Approved::Start,
                    Kind::Review | Kind::InReview => Approved::Work,
                    _ => return self.refuse(format!("{task} waits for no approval and no review")),
                };
                self.mode = Mode::Approve(Approving { target, of, facts: Vec::new() });
                vec![Order::Find(task)]
            }
            Key::Char('r') => vec![Order::Act(Act::Retry { task })],
            Key::Char('c') => {
                self.mode = Mode::Cancel(target);
                Vec::new()
            }
            Key::Char('+' | '=') => Self::prioritize(task, priority.saturating_add(1)),
            Key::Char('-') => Self::prioritize(task, priority.saturating_sub(1)),
            _ => Vec::new(),
        }
    }

    fn prioritize(task: kernel::TaskId, priority: i64) -> Vec<Order> {
        vec![Order::Act(Act::Prioritize { task, priority })]
    }

    fn refuse(&mut self, why: String) -> Vec<Order> {
        self.say(Notice::Refused(why));
        Vec::new()
    }

    fn ask(&mut self, purpose: Purpose, text: String) -> Vec<Order> {
        self.mode = Mode::Prompt(Prompt { purpose, text });
        Vec::new()
    }

    fn answer_to(&mut self, target: Target, question: Question) -> Vec<Order> {
        if question.choices.is_empty() {
            return self.ask(Purpose::Answer(target, question), String::new());
        }
        self.mode = Mode::Answer(Answering { target, question, at: 0 });
        Vec::new()
    }

    fn answer(&mut self, mut answering: Answering, key: Key) -> Vec<Order> {
        let count = answering.entries();
        let taken = match key {
            Key::Escape | Key::Char('q') => return Vec::new(),
            Key::Char('j') | Key::Down | Key::Tab => {
                answering.at = (answering.at + 1) % count;
                None
            }
            Key::Char('k') | Key::Up => {
                answering.at = (answering.at + count - 1) % count;
                None
            }
            Key::Enter => Some(answering.at),
            Key::Char(digit) => {
                let number = digit.to_digit(10).and_then(|number| usize::try_from(number).ok());
                number.filter(|number| (1..=count).contains(number)).map(|number| number - 1)
            }
            _ => None,
        };
        let Some(taken) = taken else {
            self.mode = Mode::Answer(answering);
            return Vec::new();
        };
        let Answering { target, question, .. } = answering;
        match question.choices.get(taken) {
            // The answer is sent as text and not as a number, because another question may have replaced this one.
            Some(choice) => {
                vec![Order::Act(Act::Answer { task: target.task, answer: choice.clone() })]
            }
            None => self.ask(Purpose::Answer(target, question), String::new()),
        }
    }

    fn approve(&mut self, approving: Approving, key: Key) -> Vec<Order> {
        let Approving { target, of, .. } = &approving;
        match (key, of) {
            (Key::Escape | Key::Char('q'), _) => Vec::new(),
            (Key::Char('y'), _) => vec![Order::Act(Act::Approve { task: target.task.clone() })],
            (Key::Char('c'), Approved::Work) => self.ask(Purpose::Changes(target.clone()), String::new()),
            (Key::Char('n'), Approved::Start) => self.ask(Purpose::Denial(target.clone()), String::new()),
            _ => {
                self.mode = Mode::Approve(approving);
                Vec::new()
            }
        }
    }

    fn confirm(&mut self, target: Target, key: Key) -> Vec<Order> {
        match key {
            Key::Char('y') => vec![Order::Act(Act::Cancel { task: target.task })],
            Key::Escape | Key::Char('n' | 'q') | Key::Enter => Vec::new(),
            _ => {
                self.mode = Mode::Cancel(target);
                Vec::new()
            }
        }
    }

    fn peek(&mut self, mut peek: Peek, key: Key) -> Vec<Order> {
        match key {
            Key::Escape | Key::Enter | Key::Char('q') => return vec![Order::Unfollow],
            Key::Char('k') | Key::Up => peek.up(1),
            Key::Char('j') | Key::Down => peek.down(1),
            Key::PageUp | Key::Control('u' | 'b') => peek.up(PAGE),
            Key::PageDown | Key::Control('d' | 'f') | Key::Char(' ') => peek.down(PAGE),
            Key::Char('g') | Key::Home => peek.up(usize::MAX),
            Key::Char('G') | Key::End => peek.down(usize::MAX),
            _ => {}
        }
        self.mode = Mode::Peek(peek);
        Vec::new()
    }

    fn prompt(&mut self, mut prompt: Prompt, key: Key) -> Vec<Order> {
        match key {
            Key::Escape => return Vec::new(),
            Key::Enter => return self.typed(prompt),
            Key::Backspace => drop(prompt.text.pop()),
            Key::Control('u') => prompt.text.clear(),
            Key::Control('w') => {
                let kept = prompt.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
                prompt.text.truncate(kept);
            }
            Key::Char(c) if prompt.text.chars().count() < LONGEST => prompt.text.push(c),
            _ => {}
        }
        self.mode = Mode::Prompt(prompt);
        Vec::new()
    }

    /// Handles a complete line. An empty line removes the search or the tenant filter, and gives no answer and no reason.
    fn typed(&mut self, prompt: Prompt) -> Vec<Order> {
        let Prompt { purpose, text } = prompt;
        let text = text.trim().to_owned();
        let said = (!text.is_empty()).then_some(text);
        match (purpose, said) {
            (Purpose::Search, search) => vec![self.read(self.query.searching(search))],
            (Purpose::Tenant, None) => vec![self.read(self.query.of_tenant(None))],
            (Purpose::Tenant, Some(text)) => match text.parse() {
                Ok(tenant) => vec![self.read(self.query.of_tenant(Some(tenant)))],
                Err(error) => self.refuse(format!("{text}: {error}")),
            },
            (Purpose::Answer(target, _), Some(answer)) => {
                vec![Order::Act(Act::Answer { task: target.task, answer })]
            }
            (Purpose::Changes(target), Some(reason)) => {
                vec![Order::Act(Act::RequestChanges { task: target.task, reason })]
            }
            (Purpose::Denial(target), Some(reason)) => {
                vec![Order::Act(Act::Deny { task: target.task, reason })]
            }
            (Purpose::Answer(target, _) | Purpose::Changes(target) | Purpose::Denial(target), None) => {
                self.refuse(format!("nothing was typed: {} is as it was", target.task))
            }
        }
    }
}
