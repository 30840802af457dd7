//! The house rules that a compiler does not hold: who imports whom, who may speak to which foreign world, how files and decisions look.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories of the crates, from the bottom up: each may depend on crates before it.
pub(crate) const CRATES: [&str; 17] = [
    "kernel",
    "policies",
    "workspace/lease",
    "workspace",
    "supervisor/shim",
    "supervisor/base",
    "supervisor/setup",
    "supervisor/host",
    "supervisor/service",
    "supervisor/api",
    "supervisor/net",
    "supervisor/delivery",
    "supervisor/daemon",
    "supervisor/upkeep",
    "supervisor/verbs",
    "supervisor/bridges",
    "supervisor",
];
/// Crates that other programs can use, with the crates of the project that each may depend on.
const LIBRARIES: [(&str, &[&str]); 5] = [
    ("kernel", &[]),
    ("policies", &[]),
    ("workspace/lease", &[]),
    ("workspace", &["workspace/lease"]),
    ("supervisor/shim", &["policies", "workspace/lease"]),
];
/// Largest share of the production lines that one crate may hold, in percent.
const SHARE: usize = 25;
/// Packages that belong into the daemon and the command line alone.
const RUNTIMES: [&str; 3] = ["anyhow", "clap", "tokio"];
/// Libraries that a process of a run must not contain, directly or indirectly. Each run has such processes, so they
/// stay small and start fast.
const LARGE: [&str; 7] = ["axum", "clap", "git2", "hyper", "rusqlite", "tokio", "tracing"];
/// The most production lines of a file.
const LINES: usize = 900;
/// The foreign worlds, and where each may be spoken to.
const WORLDS: [(&str, &[&str]); 10] = [
    ("rusqlite", &["kernel/src/store"]),
    ("git2", &["workspace/src"]),
    ("landlock", &["policies/src"]),
    ("caps", &["policies/src"]),
    ("seccompiler", &["policies/src"]),
    (
        "axum",
        &[
            "supervisor/base/src/response.rs",
            "supervisor/api/src",
            "supervisor/bridges/src/dashboard",
            "supervisor/src/resources",
        ],
    ),
    ("rmcp", &["supervisor/src/mcp"]),
    ("crossterm", &["supervisor/base/src/terminal"]),
    ("ratatui", &["supervisor/base/src/terminal", "supervisor/src/top"]),
    ("serde_saphyr", &["supervisor/setup/src/automation", "supervisor/setup/src/roster"]),
];

/// The rooms of the kernel, and which others each may name. Files outside of them may name any.
const KERNEL: [(&str, &[&str]); 6] = [
    ("model", &[]),
    ("rules", &["model"]),
    ("blobs", &["model"]),
    ("store", &["model"]),
    ("transfer", &["model", "rules", "blobs", "store"]),
    ("board", &["model", "rules", "blobs", "store", "transfer"]),
];

/// The rooms of the daemon, and which others each may name. Files outside of them may name any.
const DAEMON: [(&str, &[&str]); 4] =
    [("gc", &[]), ("run", &["gc"]), ("owner", &["run"]), ("simulation", &["run", "owner"])];

pub(crate) fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The Rust files beneath a directory, with their paths from the house's root.
fn sources(dir: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![house().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(house()).unwrap().display().to_string(), text));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn production() -> Vec<(String, String)> {
    CRATES.iter().flat_map(|dir| sources(&format!("{dir}/src"))).collect()
}

/// A file without its tests, which stand at its end.
pub(crate) fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap()
}

/// True if a file has tests alone, or helpers of tests.
pub(crate) fn is_of_tests(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("testing.rs") || path.contains("/simulation/")
}

/// The name of the crate in a directory.
fn name_of(dir: &str) -> &str {
    dir.rsplit('/').next().unwrap()
}

