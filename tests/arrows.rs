//! No circle between the files of a crate: of two that stand side by side, a file or a room, one may name the other, and not both, also not by way of
//! others. A name that a room hands on is that of the file that has it. What a room's own `mod.rs` and its files name of each other does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::house::CRATES;

/// A module by its path from the root of the crate.
type Module = Vec<String>;

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").filter(|part| !part.is_empty()).map(str::to_owned)
}

/// The modules of a crate with their text, without comments, tests and declarations of modules.
fn modules(src: &Path) -> BTreeMap<Module, String> {
    let (mut found, mut open) = (BTreeMap::new(), vec![src.to_owned()]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let name = path.strip_prefix(src).unwrap().with_extension("").display().to_string();
        if name.ends_with("tests")
            || name.ends_with("testing")
            || path.extension().is_none_or(|kind| kind != "rs")
        {
            continue;
        }
        let mut module: Module = name.split('/').map(str::to_owned).collect();
        if module[module.len() - 1] == "mod" || name == "main" || name == "lib" {
            module.pop();
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let lines = lines.filter(|line| !(line.ends_with(';') && line.trim_start().contains("mod ")));
        found.insert(module, lines.collect::<Vec<_>>().join("\n"));
    }
    found
}

/// A path that a text names, with the name that it is given there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    path: String,
    name: String,
}

/// The paths of a text that begin with one of some roots; those of a list in braces one by one.
fn paths(text: &str, roots: &[&str]) -> Vec<Named> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    for (at, _) in roots.iter().flat_map(|root| text.match_indices(root)) {
        if text[..at].ends_with(is_word) {
            continue;
        }
        let length = text[at..].find(|c| !is_word(c)).unwrap_or(text.len() - at);
        let (path, rest) = text[at..].split_at(length);
        match rest.strip_prefix('{').filter(|_| path.ends_with("::")) {
            Some(list) => found.extend(listed(path, list)),
            None => found.push(named(path, rest)),
        }
    }
    found
}

/// A path, with the name that stands behind it: its own unless `as` follows.
fn named(path: &str, rest: &str) -> Named {
    let alias = rest
        .strip_prefix(" as ")
        .and_then(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    let own = path.trim_end_matches("::self").rsplit("::").next();
    let path = path.trim_end_matches("::self").to_owned();
    Named { name: alias.or(own).unwrap_or_default().to_owned(), path }
}

/// The paths of a list, up to the brace that ends it.
fn listed(root: &str, list: &str) -> Vec<Named> {
    let (mut found, mut roots, mut item) = (Vec::new(), vec![root.to_owned()], String::new());
    for c in list.chars() {
        match c {
            '{' => roots.push(format!("{}{}", roots[roots.len() - 1], item.trim())),
            ',' | '}' => {
                let words = item.trim();
                if !words.is_empty() {
                    let end = words.find(' ').unwrap_or(words.len());
                    found.push(named(&format!("{}{}", roots[roots.len() - 1], &words[..end]), &words[end..]));
                }
                if c == '}' {
                    drop(roots.pop());
                }
            }
            c => {
                item.push(c);
                continue;
            }
        }
        item.clear();
        if roots.is_empty() {
            break;
        }
    }
    found
}

/// The house of one crate: its modules, and which names each of them hands on from another one.
struct House {
    modules: BTreeMap<Module, String>,
    handed_on: BTreeMap<Module, Vec<(String, Module)>>,
}

impl House {
    fn of(modules: BTreeMap<Module, String>) -> Self {
        let mut handed_on = BTreeMap::new();
        for (module, text) in &modules {
            let children =
                modules.keys().filter(|other| other.len() == module.len() + 1 && other.starts_with(module));
            let mut roots: Vec<String> = children.map(|child| format!("{}::", child[module.len()])).collect();
            roots.extend(["crate::", "super::", "self::"].map(str::to_owned));
            let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
            let statements = text.split(';').map(str::trim_start);
            let uses = statements
                .filter_map(|line| line[line.rfind("pub").unwrap_or(line.len())..].split_once(" use "));
            let named = uses.flat_map(|(_, what)| paths(what, &roots));
            let others = named.map(|one| (one.name, absolute(module, &one.path))).collect();
            handed_on.insert(module.clone(), others);
        }
        Self { modules, handed_on }
    }

    /// The module that has what a path leads to.
    fn target(&self, from: &Module, path: &str) -> Module {
        let mut open = absolute(from, path);
        // A name may be handed on more than once.
        for _ in 0..8 {
            let mut at = open.clone();
            while !at.is_empty() && !self.modules.contains_key(&at) {
                at.pop();
            }
            let name = open.get(at.len());
            let handed = name.and_then(|name| self.handed_on[&at].iter().find(|(handed, _)| handed == name));
            match handed {
                Some((_, to)) if *to != open => {
                    open = to.iter().chain(&open[at.len() + 1..]).cloned().collect();
                }
                Some(_) | None => return at,
            }
        }
        open
    }
}

/// A path from the root of the crate.
fn absolute(from: &Module, path: &str) -> Module {
    let is_relative = !path.starts_with("crate::");
    let mut full = if is_relative { from.clone() } else { Module::new() };
    for part in segments(path) {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(part),
        }
    }
    full
}

