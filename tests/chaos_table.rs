//! The table of chaos in docs/testing.md is whole, and every test that it names exists.

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