#[test]
fn imports_point_one_way() {
    for (floor, dir) in CRATES.into_iter().enumerate() {
        let library = LIBRARIES.iter().find(|(library, _)| *library == dir);
        let below = library.map_or(&CRATES[..floor], |(_, below)| below);
        let text = fs::read_to_string(house().join(dir).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some(name_of(dir)));
        for section in ["dependencies", "build-dependencies"] {
            let Some(found) = manifest.get(section).and_then(toml::Value::as_table) else { continue };
            for other in CRATES {
                let is_named = found.contains_key(name_of(other));
                assert!(!is_named || below.contains(&other), "{dir} depends on {other}");
            }
            for (world, homes) in WORLDS {
                let own = homes.iter().any(|home| home.starts_with(&format!("{dir}/src")));
                assert!(
                    own || !found.contains_key(world),
                    "{dir} depends on {world}, which belongs to {homes:?}"
                );
            }
            for runtime in RUNTIMES {
                let may = library.is_none() || !found.contains_key(runtime);
                assert!(may, "{dir} depends on {runtime}");
            }
        }
    }
}

/// All packages that a package is built with, by `Cargo.lock`, which has the crates that its tests need too.
fn built_with(package: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(house().join("Cargo.lock")).unwrap();
    let lock: toml::Table = toml::from_str(&text).unwrap();
    let packages = lock["package"].as_array().unwrap();
    let (mut found, mut open) = (BTreeSet::new(), vec![package.to_owned()]);
    while let Some(name) = open.pop() {
        if !found.insert(name.clone()) {
            continue;
        }
        for package in packages.iter().filter(|package| package["name"].as_str() == Some(&name)) {
            let named = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
            // `name`, or `name version` where there are several.
            open.extend(named.map(|entry| entry.as_str().unwrap().split(' ').next().unwrap().to_owned()));
        }
    }
    found
}

#[test]
fn the_processes_of_a_run_are_built_on_nothing_large() {
    let (shim, whole) = (built_with("shim"), built_with("supervisor"));
    assert!(shim.contains("policies") && shim.contains("landlock"), "{shim:?}");
    for large in LARGE {
        assert!(whole.contains(large), "{large} is in nothing, so its absence proves nothing");
        assert!(!shim.contains(large), "the shim's crate is built with {large}");
    }
}

#[test]
fn each_foreign_world_is_spoken_to_in_one_place() {
    let mut strays = Vec::new();
    for (path, text) in production() {
        for (world, homes) in WORLDS {
            let named = format!("{world}::");
            let speaks = without_tests(&text).lines().any(|line| {
                let line = line.trim_start();
                !line.starts_with("//")
                    && line
                        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                        .any(|word| word.starts_with(&named))
            });
            if speaks && !homes.iter().any(|home| path.starts_with(home)) {
                strays.push(format!("{path} speaks to {world}, which belongs to {homes:?}"));
            }
        }
    }
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

/// Returns the rooms that paths with a prefix name: `crate::model::…` names `model`. A list in braces names no room,
/// and is refused.
fn rooms_named<'a>(text: &'a str, prefix: &'a str) -> Vec<&'a str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.match_indices(prefix).map(move |(at, _)| (line, at)));
    paths
        .filter(|(line, at)| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .filter_map(|(line, at)| {
            let rest = &line[at + prefix.len()..];
            let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            // An exported macro lies at the root of its crate, wherever its file is.
            (!rest[name.len()..].starts_with('!')).then_some(name)
        })
        .collect()
}

/// Returns the greatest number of consecutive `super` in a text.
fn steps_up(text: &str) -> usize {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let longest = |line: &str| (1..5).take_while(|count| line.contains(&"super::".repeat(*count))).count();
    lines.map(longest).max().unwrap_or_default()
}

