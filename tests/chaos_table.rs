//! The table of chaos in docs/testing.md is whole, and every test that it names exists and ends with the checker of the invariants.

use std::fs;
use std::path::{Path, PathBuf};

fn house() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The rows of the table: number, and the tests that it names.
fn rows(page: &str) -> Vec<(usize, Vec<&str>)> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number = cells.next()?.trim().parse().ok()?;
        let tests = cells.last()?.split('`').skip(1).step_by(2).filter(|word| word.contains("::")).collect();
        Some((number, tests))
    });
    rows.collect()
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            into.push(path);
        }
    }
}

/// The checkers of `tests/invariants.rs`: of a root, and of one that only its own mount namespace shows.
const CHECKERS: [&str; 2] = ["invariants_hold(", "at_rest("];

/// Returns the source of a function that begins at the left margin of a file, without its comments.
fn function(text: &str, name: &str) -> Option<String> {
    let start = text.find(&format!("fn {name}("))?;
    let end = text[start..].find("\n}\n")?;
    let lines = text[start..start + end].lines();
    Some(lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n"))
}

/// Returns true if a function ends with a checker, or calls a function of its file that does.
fn is_checked(text: &str, name: &str) -> bool {
    let Some(found) = function(text, name) else { return false };
    let Some((_, body)) = found.split_once('{') else { return false };
    let words = body.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let is_other = |word: &&str| *word != name && body.contains(&format!("{word}("));
    CHECKERS.iter().any(|checker| body.contains(checker))
        || words.filter(is_other).any(|word| is_checked(text, word))
}

/// The tests whose checker is a script's, and what that script says of it.
fn script_of(module: &str) -> Option<(PathBuf, &'static str)> {
    (module == "systemd").then(|| (house().join("tests/systemd/checks"), "check 'the invariants hold' sound"))
}

#[test]
fn each_kind_of_chaos_ends_with_the_checker_of_the_invariants() {
    let page = fs::read_to_string(house().join("docs/testing.md")).unwrap();
    let mut unchecked = Vec::new();
    for (number, tests) in rows(&page) {
        // Tests of one crate have no root with a board.
        let whole = tests.iter().filter(|test| !test.starts_with("kernel::") && !test.starts_with("shim::"));
        let whole: Vec<_> = whole.collect();
        assert!(!whole.is_empty(), "row {number} has no test with a daemon");
        for test in whole {
            let (module, name) = test.split_once("::").unwrap();
            let text = |path: &Path| fs::read_to_string(path).unwrap();
            let is_checked = match script_of(module) {
                Some((script, line)) => text(&script).contains(line),
                None => is_checked(&text(&house().join(format!("tests/{module}.rs"))), name),
            };
            if !is_checked {
                unchecked.push(format!("{number}: {test}"));
            }
        }
    }
    assert!(unchecked.is_empty(), "{}", unchecked.join("\n"));
}

#[test]
fn each_kind_of_chaos_names_tests_that_exist() {
    let page = fs::read_to_string(house().join("docs/testing.md")).unwrap();
    let rows = rows(&page);
    let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    let mut gone = Vec::new();
    for (number, tests) in rows {
        assert!(!tests.is_empty(), "row {number} names no test");
        for test in tests {
            let (module, name) = test.split_once("::").unwrap();
            let places = match module {
                "kernel" => vec![house().join("kernel/src")],
                "shim" => vec![house().join("supervisor/tests/shim")],
                _ => vec![house().join(format!("tests/{module}.rs"))],
            };
            let mut files = Vec::new();
            for place in places {
                if place.is_dir() { sources(&place, &mut files) } else { files.push(place) }
            }
            let wanted = format!("fn {name}() {{");
            let has_it = |file: &PathBuf| {
                let text = fs::read_to_string(file).unwrap_or_default();
                text.match_indices(&wanted).any(|(at, _)| text[..at].trim_end().ends_with("#[test]"))
            };
            if !files.iter().any(has_it) {
                gone.push(format!("{number}: {test}"));
            }
        }
    }
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

#[test]
fn a_checker_in_a_comment_checks_nothing() {
    let text = "fn a() {\n    // invariants_hold(fleet)\n}\nfn b() {\n    c();\n}\nfn c() {\n    invariants_hold(fleet);\n}\n";
    assert_eq!((is_checked(text, "a"), is_checked(text, "b")), (false, true));
}
