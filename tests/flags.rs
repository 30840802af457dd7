//! Every flag of every verb changes something that can be seen: one row of a table shows each.
//!
//! Most rows are two command lines over copies of one board, where only one line has the flag. What they print, their exit
//! codes and the rows of the board afterwards must differ; the same line twice must not, so that chance proves nothing.

mod automation;
mod common;
mod daily;
mod missions;
mod schedules;
mod table;
mod triage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use rusqlite::types::ValueRef;

use crate::harness::{Fleet, Output};
use table::{FlagProof, Row, TABLE};

/// Other names of verbs, whose flags are the same.
const ALIASES: [&str; 8] =
    ["ls", "diag", "boards ls", "boards new", "boards remove", "boards use", "boards current", "mission ls"];

/// The flags that every verb has.
const GLOBAL: [&str; 6] = ["root", "board", "json", "color", "system", "user"];

/// Every row.
fn table() -> impl Iterator<Item = &'static Row> {
    let automation = automation::AUTOMATION.iter().chain(missions::MISSIONS).chain(schedules::SCHEDULES);
    let automation = automation.chain(triage::TRIAGE).chain(common::COMMON);
    TABLE.iter().chain(daily::DAILY).chain(automation).chain(common::IN_COMMON.into_iter().flatten())
}

/// Every flag of every verb, as the binary itself completes them.
fn flags(fleet: &Fleet) -> BTreeSet<(String, String)> {
    let script = fleet.cli(["completions", "fish", "--static"]).ok().stdout;
    let line = Regex::new(
        r#"^complete -c supervisor -n "__fish_supervisor_using_subcommand ([a-z-]+)(?:; and not __fish_seen_subcommand_from [a-z -]+|; and __fish_seen_subcommand_from ([a-z-]+))?".* -l ([a-z-]+)"#,
    )
    .unwrap();
    let mut found = BTreeSet::new();
    for line in script.lines().filter_map(|text| line.captures(text)) {
        let verb = [line.get(1), line.get(2)].into_iter().flatten().map(|part| part.as_str());
        let verb = verb.collect::<Vec<_>>().join(" ");
        let flag = &line[3];
        if flag != "help" && !ALIASES.contains(&verb.as_str()) && !GLOBAL.contains(&flag) {
            found.insert((verb, flag.to_owned()));
        }
    }
    found.extend(GLOBAL.map(|flag| (String::new(), flag.to_owned())));
    found
}

#[test]
fn every_flag_of_every_verb_has_a_row_and_every_row_a_flag() {
    let flags = flags(&Fleet::offline());
    assert!(flags.len() > 150, "only {} flags were found", flags.len());
    let rows: BTreeSet<_> = table().map(|(verb, flag, _)| ((*verb).to_owned(), (*flag).to_owned())).collect();
    assert_eq!(rows.len(), table().count(), "a row stands twice");
    let unshown: Vec<_> = flags.difference(&rows).collect();
    let unknown: Vec<_> = rows.difference(&flags).collect();
    assert!(
        unshown.is_empty() && unknown.is_empty(),
        "without a row: {unshown:?}; without a flag: {unknown:?}"
    );
}

#[test]
fn a_test_that_a_row_names_exists_and_gives_the_flag() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (verb, flag, proof) in table() {
        if let FlagProof::Test(file, name) = proof {
            let text = fs::read_to_string(house.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let (_, from) =
                text.split_once(&format!("fn {name}(")).unwrap_or_else(|| panic!("{file} has no {name}"));
            let body = from.split("\n}\n").next().unwrap();
            assert!(
                body.contains(&format!("--{flag}")) || body.contains("IGNORED"),
                "{name} gives no --{flag} of {verb}"
            );
        }
    }
}