/// Refuses files of a directory's rooms that name others than they may, in paths that begin with a prefix.
fn require_arrows(dir: &str, prefix: &str, rooms: &[(&str, &[&str])]) {
    let (mut strays, mut seen) = (Vec::new(), 0);
    for (path, text) in sources(dir) {
        let within = path.strip_prefix(&format!("{dir}/")).unwrap();
        let Some((room, below)) = rooms.iter().find(|(name, _)| within.starts_with(&format!("{name}/")))
        else {
            continue;
        };
        if path.ends_with("tests.rs") || path.contains("event_snapshots") {
            continue;
        }
        let text = without_tests(&text);
        for named in rooms_named(text, prefix) {
            seen += 1;
            if named != *room && !below.contains(&named) {
                strays.push(format!("{path} names {prefix}{named}; {room} may name {below:?}"));
            }
        }
        // `a/b.rs` is one step below its room, `a/mod.rs` is the room.
        let deep = within.split('/').count() - usize::from(within.ends_with("/mod.rs")) - 1;
        if steps_up(text) > deep {
            strays.push(format!("{path} leaves its room {room} by `super`"));
        }
    }
    assert!(seen > 20, "only {seen} paths were found");
    assert!(strays.is_empty(), "{}", strays.join("\n"));
}

#[test]
fn the_rooms_of_the_kernel_name_only_those_below_them() {
    require_arrows("kernel/src", "crate::", &KERNEL);
}

#[test]
fn the_rooms_of_the_daemon_name_only_those_below_them() {
    require_arrows("supervisor/daemon/src", "crate::", &DAEMON);
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let all = CRATES.iter().flat_map(|dir| sources(dir)).chain(sources("tests"));
    let silent: Vec<String> =
        all.filter(|(_, text)| !text.starts_with("//! ")).map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "no `//!` in the first line of {silent:?}");
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let long: Vec<String> = production()
        .iter()
        .map(|(path, text)| (path, without_tests(text).lines().count()))
        .filter(|(path, lines)| *lines > LINES && !path.ends_with("tests.rs"))
        .map(|(path, lines)| format!("{path}: {lines}"))
        .collect();
    assert!(long.is_empty(), "over {LINES} lines: {long:?}");
}

/// A change in one crate leaves the others as they were built.
#[test]
fn no_crate_holds_more_than_its_share() {
    let lines = |dir: &str| -> usize {
        let files = sources(&format!("{dir}/src"));
        let production = files.iter().filter(|(path, _)| !is_of_tests(path));
        production.map(|(_, text)| without_tests(text).lines().count()).sum()
    };
    let all: usize = CRATES.iter().map(|dir| lines(dir)).sum();
    let large: Vec<String> = CRATES
        .iter()
        .map(|dir| (dir, 100 * lines(dir) / all))
        .filter(|(_, share)| *share > SHARE)
        .map(|(dir, share)| format!("{dir}: {share} %"))
        .collect();
    assert!(large.is_empty(), "over {SHARE} % of the lines: {large:?}");
}

/// A printed line is not enough: the runner hides the output of a test that passes.
#[test]
fn every_skip_is_counted() {
    let all = CRATES.iter().flat_map(|dir| sources(dir)).chain(sources("tests"));
    let printed = |line: &str| line.contains("println!(\"skipped") && !line.contains("contains(");
    let uncounted: Vec<String> = all
        .filter(|(path, text)| !path.starts_with("tests/skips/") && text.lines().any(printed))
        .map(|(path, _)| path)
        .collect();
    assert!(uncounted.is_empty(), "these print a skip that nothing counts; call skips::skip: {uncounted:?}");
}

