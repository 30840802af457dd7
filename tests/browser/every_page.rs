//! What holds for each page: the rules of axe-core in both themes, a name, keys, the width of a telephone, and few bytes.

use std::fs;

use serde_json::json;

use super::driver::Browser;
use super::{fleet, visit};
use crate::harness::{Fleet, User};

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

pub(super) fn paths(task: &str) -> Vec<String> {
    let mut paths = ["/board", "/work", "/missions", "/timeline", "/health"].map(str::to_owned).to_vec();
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

#[test]
fn no_page_breaks_a_rule_of_accessibility() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let rules = fs::read_to_string(std::env::var("SUPERVISOR_TEST_BROWSER").unwrap()).unwrap();
    let page = visit(&fleet);
    for theme in ["dark", "light"] {
        page.script("localStorage.setItem('supervisor.theme', arguments[0])", &[theme.into()]);
        for path in paths(&ran) {
            open(&page, &path);
            // Given by the driver, so the page's policy for scripts has no say.
            page.script(&rules, &[]);
            let found = page.script(
                "return axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.map(rule =>
                     ({rule: rule.id, help: rule.help, nodes: rule.nodes.slice(0, 3).map(node => node.html + ' ' + node.failureSummary)})))",
                &[],
            );
            assert_eq!(found, json!([]), "{theme} {path}: {found:#}");
        }
    }
}

#[test]
fn no_page_is_wider_than_a_small_telephone() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let page = visit(&fleet);
    page.resize(360, 740);
    for path in paths(&ran) {
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

#[test]
fn a_page_with_all_that_it_loads_is_small() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let page = visit(&fleet);
    for path in paths(&ran) {
        open(&page, &path);
        let bytes = page.script(
            "const all = performance.getEntriesByType('resource').filter(one => one.name.includes('/assets/'));
             return Promise.all(all.map(one => fetch(one.name).then(got => got.arrayBuffer())))
                 .then(all => all.reduce((sum, one) => sum + one.byteLength, 0))",
            &[],
        );
        let bytes = bytes.as_u64().unwrap();
        println!("{path}: {bytes}");
        assert!((1..300 << 10).contains(&bytes), "{path} loads {bytes} bytes");
    }
}
