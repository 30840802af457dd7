//! Rules for every page: those of axe-core in both themes, a name, keys, the width of a phone, and a small size.

use std::fs;

use serde_json::json;

use super::driver::Browser;
use super::{fleet, visit};
use crate::harness::{Fleet, Repository, User};

/// Limit on the bytes of a page with everything that it loads.
const LARGEST: u64 = 300_000;

/// Fills a board with a task of each kind; returns one that has run.
pub(super) fn fill(fleet: &Fleet) -> String {
    let ran = fleet.create("a task that has run", "echo one; echo two", &["--tenant", "acme"]);
    let parent = fleet.create("the parent", "true", &["--initial-status", "blocked"]);
    fleet.create("waits for its parent", "true", &["--parent", &parent, "--priority", "3"]);
    fleet.cli(["create", "an idea", "--triage"]).ok();
    fleet.cli(["comment", &ran, "some **words**"]).ok();
    let asks = fleet.create("asks", "supervisor ask 'Which one?' --choice this --choice that", &[]);
    fleet.create("works", "sleep 600", &[]);
    fleet.wait_for(&asks, "blocked");
    fleet.wait_for(&ran, "done");
    ran
}

/// A mission with a task.
pub(super) fn mission(fleet: &Fleet) -> String {
    let made = fleet.json(["mission", "create", "the mission"]);
    let id = made["id"].as_str().or(made["task"]["id"].as_str()).unwrap().to_owned();
    fleet.create("a part of it", "true", &["--mission", &id, "--initial-status", "blocked"]);
    id
}

/// A task whose agent runs, takes messages and has written more than a window of lines.
pub(super) fn talks(fleet: &Fleet) -> String {
    let lane = "argv = [\"/bin/sh\", \"{prompt_file}\"]\nprompt = \"body-file\"\nsession = \"stream-json\"\nstdout = \"claude-stream-json\"\n";
    let script = "seq 400; sleep 600";
    let lane = lane.replace("prompt = \"body-file\"\n", "").replace("{prompt_file}", "{home}/agent");
    let mut lane: toml::Table = toml::from_str(&lane).unwrap();
    lane.insert("files".to_owned(), toml::Table::from_iter([("agent".to_owned(), script.into())]).into());
    fleet.lane("talker", &lane.to_string());
    fleet.cli(["service", "reload"]).ok();
    let made = fleet.json(["create", "talks", "--assignee", "talker", "--body", "x"]);
    let task = made["id"].as_str().unwrap().to_owned();
    fleet.eventually("it has written", || fleet.cli(["log", &task]).stdout.contains("400").then_some(()));
    task
}

/// A task in review with changes in two files.
pub(super) fn reviewed(fleet: &Fleet) -> String {
    let repository = Repository::new(fleet, "code");
    let script = "seq 60 > one; seq 60 > two; git add -A; git commit -qm one; supervisor request-review --summary 'please look'";
    let task = fleet.create("to be reviewed", script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    task
}

/// The pages of a mission, a live run and a review.
pub(super) fn more_paths(fleet: &Fleet) -> Vec<String> {
    let (mission, talks, reviewed) = (mission(fleet), talks(fleet), reviewed(fleet));
    vec![
        format!("/missions/{mission}"),
        format!("/missions/{mission}?view=list"),
        format!("/runs/{talks}"),
        format!("/review/{reviewed}"),
        "/timeline?view=list".to_owned(),
        "/timeline?by=task".to_owned(),
    ]
}

pub(super) fn paths(task: &str) -> Vec<String> {
    let mut paths =
        ["/board", "/work", "/reviews", "/missions", "/timeline", "/health"].map(str::to_owned).to_vec();
    paths.extend([format!("/board?task={task}"), format!("/runs/{task}/1"), format!("/review/{task}")]);
    paths
}

/// Opens a page and waits until all that it reads is there.
pub(super) fn open(page: &Browser, path: &str) {
    let origin = page.script("return location.origin", &[]);
    page.open(&format!("{}{path}", origin.as_str().unwrap()));
    page.wait("#connection[data-state=live]");
    page.eventually("all of it is there", |page| {
        let has_name =
            page.text("#main h1").is_some_and(|name| !name.is_empty()) || page.count("#main h1.unseen") == 1;
        (has_name && page.count(".skeleton, #main [aria-busy=true]") == 0).then_some(())
    });
}

/// Runs the rules of axe-core on what the page shows.
#[track_caller]
fn obeys(page: &Browser, rules: &str, what: &str) {
    // Given by the driver, so the page's policy for scripts has no say.
    page.script(rules, &[]);
    let found = page.script(
        "return axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.map(rule =>
             ({rule: rule.id, help: rule.help, nodes: rule.nodes.slice(0, 3).map(node => node.html + ' ' + node.failureSummary)})))",
        &[],
    );
    assert_eq!(found, json!([]), "{what}: {found:#}");
}

