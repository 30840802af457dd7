//! Actions of the keys of `top`: each key changes the model and yields orders for the rest of the program.

use kernel::Question;

use super::message::{TaskVerb, TopAction};
use super::model::{
    Answering, Approved, Approving, DialogTask, InputLine, Purpose, ScreenMode, ScreenNotice, TopModel,
};
use super::peek::LogView;
use super::picture::TaskKind;
use base::terminal::full_screen::Key;

/// Number of rows of a page key.
const PAGE: usize = 15;
/// Limit on a typed line, in characters. A longer text has to be given at the command line.
const LONGEST: usize = 2000;

impl TopModel {
    /// Handles a key.
    pub(super) fn press(&mut self, key: Key) -> Vec<TopAction> {
        match key {
            Key::Control('c') => return vec![TopAction::Quit],
            Key::Control('z') => return vec![TopAction::Suspend],
            Key::Control('l') => return vec![TopAction::Redraw],
            _ => {}
        }
        match std::mem::take(&mut self.mode) {
            ScreenMode::Browse => self.browse(key),
            ScreenMode::Help => Vec::new(),
            ScreenMode::Peek(peek) => self.peek(peek, key),
            ScreenMode::Answer(answering) => self.answer(answering, key),
            ScreenMode::Approve(approving) => self.approve(approving, key),
            ScreenMode::Cancel(target) => self.confirm(target, key),
            ScreenMode::Prompt(prompt) => self.prompt(prompt, key),
        }
    }

    /// Handles pasted text: adds it to the line being typed, if any.
    pub(super) fn paste(&mut self, text: &str) {
        if let ScreenMode::Prompt(prompt) = &mut self.mode {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let room = LONGEST.saturating_sub(prompt.text.chars().count());
            prompt.text.extend(line.chars().take(room));
        }
    }