/// For each room, who names whom of those that stand in it.
fn arrows(house: &House) -> BTreeMap<Module, BTreeSet<(String, String)>> {
    let mut arrows: BTreeMap<Module, BTreeSet<(String, String)>> = BTreeMap::new();
    for (from, text) in &house.modules {
        for named in paths(text, &["crate::", "super::", "self::"]) {
            let to = house.target(from, &named.path);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                arrows.entry(from[..common].to_vec()).or_default().insert((a.clone(), b.clone()));
            }
        }
    }
    arrows
}

/// All that arrows lead to from one, itself as well.
fn reached<'a>(arrows: &'a BTreeSet<(String, String)>, from: &'a String) -> BTreeSet<&'a String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        if seen.insert(at) {
            open.extend(arrows.iter().filter(|(name, _)| name == at).map(|(_, to)| to));
        }
    }
    seen
}

/// The arrows of circles: from the end of each, others lead back to its beginning.
pub(crate) fn circles(arrows: &BTreeSet<(String, String)>) -> Vec<&(String, String)> {
    arrows.iter().filter(|(from, to)| reached(arrows, to).contains(from)).collect()
}

/// Returns the direct dependencies of a room, without those that its other dependencies lead to.
fn built_on(arrows: &BTreeSet<(String, String)>, room: &str) -> String {
    let named = arrows.iter().filter(|(from, _)| from == room).map(|(_, to)| to);
    let named: BTreeMap<&String, _> = named.map(|to| (to, reached(arrows, to))).collect();
    let is_led_to = |to: &String| named.iter().any(|(other, reached)| *other != to && reached.contains(to));
    let direct: Vec<&str> = named.keys().filter(|to| !is_led_to(to)).map(|to| to.as_str()).collect();
    direct.join(" ")
}

fn house() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn no_two_files_name_each_other() {
    let (mut faults, mut count) = (Vec::new(), 0);
    for dir in CRATES {
        let src = house().join(dir).join("src");
        for (room, arrows) in arrows(&House::of(modules(&src))) {
            count += arrows.len();
            let room = room.join("/");
            let found = circles(&arrows).into_iter();
            faults.extend(found.map(|(from, to)| format!("{dir}/src/{room}: {from} names {to}")));
        }
    }
    assert!(count > 750, "only {count} arrows were found");
    assert!(faults.is_empty(), "a circle:\n{}", faults.join("\n"));
}

/// A line of the page about the architecture: a crate or a room, with the names behind its arrow.
type Listed = (String, String);

/// The crates that the page lists from the bottom up, each with its rooms.
fn listed_crates() -> Vec<(Listed, Vec<Listed>)> {
    let page = fs::read_to_string(house().join("docs/architecture.md")).unwrap();
    let (_, rooms) = page.split_once("**The supervisor has crates").unwrap();
    let (_, list) = rooms.split_once("```text\n").unwrap();
    let mut crates: Vec<(Listed, Vec<Listed>)> = Vec::new();
    for line in list.split("```").next().unwrap().lines() {
        let (text, others) = line.split_once('→').unwrap_or((line, ""));
        let named = (text.split_whitespace().next().unwrap().to_owned(), others.trim().to_owned());
        match line.strip_prefix("  ") {
            Some(_) => crates.last_mut().unwrap().1.push(named),
            None => crates.push((named, Vec::new())),
        }
    }
    crates
}

/// Arrows that point from a name to a later name of a list.
fn points_up<'a>(arrows: &'a BTreeSet<(String, String)>, list: &[&Listed]) -> Vec<&'a (String, String)> {
    let floor = |name: &String| list.iter().position(|(listed, _)| listed == name);
    arrows.iter().filter(|(from, to)| floor(from).zip(floor(to)).is_some_and(|(a, b)| a < b)).collect()
}