#[test]
fn no_page_breaks_a_rule_of_accessibility() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let more = more_paths(&fleet);
    let rules = fs::read_to_string(std::env::var("SUPERVISOR_TEST_BROWSER").unwrap()).unwrap();
    let page = visit(&fleet);
    for theme in ["dark", "light"] {
        page.script("localStorage.setItem('supervisor.theme', arguments[0])", &[theme.into()]);
        for path in paths(&ran).iter().chain(&more) {
            open(&page, path);
            obeys(&page, &rules, &format!("{theme} {path}"));
        }
        // A comment that is being written, and the list of keys.
        open(&page, &more[3]);
        page.wait(".diff-line");
        page.press("jc");
        page.wait(".diff-comment textarea");
        obeys(&page, &rules, &format!("{theme}, a comment on a line"));
        open(&page, "/work");
        page.press("?");
        page.wait("dialog[open]");
        obeys(&page, &rules, &format!("{theme}, the keys"));
    }
}

#[test]
fn no_page_of_an_empty_board_breaks_a_rule_of_accessibility() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let rules = fs::read_to_string(std::env::var("SUPERVISOR_TEST_BROWSER").unwrap()).unwrap();
    let page = visit(&fleet);
    for path in [
        "/board",
        "/work",
        "/reviews",
        "/missions",
        "/timeline",
        "/health",
        "/runs/t_00000000",
        "/review/t_00000000",
        "/nowhere",
    ] {
        page.go(path);
        page.wait("#connection[data-state=live]");
        page.eventually("all of it is there", |page| {
            (page.count("#main h1") == 1 && page.count(".skeleton, #main [aria-busy=true]") == 0)
                .then_some(())
        });
        obeys(&page, &rules, path);
        let width = page.script("return document.documentElement.scrollWidth <= innerWidth", &[]);
        assert_eq!(width, true, "{path}");
    }
}

#[test]
fn no_page_is_wider_than_a_small_telephone() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let more = more_paths(&fleet);
    let page = visit(&fleet);
    page.resize(360, 740);
    for path in paths(&ran).into_iter().chain(more) {
        open(&page, &path);
        let width = page.script("return [innerWidth, document.documentElement.scrollWidth]", &[]);
        assert_eq!(width, json!([360, 360]), "{path}");
    }
}

#[test]
fn every_page_says_its_name_and_has_a_way_by_keys() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let page = visit(&fleet);
    for path in paths(&ran) {
        open(&page, &path);
        let title = page.script("return document.title", &[]);
        assert!(title.as_str().is_some_and(|title| title.len() > "supervisor".len()), "{path}: {title}");
        page.press("?");
        page.wait_text("dialog[open]", "Keyboard");
        page.press(super::driver::ESCAPE);
        page.wait_gone("dialog[open]");
        let headings = page.count("#main h1");
        assert_eq!(headings, 1, "{path} has one heading");
    }
}

/// The address of a page with a task open on it.
fn with_task(path: &str, task: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}task={task}")
}

/// Does what the drawer loads more files for: a field that is edited, a comment that is begun, a task that is looked for.
fn use_the_drawer(page: &Browser) {
    page.click("#drawer .drawer-title");
    page.wait("#drawer .drawer-heading .drawer-input");
    page.click("#drawer .composer textarea");
    page.wait("#drawer .composer textarea[aria-controls]");
    page.click("#drawer .links-plus");
    page.wait("#drawer .links-add input");
}

#[test]
fn a_page_with_all_that_it_loads_is_small_also_with_a_task_open() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let more = more_paths(&fleet);
    let page = visit(&fleet);
    for path in paths(&ran).into_iter().chain(more) {
        let opened = (!path.contains("task=")).then(|| with_task(&path, &ran));
        for path in [Some(path), opened].into_iter().flatten() {
            open(&page, &path);
            if path.contains("task=") {
                page.wait("#drawer .drawer-title");
                use_the_drawer(&page);
            }
            // The shell and the files of the page, as the browser has them once they are unpacked.
            let bytes = page.script(
                "const files = performance.getEntriesByType('resource').filter(one => one.name.includes('/assets/'));
                 return [...files, ...performance.getEntriesByType('navigation')].reduce((sum, one) => sum + one.decodedBodySize, 0)",
                &[],
            );
            let bytes = bytes.as_u64().unwrap();
            println!("{path}: {bytes}");
            assert!((100_000..LARGEST).contains(&bytes), "{path} loads {bytes} bytes");
        }
    }
}