/// A root with something of every kind, made once and copied for each command line.
struct Scene {
    fleet: Fleet,
    names: BTreeMap<&'static str, String>,
    copies: std::cell::Cell<u32>,
    /// Results of lines without the flag.
    seen: BTreeMap<String, String>,
    id: Regex,
    /// Patterns of random or changing texts, with their replacements.
    chance: Vec<(Regex, &'static str)>,
}

const CHANCE: [(&str, &str); 7] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]"),
    (r"[0-9a-f]{16,}", "[hex]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d", "[time]"),
    (r"\d\d:\d\d:\d\d", "[clock]"),
    (r"\d{10,}", "[n]"),
    (r"pid \d+", "pid [n]"),
    (r"\b\d+(\.\d+)? ?(ms|s|m|h|d)\b( \d+[smh])?", "[took]"),
];

impl Scene {
    fn new() -> Self {
        let fleet = Fleet::offline();
        let mut names = BTreeMap::new();
        let made = [
            ("ready", ["--assignee", "bob"].as_slice()),
            ("parent", &["--assignee", "bob"]),
            ("review", &["--assignee", "bob"]),
            ("review2", &["--assignee", "bob"]),
            ("running", &["--assignee", "bob"]),
            ("done", &["--assignee", "bob"]),
            ("archived", &[]),
            ("told", &[]),
            ("held", &[]),
            ("blocked", &["--initial-status", "blocked"]),
            ("triage", &["--triage"]),
            ("scheduled", &["--not-before", "1000d"]),
            ("approval", &["--require-approval"]),
            ("approval2", &["--require-approval"]),
            ("acme", &["--tenant", "acme"]),
            (
                "label",
                &["--session", "s", "--step-key", "k", "--workflow-template-id", "w", "--priority", "1"],
            ),
        ];
        for (name, more) in made {
            names.insert(name, created(&fleet, name, more));
        }
        let todo = created(&fleet, "todo", &["--parent", &names["parent"]]);
        names.insert("todo", todo);
        for line in [
            "request-review {review}",
            "request-review {review2}",
            "claim {running} --ttl 9000",
            "complete {done} --summary s",
            "archive {archived}",
            "notify-subscribe {told} --platform p --chat-id 1",
            "notify-subscribe {told} --platform p --chat-id 1 --thread-id 7",
            "hold {held} --reason r",
            "hold --account main --reason r",
            "hold --profile slow --reason r",
            "hold --tenant late --reason r",
            "boards create other",
        ] {
            fleet.cli(filled(line, &names, Path::new("/"))).ok();
        }
        let chance = CHANCE.map(|(pattern, word)| (Regex::new(pattern).unwrap(), word)).into();
        let id = Regex::new(r"t_[0-9a-f]{8}").unwrap();
        Scene { fleet, names, copies: 0.into(), seen: BTreeMap::new(), id, chance }
    }

    /// Runs command lines, separated by ` ; `, over a copy of the root, and returns all that can be seen of them.
    fn run(&self, lines: &str) -> String {
        self.copies.set(self.copies.get() + 1);
        let dir = self.fleet.home().join(format!("copy{}", self.copies.get()));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a.txt"), "text\n").unwrap();
        let root = dir.join("root");
        assert!(Command::new("cp").arg("-a").arg(self.fleet.root()).arg(&root).status().unwrap().success());
        let mut seen = String::new();
        for line in lines.split(" ; ") {
            let mut command = Command::new(self.fleet.binary());
            self.fleet.dress(&mut command);
            command.env("SUPERVISOR_ROOT", &root).current_dir(&dir).args(filled(line, &self.names, &dir));
            let output = Output::of(&mut command);
            writeln!(seen, "exit {}\n{}{}", output.code, output.stdout, output.stderr).unwrap();
        }
        for board in ["default", "other"] {
            let file = root.join("boards").join(board).join("board.db");
            if file.exists() {
                let tidy = |row: String| self.tidy(&row.replace(&dir.display().to_string(), "[dir]"));
                seen.push_str(&rows(&file, tidy));
            }
        }
        let mut files: Vec<PathBuf> =
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        writeln!(seen, "{files:?}").unwrap();
        let seen = seen.replace(&dir.display().to_string(), "[dir]");
        fs::remove_dir_all(&dir).unwrap();
        self.tidy(&seen)
    }

