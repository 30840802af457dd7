//! A person who knows `hermes kanban` knows this program: the same verbs, flags and words, each with its effect, and JSON with
//! at least the same keys.

mod boards;
mod files;
mod moves;
mod shapes;
mod surface;
mod tasks;
mod watching;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::harness::{Fleet, Output, User};

/// A root over which commands are run as they are typed, and a note of what was typed.
struct TypedRoot {
    fleet: Fleet,
    typed: RefCell<BTreeMap<String, BTreeSet<String>>>,
}

impl TypedRoot {
    fn new() -> Self {
        TypedRoot { fleet: Fleet::offline_as(User::ordinary()), typed: RefCell::default() }
    }

    /// Notes a command's verb and flags. Returns its words.
    fn note(&self, line: &str) -> Vec<String> {
        let words = words(line);
        let verb = match words[0].as_str() {
            "boards" => format!("boards {}", words[1]),
            verb => verb.to_owned(),
        };
        let flags = words.iter().filter(|word| word.starts_with("--"));
        let flags = flags.map(|flag| flag.split('=').next().unwrap().to_owned());
        self.typed.borrow_mut().entry(verb).or_default().extend(flags);
        words
    }

    /// Runs a command to its end.
    #[track_caller]
    fn run(&self, line: &str) -> Output {
        self.fleet.cli(self.note(line))
    }

    /// Runs a command that must succeed.
    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.code, 0, "{line}\n{}{}", output.stdout, output.stderr);
        output.stdout
    }

    /// Runs a command that must succeed, with `--json`.
    #[track_caller]
    fn json(&self, line: &str) -> Value {
        let line = format!("{line} --json");
        let text = self.ok(&line);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{line}: {e}\n{text}"))
    }

    /// Makes a task, with further words, and returns its id.
    #[track_caller]
    fn task(&self, more: &str) -> String {
        id(&self.json(&format!("create 'a task' {more}")))
    }

    /// The task as it stands.
    #[track_caller]
    fn now(&self, task: &str) -> Value {
        self.json(&format!("show {task}"))["task"].clone()
    }

    /// The status of a task.
    #[track_caller]
    fn status(&self, task: &str) -> String {
        self.now(task)["status"].as_str().unwrap().to_owned()
    }

    /// The comments of a task.
    #[track_caller]
    fn comments(&self, task: &str) -> Vec<String> {
        let shown = self.json(&format!("show {task}"));
        let comments = shown["comments"].as_array().unwrap().iter();
        comments.map(|comment| comment["body"].as_str().unwrap().to_owned()).collect()
    }
}

fn id(created: &Value) -> String {
    created["id"].as_str().unwrap_or_else(|| panic!("no id in {created}")).to_owned()
}

/// The words of a line as a shell would see them: blanks separate, single quotes keep together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(piece.to_owned());
        } else {
            words.extend(piece.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Compares the keys that are given; a value may have others as well.
#[track_caller]
fn assert_has(value: &Value, expected: &Value) {
    for (key, wanted) in expected.as_object().unwrap() {
        assert_eq!(&value[key], wanted, "{key} in {value}");
    }
}
