//! Imports of the dashboard's JavaScript: each name exists where it is imported from, and no two modules need each other.
//!
//! A browser reports such a fault only when a person opens the page that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use super::arrows::circles;

/// A module of the page.
#[derive(Default)]
struct Module {
    text: String,
    /// The text without its import statements.
    body: String,
    exports: BTreeSet<String>,
    /// Modules that are loaded with this one.
    needs: Vec<Import>,
    /// Modules that are loaded on demand, or named in a type.
    others: Vec<PathBuf>,
}

/// An import statement.
struct Import {
    from: PathBuf,
    names: Vec<Name>,
}

/// A name of another module; `*` for the whole module.
struct Name {
    theirs: String,
    own: String,
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bridges/src/dashboard/page")
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// Resolves a path of an import, relative to the file that has it.
fn resolve(file: &Path, path: &str) -> PathBuf {
    let mut found = PathBuf::new();
    for part in file.parent().unwrap().join(path).components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// The names of a list such as `a, b as c`.
fn listed(list: &str) -> Vec<Name> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let name = |name: &str| {
        let (theirs, own) = name.split_once(" as ").unwrap_or((name, name));
        Name { theirs: theirs.to_owned(), own: own.to_owned() }
    };
    names.map(name).collect()
}

fn parse(file: &Path, text: &str) -> Module {
    let statement = regex(r#"(?m)^import\s+(?:\*\s+as\s+(\w+)|\{([^}]*)\})\s+from\s+"([^"]+)";"#);
    let on_demand = regex(r#"\bimport\(["']([^"'$]+)["']\)"#);
    let export = regex(r"(?m)^export\s+(?:async\s+)?(?:function\*?|const|let|class)\s+(\w+)");
    let export_list = regex(r"(?m)^export\s+\{([^}]*)\};");
    let of_statement = |found: regex::Captures<'_>| {
        let whole = found.get(1).map(|own| Name { theirs: "*".to_owned(), own: own.as_str().to_owned() });
        let names = found.get(2).map(|names| listed(names.as_str())).unwrap_or_default();
        Import { from: resolve(file, &found[3]), names: names.into_iter().chain(whole).collect() }
    };
    let lists = export_list.captures_iter(text).flat_map(|found| listed(&found[1]));
    Module {
        text: text.to_owned(),
        body: statement.replace_all(text, "").into_owned(),
        exports: export
            .captures_iter(text)
            .map(|found| found[1].to_owned())
            .chain(lists.map(|name| name.own))
            .collect(),
        needs: statement.captures_iter(text).map(of_statement).collect(),
        others: on_demand.captures_iter(text).map(|found| resolve(file, &found[1])).collect(),
    }
}

/// All modules of the page, by their paths.
fn modules() -> BTreeMap<PathBuf, Module> {
    let (mut found, mut open) = (BTreeMap::new(), vec![page()]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|kind| kind == "js") {
            let module = parse(&path, &fs::read_to_string(&path).unwrap());
            found.insert(path, module);
        }
    }
    assert!(found.len() > 100, "only {} modules were found", found.len());
    found
}

/// Faults of the imports of one module.
fn faults(file: &Path, modules: &BTreeMap<PathBuf, Module>) -> Vec<String> {
    let module = &modules[file];
    let mut faults = Vec::new();
    let statements = regex(r"(?m)^import\b[^(]").find_iter(&module.text).count();
    if statements != module.needs.len() {
        faults.push(format!("{statements} imports, of which {} are understood", module.needs.len()));
    }
    for path in module.others.iter().filter(|path| !modules.contains_key(*path)) {
        faults.push(format!("there is no {}", path.display()));
    }
    for import in &module.needs {
        let Some(from) = modules.get(&import.from) else {
            faults.push(format!("there is no {}", import.from.display()));
            continue;
        };
        for Name { theirs, own } in &import.names {
            if theirs != "*" && !from.exports.contains(theirs) {
                faults.push(format!("{} does not export {theirs}", import.from.display()));
            }
            if regex(&format!(r"\b{own}\b")).find(&module.body).is_none() {
                faults.push(format!("{own} is imported and not used"));
            }
        }
    }
    faults
}

/// Static imports, each from a module to a module that it needs.
fn arrows(modules: &BTreeMap<PathBuf, Module>) -> BTreeSet<(String, String)> {
    let name = |path: &Path| path.display().to_string();
    let needs = |(file, module): (&PathBuf, &Module)| {
        let needs = module.needs.iter().map(|import| (name(file), name(&import.from)));
        needs.collect::<Vec<_>>()
    };
    modules.iter().flat_map(needs).collect()
}

#[test]
fn each_import_names_an_export_and_is_used() {
    let modules = modules();
    let faults: Vec<String> = modules
        .keys()
        .flat_map(|file| {
            faults(file, &modules).into_iter().map(move |fault| format!("{}: {fault}", file.display()))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_two_modules_need_each_other() {
    let arrows = arrows(&modules());
    let circles = circles(&arrows);
    assert!(circles.is_empty(), "a circle: {circles:?}");
}

#[test]
fn each_module_is_loaded_by_a_page() {
    let modules = modules();
    let mut open = vec![page().join("js/app.js"), page().join("js/theme.js"), page().join("open.js")];
    // `app.js` loads the module of a page by its name.
    open.extend(
        modules.keys().filter(|path| path.parent().is_some_and(|dir| dir.ends_with("js/pages"))).cloned(),
    );
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if let Some(module) = modules.get(&path).filter(|_| seen.insert(path.clone())) {
            open.extend(module.needs.iter().map(|import| import.from.clone()));
            open.extend(module.others.iter().cloned());
        }
    }
    let unused: Vec<&PathBuf> = modules.keys().filter(|path| !seen.contains(*path)).collect();
    assert!(unused.is_empty(), "no page loads {unused:?}");
}

#[test]
fn a_wrong_import_is_found() {
    let file = |name: &str| page().join(name);
    let module = |name: &str, text: &str| (file(name), parse(&file(name), text));
    let modules = BTreeMap::from([
        module(
            "a.js",
            "import { b, gone } from \"./b.js\";\nimport * as c from \"./none.js\";\nb(); gone();\n",
        ),
        module("b.js", "import { a } from \"./a.js\";\nexport function b() {}\n"),
    ]);
    let found = faults(&file("a.js"), &modules);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("does not export gone") && found[1].contains("none.js"), "{found:?}");
    assert_eq!(faults(&file("b.js"), &modules).len(), 2);
    assert_eq!(circles(&arrows(&modules)).len(), 2);
}