    /// Replaces random or changing texts: generated ids, times, process numbers.
    fn tidy(&self, text: &str) -> String {
        let known = |id: &str| self.names.iter().find(|(_, known)| *known == id).map(|(name, _)| *name);
        let drawn = |found: &regex::Captures<'_>| known(&found[0]).unwrap_or("t_new").to_owned();
        let text = self.id.replace_all(text, drawn).into_owned();
        self.chance.iter().fold(text, |text, (pattern, word)| pattern.replace_all(&text, *word).into_owned())
    }

    /// Shows one row of the table.
    fn show(&mut self, verb: &str, flag: &str, plain: &str, with: &str) {
        let name = if flag == "colour" { "color" } else { flag };
        let gives = |line: &str| line.split(' ').any(|word| word == format!("--{name}"));
        assert!(gives(with), "{verb} --{flag}: `{with}` does not give it");
        let before = if let Some(seen) = self.seen.get(plain) {
            seen.clone()
        } else {
            let (first, second) = (self.run(plain), self.run(plain));
            assert_eq!(first, second, "`{plain}` is not the same twice");
            self.seen.insert(plain.to_owned(), first.clone());
            first
        };
        let after = self.run(with);
        assert_ne!(after, before, "{verb} --{flag} changes nothing: `{plain}` and `{with}`");
    }
}

fn created(fleet: &Fleet, title: &str, more: &[&str]) -> String {
    let task = fleet.json([&["create", title, "--body", "true"], more].concat());
    task["id"].as_str().unwrap().to_owned()
}

/// The words of a line, with the names of tasks and of the directory filled in.
fn filled(line: &str, names: &BTreeMap<&'static str, String>, dir: &Path) -> Vec<String> {
    let fill = |word: &str| {
        let word = word.replace("{dir}", &dir.display().to_string());
        names.iter().fold(word, |word, (name, id)| word.replace(&format!("{{{name}}}"), id))
    };
    line.split(' ').map(fill).collect()
}

/// Every row of every table of a board, but for the replies that it keeps, in an order that chance has no part in.
fn rows(file: &Path, tidy: impl Fn(String) -> String) -> String {
    let conn = rusqlite::Connection::open(file).unwrap();
    let tables: Vec<String> = conn
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
        )
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut text = String::new();
    for table in tables.iter().filter(|table| *table != "requests") {
        let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = found.next().unwrap() {
            let cells = (0..columns).map(|at| match row.get_ref(at).unwrap() {
                ValueRef::Null => "-".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => number.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                ValueRef::Blob(_) => "[blob]".to_owned(),
            });
            lines.push(tidy(cells.collect::<Vec<_>>().join("|")));
        }
        lines.sort();
        writeln!(text, "{table}\n{}", lines.join("\n")).unwrap();
    }
    text
}

/// Shows the rows of the verbs from one letter to another, so that several processes share the work.
fn show(verbs: std::ops::RangeInclusive<char>) {
    let mut scene = Scene::new();
    let mut shown = 0;
    for (verb, flag, proof) in table() {
        if let FlagProof::Lines(plain, with) = proof
            && verbs.contains(&verb.chars().next().unwrap_or('a'))
        {
            scene.show(verb, flag, plain, with);
            shown += 1;
        }
    }
    assert!(shown > 10, "only {shown} flags");
}

#[test]
fn the_flags_of_verbs_from_a_to_b_change_what_is_seen() {
    show('a'..='b');
}

#[test]
fn the_flags_of_verbs_from_c_to_d_change_what_is_seen() {
    show('c'..='d');
}

#[test]
fn the_flags_of_verbs_from_e_to_m_change_what_is_seen() {
    show('e'..='m');
}

#[test]
fn the_flags_of_verbs_from_n_to_z_change_what_is_seen() {
    show('n'..='z');
}
