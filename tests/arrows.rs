//! No circle between the files of `supervisor/src` and of `supervisor/shim/src`: of two that stand side by side, a file or a room, one may name the other, and
//! not both. What a room's own `mod.rs` and its files name of each other does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path from the root of the crate.
type Module = Vec<String>;

/// Files that still name each other, by the room in which they stand. A room is taken out of here, never added.
const LEFT: [(&str, &[&str]); 1] = [("lanes", &["environment", "start"])];

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
        if name.ends_with("tests") || path.extension().is_none_or(|kind| kind != "rs") {
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

/// The paths of a text that begin with `crate`, `super` or `self`; those of a list in braces one by one.
fn paths(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    for (at, _) in ["crate::", "super::", "self::"].iter().flat_map(|root| text.match_indices(root)) {
        if text[..at].ends_with(is_word) {
            continue;
        }
        let path = &text[at..at + text[at..].find(|c| !is_word(c)).unwrap_or(text.len() - at)];
        let list = text[at + path.len()..].strip_prefix('{').filter(|_| path.ends_with("::"));
        let Some(list) = list else {
            found.push(path.to_owned());
            continue;
        };
        let mut depth = 1;
        let end = list.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let words = list[..end.unwrap()].split(|c| !is_word(c)).filter(|word| !word.is_empty());
        found.extend(words.map(|word| format!("{path}{word}")));
    }
    found
}

/// The module that a path in another one leads to.
fn target(from: &Module, path: &str, modules: &BTreeMap<Module, String>) -> Module {
    let mut full = if path.starts_with("crate") { Module::new() } else { from.clone() };
    for part in segments(path) {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(full.pop()),
            _ => full.push(part),
        }
    }
    while !full.is_empty() && !modules.contains_key(&full) {
        full.pop();
    }
    full
}

/// For each room, who names whom of those that stand in it.
fn arrows(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<(String, String)>> {
    let mut arrows: BTreeMap<Module, BTreeSet<(String, String)>> = BTreeMap::new();
    for (from, text) in modules {
        for path in paths(text) {
            let to = target(from, &path, modules);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                arrows.entry(from[..common].to_vec()).or_default().insert((a.clone(), b.clone()));
            }
        }
    }
    arrows
}

/// The arrows on which somebody comes back to where they began, or gets from one circle to another.
fn circles(mut arrows: BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    loop {
        let named: BTreeSet<String> = arrows.iter().map(|(_, to)| to.clone()).collect();
        let naming: BTreeSet<String> = arrows.iter().map(|(from, _)| from.clone()).collect();
        let before = arrows.len();
        arrows.retain(|(from, to)| named.contains(from) && naming.contains(to));
        if arrows.len() == before {
            return arrows;
        }
    }
}

#[test]
fn no_two_files_of_the_supervisor_name_each_other() {
    let faults = faults("src", 300, &LEFT);
    assert!(faults.is_empty(), "a circle:\n{}", faults.join("\n"));
}

#[test]
fn no_two_files_of_the_shim_name_each_other() {
    let faults = faults("shim/src", 30, &[]);
    assert!(faults.is_empty(), "a circle:\n{}", faults.join("\n"));
}

/// The circles in a directory of `supervisor` that are not left, and those that are left and no circle any more.
fn faults(dir: &str, least: usize, left: &[(&str, &[&str])]) -> Vec<String> {
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir));
    let arrows = arrows(&modules);
    let count: usize = arrows.values().map(BTreeSet::len).sum();
    assert!(count > least, "only {count} arrows were found in {dir}");
    let mut faults = Vec::new();
    for (room, arrows) in arrows {
        let room = room.join("/");
        let left = left.iter().find(|(named, _)| *named == room).map_or(&[][..], |(_, files)| files);
        let in_circle = circles(arrows);
        let is_left = |name: &String| left.contains(&name.as_str());
        let new = in_circle.iter().filter(|(from, to)| !(is_left(from) && is_left(to)));
        faults.extend(new.map(|(from, to)| format!("supervisor/{dir}/{room}: {from} names {to}")));
        let cleared =
            left.iter().filter(|file| !in_circle.iter().any(|(from, to)| from == *file || to == *file));
        faults
            .extend(cleared.map(|file| format!("supervisor/{dir}/{room}: {file} is in no circle any more")));
    }
    faults
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let arrows =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert!(circles(arrows(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    assert_eq!(circles(arrows(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])).len(), 2);
    let module = |path: &str| path.split('/').map(str::to_owned).collect::<Module>();
    let text = "use super::{b::B, c};\nuse crate::room::d::D;\nmy_crate::x::y()";
    let modules = [("room", ""), ("room/a", text), ("room/b", ""), ("room/c", ""), ("room/d", "")];
    let modules = modules.map(|(path, text)| (module(path), text.to_owned())).into();
    let found = super::arrows::arrows(&modules);
    let names: Vec<&str> = found[&module("room")].iter().map(|(_, to)| to.as_str()).collect();
    assert_eq!(names, ["b", "c", "d"]);
}
