//! Shell of the page, with preload links to the modules of the requested page. A browser then loads them all at once,
//! instead of each after its importer. Links contain the version of the files, so that a browser loads each file once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Uri;

use super::assets::{self, Asset};

const SHELL: &str = "index.html";
/// Placeholder for the links in the shell.
const PLACE: &str = "<!-- modules -->";
/// Path prefix of files.
const ASSETS: &str = "/assets/";
/// Prefix of a version in a path. No file name contains it.
const VERSION: char = '@';
/// Module that starts each page.
const START: &str = "js/app.js";
/// Module of the drawer, which opens with the page if the query names a task.
const DRAWER: &str = "js/drawer/drawer.js";

/// Present state of the files.
#[derive(Debug)]
struct Site {
    version: String,
    names: BTreeSet<String>,
    /// Shells made so far, by the first modules of their pages: at most two for each page.
    shells: Mutex<BTreeMap<Vec<String>, Asset>>,
}

/// Files as last read; in a debug build they change.
static SITE: Mutex<Option<Arc<Site>>> = Mutex::new(None);

/// Returns the shell for an address.
pub(super) fn shell(uri: &Uri) -> Option<Asset> {
    let site = current_site();
    let roots = site.roots(uri);
    let made = site.shells.lock().unwrap_or_else(PoisonError::into_inner).get(&roots).cloned();
    if made.is_some() {
        return made;
    }
    let made = Asset::new(site.written(&roots)?);
    site.shells.lock().unwrap_or_else(PoisonError::into_inner).insert(roots, made.clone());
    Some(made)
}

/// Returns the name of a file, and true if the path contains its version. None for another version.
pub(super) fn unversioned(path: &str) -> Option<(&str, bool)> {
    let Some(rest) = path.strip_prefix(VERSION) else { return Some((path, false)) };
    let (version, name) = rest.split_once('/')?;
    // The lock is released at the end of this statement, because `current_site` takes it again: after a restart of the
    // daemon, no shell exists yet.
    let known = SITE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let now = known.unwrap_or_else(current_site);
    (version == now.version).then_some((name, true))
}

/// Reads the files, if they have changed.
fn current_site() -> Arc<Site> {
    let (names, version) = assets::all();
    let mut site = SITE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*site {
        Some(known) if known.version == version => Arc::clone(known),
        Some(_) | None => {
            let new = Site { version, names: names.into_iter().collect(), shells: Mutex::default() };
            Arc::clone(site.insert(Arc::new(new)))
        }
    }
}

impl Site {
    /// Returns the first modules of an address's page.
    fn roots(&self, uri: &Uri) -> Vec<String> {
        let page = uri.path().split('/').find(|part| !part.is_empty()).unwrap_or("board");
        let page = format!("js/pages/{page}.js");
        let names_task = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .any(|pair| pair.starts_with("task=") && pair.len() > 5);
        let mut roots = vec![START.to_owned()];
        roots.extend(Some(page).filter(|page| self.names.contains(page)));
        roots.extend(names_task.then(|| DRAWER.to_owned()));
        roots
    }

    fn written(&self, roots: &[String]) -> Option<String> {
        let shell = text(SHELL)?;
        let mut links = String::new();
        for name in modules(roots).iter().filter(|name| *name != START) {
            let _infallible = writeln!(links, "<link rel=\"modulepreload\" href=\"{ASSETS}{name}\">");
        }
        let shell = shell.replace(&format!("{PLACE}\n"), &links);
        Some(shell.replace(&format!("\"{ASSETS}"), &format!("\"{ASSETS}{VERSION}{}/", self.version)))
    }
}

/// Returns modules with all their imports, in breadth-first order, so that those imported first load first.
fn modules(roots: &[String]) -> Vec<String> {
    let mut names: Vec<String> = roots.to_vec();
    let mut at = 0;
    while let Some(name) = names.get(at).cloned() {
        at += 1;
        for import in imports(&name, &text(&name).unwrap_or_default()) {
            if !names.contains(&import) {
                names.push(import);
            }
        }
    }
    names
}