#[test]
fn nothing_is_unsafe_and_no_lint_is_silenced_without_a_reason() {
    let manifest = fs::read_to_string(house().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    for dir in CRATES {
        let text = fs::read_to_string(house().join(dir).join("Cargo.toml")).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{dir} has lints of its own");
        for (path, text) in sources(dir) {
            let silenced = text.lines().any(|line| {
                line.trim_start().starts_with("#[allow(") || line.trim_start().starts_with("#![allow(")
            });
            assert!(!silenced, "{path} has an `allow`");
        }
    }
}

/// Parts of a decision, in this order. Consequences are optional.
const PARTS: [&str; 3] = ["Context", "Decision", "Consequences"];

/// Returns the number and the title of a decision, or what is wrong with its form. `docs/decisions/README.md` describes it.
fn decision<'a>(name: &str, text: &'a str) -> Result<(&'a str, &'a str), &'static str> {
    let (first, rest) = text.split_once("\n\n").ok_or("there is no blank line after the first line")?;
    let (number, title) = first
        .strip_prefix("# ")
        .and_then(|line| line.split_once(": "))
        .ok_or("the first line is not `# NNNN: Title`")?;
    let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || !name.starts_with(&format!("{number}-")) {
        return Err("the title and the file name do not begin with the same four digits");
    }
    if title.starts_with(char::is_lowercase) || title.ends_with('.') || title.contains(['\n', '|']) {
        return Err("the title is not one line in sentence case, without a full stop or a `|`");
    }
    let (date, body) = rest.split_once("\n\n").ok_or("there is no blank line after the date")?;
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    if shape != "0000-00-00" {
        return Err("no date YYYY-MM-DD follows the title");
    }
    if body.lines().any(|line| line.starts_with('#')) {
        return Err("a heading follows the title");
    }
    let bold = body.split("\n\n").filter_map(|paragraph| paragraph.strip_prefix("**"));
    let parts: Vec<&str> = bold.map(|paragraph| paragraph.split(".**").next().unwrap_or_default()).collect();
    if !body.starts_with("**Context.**") || (parts != PARTS && parts != PARTS[..2]) {
        return Err("the parts are not **Context.**, **Decision.** and **Consequences.**, in this order");
    }
    Ok((number, title))
}

#[test]
fn each_decision_has_the_form_and_is_in_the_index() {
    let dir = house().join("docs/decisions");
    let (mut faults, mut rows) = (Vec::new(), Vec::new());
    let files = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.filter(|name| name != "README.md").collect();
    names.sort();
    for name in &names {
        match decision(name, &fs::read_to_string(dir.join(name)).unwrap()) {
            Ok((number, title)) => rows.push(format!("| [{number}]({name}) | {title} |")),
            Err(fault) => faults.push(format!("docs/decisions/{name}: {fault}")),
        }
    }
    assert!(!names.is_empty(), "no decisions were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for two in names.windows(2) {
        assert!(two[0][..4] != two[1][..4], "{} and {} have one number", two[0], two[1]);
    }
    let index = fs::read_to_string(dir.join("README.md")).unwrap();
    let listed: Vec<&str> = index.lines().filter(|line| line.starts_with("| [")).collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !listed.contains(&row.as_str())).collect();
    assert!(missing.is_empty(), "docs/decisions/README.md lacks these rows: {missing:#?}");
    assert_eq!(listed, rows, "docs/decisions/README.md lists other decisions, or in another order");
}

#[test]
fn a_decision_that_lacks_a_part_is_found() {
    let whole = "# 0007: A title\n\n2026-11-22\n\n**Context.** Why.\n\n**Decision.**\n\n* What.\n\n**Consequences.** Cost.\n";
    let of = |text: &str| decision("0007-a-title.md", text).is_ok();
    assert_eq!(decision("0007-a-title.md", whole), Ok(("0007", "A title")));
    assert!(of(whole.split("\n\n**Consequences.**").next().unwrap()));
    assert!(decision("0008-a-title.md", whole).is_err());
    for (from, to) in [
        ("# 0007: A", "# 7. A"),
        (": A title", ": a title"),
        ("title\n", "title.\n"),
        ("2026-11-22\n\n", ""),
        ("2026-11-22", "Date: 2026-11-22"),
        ("**Context.** Why.\n\n", ""),
        ("**Decision.**", "The decision:"),
        ("**Consequences.**", "**Not done.**"),
        ("* What.", "## What"),
    ] {
        let broken = whole.replace(from, to);
        assert!(broken != whole && !of(&broken), "{broken}");
    }
}

