//! The guides for those who change this program name files that exist.

use std::fs;
use std::path::Path;

use super::house::CRATES;

/// The pages for those who change this program.
const PAGES: [&str; 9] = [
    "docs/architecture.md",
    "docs/architecture/life-of-a-task.md",
    "docs/architecture/life-of-a-run.md",
    "docs/architecture/end-by-proof.md",
    "docs/architecture/sandbox.md",
    "docs/architecture/transaction.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/security.md",
];

/// The names of files and directories in a page: words in backticks that look like a path and stand for one.
fn paths_named(page: &str) -> Vec<&str> {
    const ENDINGS: [&str; 6] = [".rs", ".toml", ".sql", ".md", ".survivors", "/"];
    const TOPS: [&str; 6] = ["kernel/", "policies/", "supervisor/", "workspace/", "tests/", "docs/"];
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| {
            TOPS.iter().any(|top| word.starts_with(top)) || ENDINGS.iter().any(|end| word.ends_with(end))
        })
        // A pattern, a placeholder, a command, or a directory of the configuration.
        .filter(|word| !word.contains(['*', '…', '<', ' ', '!']) && !word.contains(".d/"))
        .filter(|word| !word.split(['/', '.']).any(is_placeholder))
        .collect()
}

/// `NAME`, `NNNN`: the reader puts a name there.
fn is_placeholder(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase())
}

#[test]
fn every_path_that_the_guides_name_exists() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crates = CRATES.map(|dir| format!("{dir}/src"));
    let bases: Vec<&str> = ["", "supervisor"].into_iter().chain(crates.iter().map(String::as_str)).collect();
    let (mut gone, mut seen) = (Vec::new(), 0);
    for page in PAGES {
        let text = fs::read_to_string(house.join(page)).unwrap();
        // Rooms to come are not there yet.
        let (before, rest) = text.split_once("## Rooms to come").unwrap_or((&text, ""));
        let after = rest.split_once("\n## ").map_or("", |(_, after)| after);
        for path in paths_named(before).into_iter().chain(paths_named(after)) {
            seen += 1;
            if !bases.iter().any(|base| house.join(base).join(path).exists()) {
                gone.push(format!("{page} names {path}"));
            }
        }
    }
    assert!(seen > 50, "no paths were found");
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}