/// Returns the static imports of a module, from its lines that begin with `import` or `export`.
fn imports(name: &str, text: &str) -> Vec<String> {
    let of = |line: &str| {
        let rest = if let Some(rest) = line.strip_prefix("import \"") {
            rest
        } else if ["import ", "export ", "} from "].iter().any(|word| line.starts_with(word)) {
            line.split_once(" from \"")?.1
        } else {
            return None;
        };
        resolved(name, rest.split_once('"')?.0)
    };
    text.lines().filter_map(of).collect()
}

/// Resolves a relative import.
fn resolved(from: &str, to: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn text(name: &str) -> Option<String> {
    String::from_utf8(assets::get(name)?.bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(uri: &'static str) -> BTreeSet<String> {
        let shell = String::from_utf8(shell(&Uri::from_static(uri)).unwrap().bytes.to_vec()).unwrap();
        assert!(!shell.contains(PLACE), "{shell}");
        let begin = format!("<link rel=\"modulepreload\" href=\"{ASSETS}{VERSION}");
        let link = |line: &str| {
            let path = line.strip_prefix(&begin)?.strip_suffix("\">")?;
            let (name, is_fixed) =
                unversioned(&format!("{VERSION}{path}")).map(|(_, fixed)| (path, fixed))?;
            assert!(is_fixed, "{line}");
            Some(name.split_once('/')?.1.to_owned())
        };
        shell.lines().filter_map(link).collect()
    }

    #[test]
    fn a_file_of_a_page_that_outlived_its_daemon_is_found_before_a_shell_is_made() {
        let path = format!("{VERSION}{}/js/app.js", current_site().version);
        *SITE.lock().unwrap() = None;
        assert_eq!(unversioned(&path), Some(("js/app.js", true)));
    }

    #[test]
    fn a_page_names_the_modules_that_it_begins_with() {
        let board = links("/board");
        for name in ["js/api.js", "js/dom.js", "js/pages/board.js", "js/board/card.js"] {
            assert!(board.contains(name), "{name}: {board:?}");
        }
        assert!(!board.contains("js/app.js") && !board.contains(DRAWER), "{board:?}");
        assert_eq!(links("/"), board);
        let with_task = links("/board?tenant=acme&task=t_1");
        assert!(with_task.is_superset(&board) && with_task.contains(DRAWER), "{with_task:?}");
        let run = links("/runs/t_1/3");
        assert!(run.contains("js/pages/runs.js") && !run.contains("js/pages/board.js"), "{run:?}");
        assert!(!links("/nowhere").iter().any(|name| name.starts_with("js/pages/")));
        assert!(!links("/../../etc").iter().any(|name| name.starts_with("js/pages/")));
    }

    #[test]
    fn each_import_of_the_page_leads_to_a_file() {
        let (names, _) = assets::all();
        let mut edges = 0;
        for name in names.iter().filter(|name| name.starts_with("js/")) {
            for import in imports(name, &text(name).unwrap()) {
                assert!(names.contains(&import), "{name} imports {import}");
                edges += 1;
            }
        }
        assert!(edges > 100, "{edges}");
    }

    #[test]
    fn imports_are_read_in_each_form_and_not_out_of_words() {
        let text = "import \"./a.js\";\nimport * as b from \"../b.js\";\nexport { c } from \"./c/c.js\";\nimport {\n  d,\n} from \"../../d.js\";\n\
            // import x from \"./x.js\"\nconst y = await import(\"./y.js\");\nexport const from = \"./z.js\";\n";
        assert_eq!(imports("js/parts/m.js", text), ["js/parts/a.js", "js/b.js", "js/parts/c/c.js", "d.js"]);
        assert_eq!(resolved("app.js", "../x.js"), None);
    }

    #[test]
    fn a_file_of_another_version_is_not_there() {
        drop(shell(&Uri::from_static("/board")).unwrap());
        assert_eq!(unversioned("js/app.js"), Some(("js/app.js", false)));
        assert_eq!(unversioned("@0000000000000000/js/app.js"), None);
        assert_eq!(unversioned("@"), None);
    }
}