/// Numbers of the decisions that a text names: `decision 0031`, `decisions 0091 and 0104`.
fn decisions_named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let (mut named, mut follows) = (BTreeSet::new(), false);
    for word in words {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if follows && is_number {
            named.insert(word);
        }
        let is_joined = follows && (is_number || word == "and");
        follows = is_joined || ["decision", "decisions"].contains(&word.to_ascii_lowercase().as_str());
    }
    named
}

/// The pages of the manual, without the index of the decisions, with their paths.
fn pages() -> Vec<(String, String)> {
    let (mut found, mut open) = (Vec::new(), vec![house().join("docs")]);
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md")
                && !path.ends_with("decisions/README.md")
            {
                found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn each_decision_is_named_by_the_code_or_the_manual_and_each_that_the_code_names_exists() {
    let schema = "kernel/src/store/schema.sql";
    let mut code: Vec<(String, String)> = CRATES.iter().flat_map(|dir| sources(dir)).collect();
    code.push((schema.to_owned(), fs::read_to_string(house().join(schema)).unwrap()));
    let files = fs::read_dir(house().join("docs/decisions")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let decisions: Vec<String> = files.filter(|name| name != "README.md").collect();
    let numbers: BTreeSet<&str> = decisions.iter().map(|name| &name[..4]).collect();

    let named: Vec<(&str, &str)> = code
        .iter()
        .flat_map(|(path, text)| decisions_named(text).into_iter().map(move |number| (path.as_str(), number)))
        .collect();
    let unknown: Vec<_> = named.iter().filter(|(_, number)| !numbers.contains(number)).collect();
    assert!(unknown.is_empty(), "docs/decisions has no file of these numbers (four digits): {unknown:?}");

    let in_code: BTreeSet<&str> = named.into_iter().map(|(_, number)| number).collect();
    let pages = pages();
    let is_linked =
        |name: &str| pages.iter().any(|(path, text)| !path.ends_with(name) && text.contains(name));
    let unnamed: Vec<&String> =
        decisions.iter().filter(|name| !in_code.contains(&name[..4]) && !is_linked(name)).collect();
    assert!(unnamed.is_empty(), "neither the code nor the manual names these decisions: {unnamed:?}");
}

#[test]
fn a_decision_that_a_comment_names_is_found() {
    let of = |text| decisions_named(text).into_iter().collect::<Vec<_>>();
    assert_eq!(of("//! See decisions 0091 and\n//! 0104. The 12 others"), ["0091", "0104"]);
    assert_eq!(of("// Decision 0031: a limit of 64 runs"), ["0031"]);
    assert_eq!(of("// Decision 31. (decision 0072)"), ["0072", "31"]);
    assert!(of("// a decision of 2026, undecision 0031").is_empty());
}

/// Each root has a copy of the binary.
#[test]
fn a_release_has_no_debug_information() {
    let manifest: toml::Table = fs::read_to_string(house().join("Cargo.toml")).unwrap().parse().unwrap();
    let release = &manifest["profile"]["release"];
    assert_eq!(release["debug"].as_bool(), Some(false), "{release}");
    assert!(["debuginfo", "symbols"].contains(&release["strip"].as_str().unwrap()), "{release}");
}

/// Cargo does not strip the program of a package that an override without `strip` names.
#[test]
fn no_override_leaves_the_symbols_in_a_program_of_a_release() {
    let manifest: toml::Table = fs::read_to_string(house().join("Cargo.toml")).unwrap().parse().unwrap();
    for profile in ["release", "shim"] {
        assert_eq!(manifest["profile"][profile]["strip"].as_str(), Some("symbols"));
        let overrides = manifest["profile"][profile].get("package").and_then(toml::Value::as_table);
        for package in ["supervisor", "shim"] {
            let is_named = overrides.is_some_and(|packages| packages.contains_key(package));
            assert!(!is_named, "[profile.{profile}.package.{package}]");
        }
    }
}