/// Compares the list of the page with arrows: the order, and the names behind each arrow. Returns the faults.
fn faults(place: &str, list: &[&Listed], arrows: &BTreeSet<(String, String)>) -> Vec<String> {
    let up = points_up(arrows, list)
        .into_iter()
        .map(|(from, to)| format!("{place}: {from} names {to}, which is above"));
    let found = list.iter().map(|(name, _)| (name.clone(), built_on(arrows, name)));
    let wrong = found.filter(|line| !list.contains(&line));
    up.chain(wrong.map(|(name, others)| format!("{place}: {name} → {others}"))).collect()
}

#[test]
fn every_crate_of_the_supervisor_is_listed_with_its_dependencies_and_names_none_above_it() {
    let listed = listed_crates();
    let crates: Vec<&Listed> = listed.iter().map(|(name, _)| name).collect();
    let dirs = CRATES.iter().filter(|dir| dir.starts_with("supervisor") && !dir.ends_with("/shim"));
    let names: Vec<&str> = dirs.clone().map(|dir| dir.rsplit('/').next().unwrap()).collect();
    assert_eq!(crates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
    let mut arrows = BTreeSet::new();
    for dir in dirs {
        let text = fs::read_to_string(house().join(dir).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let from = dir.rsplit('/').next().unwrap();
        let below = manifest["dependencies"].as_table().unwrap().keys();
        arrows
            .extend(below.filter(|to| names.contains(&to.as_str())).map(|to| (from.to_owned(), to.clone())));
    }
    let faults = faults("the supervisor", &crates, &arrows);
    assert!(faults.is_empty(), "docs/architecture.md lists something else than:\n{}", faults.join("\n"));
}

#[test]
fn every_room_of_a_crate_is_listed_with_what_it_is_built_on_and_names_none_above_it() {
    let mut wrong = Vec::new();
    for ((name, _), rooms) in listed_crates().iter().filter(|(_, rooms)| !rooms.is_empty()) {
        let dir = if name == "supervisor" { name.clone() } else { format!("supervisor/{name}") };
        let src = house().join(dir).join("src");
        let files = fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().path());
        let files: BTreeSet<String> =
            files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        let is_listed = |file: &&String| {
            ["main", "lib"].contains(&file.as_str())
                || file.ends_with("_tests")
                || rooms.iter().any(|(room, _)| room == *file)
        };
        let unlisted: Vec<&String> = files.iter().filter(|file| !is_listed(file)).collect();
        assert!(
            unlisted.is_empty(),
            "docs/architecture.md does not list these rooms of {name}: {unlisted:?}"
        );
        let arrows = arrows(&House::of(modules(&src))).remove(&Module::new()).unwrap_or_default();
        wrong.extend(faults(name, &rooms.iter().collect::<Vec<_>>(), &arrows));
    }
    assert!(wrong.is_empty(), "docs/architecture.md lists something else than:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let arrows = |pairs: &[&str]| {
        let pairs = pairs.iter().map(|pair| pair.split_at(1));
        pairs.map(|(from, to)| (from.to_owned(), to.to_owned())).collect::<BTreeSet<_>>()
    };
    assert!(circles(&arrows(&["ab", "bc", "ac"])).is_empty());
    assert_eq!(built_on(&arrows(&["ab", "bc", "ac", "ad"]), "a"), "b d");
    assert_eq!(circles(&arrows(&["ab", "bc", "cb", "cd", "de", "ed"])).len(), 4);
    assert_eq!(circles(&arrows(&["ab", "bc", "ca"])).len(), 3);
}

#[test]
fn a_name_is_the_files_that_has_it_and_not_the_rooms_that_hands_it_on() {
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Module>();
    let text = "use super::{b::B, c::{self, C}, E as F};\nuse crate::room::d::D;\nsuper::G::new();\nmy_crate::x::y()";
    let room = "pub(crate) use e::E;\npub use self::f::{F as G, H};";
    let files = ["a", "b", "c", "d", "e", "f"]
        .map(|file| (format!("room/{file}"), if file == "a" { text } else { "" }));
    let files = files.iter().map(|(path, text)| (path.as_str(), *text)).chain([("room", room)]);
    let house = House::of(files.map(|(path, text)| (module(path), text.to_owned())).collect());
    let found = super::arrows::arrows(&house);
    let names: Vec<&str> = found[&module("room")].iter().map(|(_, to)| to.as_str()).collect();
    assert_eq!(names, ["b", "c", "d", "e", "f"]);
}