    fn browse(&mut self, key: Key) -> Vec<TopAction> {
        self.hush();
        let at = self.at();
        let to = match key {
            Key::Char('q') => return vec![TopAction::Quit],
            Key::Char('?' | 'h') => {
                self.mode = ScreenMode::Help;
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
    fn everything(&mut self) -> Vec<TopAction> {
        if self.query.search.is_some() {
            return vec![self.read(self.query.searching(None))];
        }
        if self.query.tenant.is_some() {
            return vec![self.read(self.query.of_tenant(None))];
        }
        Vec::new()
    }

    /// Acts on the selected task.
    fn act(&mut self, key: Key) -> Vec<TopAction> {
        let Some(row) = self.row() else { return Vec::new() };
        let (kind, priority, question) = (row.kind, row.priority, row.question.clone());
        let target = DialogTask { task: row.id.clone(), title: row.title.clone() };
        let task = target.task.clone();
        match key {
            Key::Enter => {
                self.mode = ScreenMode::Peek(LogView::for_task(task.clone(), target.title));
                vec![TopAction::Follow(task)]
            }
            Key::Char('a') => match question {
                Some(question) => self.answer_to(target, question),
                None => self.refuse(format!("{task} has no open question")),
            },
            Key::Char('A') => {
                let of = match kind {
                    TaskKind::Approval => Approved::Start,
                    TaskKind::Review | TaskKind::InReview => Approved::Work,
                    _ => return self.refuse(format!("{task} waits for no approval and no review")),
                };
                self.mode = ScreenMode::Approve(Approving { target, of, facts: Vec::new() });
                vec![TopAction::Find(task)]
            }
            Key::Char('r') => vec![TopAction::Act(TaskVerb::Retry { task })],
            Key::Char('c') => {
                self.mode = ScreenMode::Cancel(target);
                Vec::new()
            }
            Key::Char('+' | '=') => Self::prioritize(task, priority.saturating_add(1)),
            Key::Char('-') => Self::prioritize(task, priority.saturating_sub(1)),
            _ => Vec::new(),
        }
    }

    fn prioritize(task: kernel::TaskId, priority: i64) -> Vec<TopAction> {
        vec![TopAction::Act(TaskVerb::Prioritize { task, priority })]
    }

    fn refuse(&mut self, why: String) -> Vec<TopAction> {
        self.say(ScreenNotice::Refused(why));
        Vec::new()
    }

    fn ask(&mut self, purpose: Purpose, text: String) -> Vec<TopAction> {
        self.mode = ScreenMode::Prompt(InputLine { purpose, text });
        Vec::new()
    }

    fn answer_to(&mut self, target: DialogTask, question: Question) -> Vec<TopAction> {
        if question.choices.is_empty() {
            return self.ask(Purpose::Answer(target, question), String::new());
        }
        self.mode = ScreenMode::Answer(Answering { target, question, at: 0 });
        Vec::new()
    }

    fn answer(&mut self, mut answering: Answering, key: Key) -> Vec<TopAction> {
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
            self.mode = ScreenMode::Answer(answering);
            return Vec::new();
        };
        let Answering { target, question, .. } = answering;
        match question.choices.get(taken) {
            // The answer is sent as text and not as a number, because another question may have replaced this one.
            Some(choice) => {
                vec![TopAction::Act(TaskVerb::Answer { task: target.task, answer: choice.clone() })]
            }
            None => self.ask(Purpose::Answer(target, question), String::new()),
        }
    }

    fn approve(&mut self, approving: Approving, key: Key) -> Vec<TopAction> {
        let Approving { target, of, .. } = &approving;
        match (key, of) {
            (Key::Escape | Key::Char('q'), _) => Vec::new(),
            (Key::Char('y'), _) => vec![TopAction::Act(TaskVerb::Approve { task: target.task.clone() })],
            (Key::Char('c'), Approved::Work) => self.ask(Purpose::Changes(target.clone()), String::new()),
            (Key::Char('n'), Approved::Start) => self.ask(Purpose::Denial(target.clone()), String::new()),
            _ => {
                self.mode = ScreenMode::Approve(approving);
                Vec::new()
            }
        }
    }

    fn confirm(&mut self, target: DialogTask, key: Key) -> Vec<TopAction> {
        match key {
            Key::Char('y') => vec![TopAction::Act(TaskVerb::Cancel { task: target.task })],
            Key::Escape | Key::Char('n' | 'q') | Key::Enter => Vec::new(),
            _ => {
                self.mode = ScreenMode::Cancel(target);
                Vec::new()
            }
        }
    }

    fn peek(&mut self, mut peek: LogView, key: Key) -> Vec<TopAction> {
        match key {
            Key::Escape | Key::Enter | Key::Char('q') => return vec![TopAction::Unfollow],
            Key::Char('k') | Key::Up => peek.up(1),
            Key::Char('j') | Key::Down => peek.down(1),
            Key::PageUp | Key::Control('u' | 'b') => peek.up(PAGE),
            Key::PageDown | Key::Control('d' | 'f') | Key::Char(' ') => peek.down(PAGE),
            Key::Char('g') | Key::Home => peek.up(usize::MAX),
            Key::Char('G') | Key::End => peek.down(usize::MAX),
            _ => {}
        }
        self.mode = ScreenMode::Peek(peek);
        Vec::new()
    }

    fn prompt(&mut self, mut prompt: InputLine, key: Key) -> Vec<TopAction> {
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
        self.mode = ScreenMode::Prompt(prompt);
        Vec::new()
    }

    /// Handles a complete line. An empty line removes the search or the tenant filter, and gives no answer and no reason.
    fn typed(&mut self, prompt: InputLine) -> Vec<TopAction> {
        let InputLine { purpose, text } = prompt;
        let text = text.trim().to_owned();
        let entered = (!text.is_empty()).then_some(text);
        match (purpose, entered) {
            (Purpose::Search, search) => vec![self.read(self.query.searching(search))],
            (Purpose::Tenant, None) => vec![self.read(self.query.of_tenant(None))],
            (Purpose::Tenant, Some(text)) => match text.parse() {
                Ok(tenant) => vec![self.read(self.query.of_tenant(Some(tenant)))],
                Err(error) => self.refuse(format!("{text}: {error}")),
            },
            (Purpose::Answer(target, _), Some(answer)) => {
                vec![TopAction::Act(TaskVerb::Answer { task: target.task, answer })]
            }
            (Purpose::Changes(target), Some(reason)) => {
                vec![TopAction::Act(TaskVerb::RequestChanges { task: target.task, reason })]
            }
            (Purpose::Denial(target), Some(reason)) => {
                vec![TopAction::Act(TaskVerb::Deny { task: target.task, reason })]
            }
            (Purpose::Answer(target, _) | Purpose::Changes(target) | Purpose::Denial(target), None) => {
                self.refuse(format!("nothing was typed: {} is as it was", target.task))
            }
        }
    }
}
