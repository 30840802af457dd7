//! First impression of a page: words that do not overlap, colours with one meaning each, fields that name their values,
//! and visible reviews.

use serde_json::{Value, json};

use super::every_page::{fill, open, reviewed};
use super::{card, column, driver, fleet, visit, yard};
use crate::browser::driver::Browser;
use crate::harness::User;

/// The words of the timeline that are over other words or bars, beyond their row, or cut to less than a few letters.
fn illegible(page: &Browser) -> Value {
    page.script(
        "const box = one => one.getBoundingClientRect();
         const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
         const labels = [...document.querySelectorAll('.gantt-label')];
         const bars = [...document.querySelectorAll('.gantt-bar')];
         const ticks = [...document.querySelectorAll('.gantt-tick')].filter(one => one.textContent);
         const found = [];
         for (const label of labels) {
             const own = label.closest('.gantt-bar');
             const row = box(label.closest('.gantt-lanes'));
             for (const bar of bars) if (bar !== own && over(box(label), box(bar))) found.push(`${label.textContent} is over a bar`);
             for (const other of labels) if (other !== label && over(box(label), box(other))) found.push(`${label.textContent} is over ${other.textContent}`);
             if (box(label).left < row.left - 1 || box(label).right > row.right + 1) found.push(`${label.textContent} leaves its row`);
             if (label.scrollWidth > label.clientWidth + 1 && label.clientWidth < 60) found.push(`${label.textContent} is cut to ${label.clientWidth} pixels`);
         }
         ticks.forEach((tick, at) => {
             if (ticks.some((other, index) => index !== at && over(box(tick), box(other)))) found.push(`the time ${tick.textContent} is over another`);
             if (box(tick).right > box(tick.parentElement).right + 1) found.push(`the time ${tick.textContent} is cut`);
         });
         for (const name of document.querySelectorAll('.gantt-name span')) if (name.scrollWidth > name.clientWidth + 1) found.push(`the name ${name.textContent} is cut`);
         return found",
        &[],
    )
}

#[test]
fn the_words_of_many_short_runs_on_the_timeline_can_be_read() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let title = |number: usize| format!("run {number} of the nightly figures of the shop");
    let all: Vec<String> = (0..24).map(|number| fleet.create(&title(number), "true", &[])).collect();
    let live = fleet.create("a run that goes on", "sleep 600", &[]);
    for task in &all {
        fleet.wait_for(task, "done");
    }
    fleet.wait_for(&live, "running");
    let page = visit(&fleet);
    for (width, height) in [(1280, 800), (390, 844)] {
        page.resize(width, height);
        for path in [
            "/timeline",
            "/timeline?span=900",
            "/timeline?span=604800",
            "/timeline?by=task",
            "/timeline?by=task&span=900",
        ] {
            open(&page, path);
            page.eventually("each run has a bar", |page| (page.count(".gantt-bar") == 25).then_some(()));
            assert_eq!(illegible(&page), json!([]), "{path} at {width}");
            assert!(page.count(".gantt-tick") >= 2, "{path} at {width}");
        }
        // Few runs have their words, however short they are.
        if width == 1280 {
            open(&page, "/timeline?by=task&span=900");
            let labels = page.count(".gantt-label");
            assert!(labels == 25, "{labels} of 25 runs have words");
        }
    }
    page.is_content();
}

#[test]
fn reviews_are_in_the_navigation_with_their_number_and_in_a_list() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    page.go("/reviews");
    page.wait_text(".empty", "Nothing waits for a review");
    assert_eq!(page.count(".nav-count"), 0);

    let task = reviewed(&fleet);
    page.wait_text("#nav a[href='/reviews'] .nav-count", "1");
    page.wait_text(".review", "to be reviewed");
    assert_eq!(page.text("#main h1").as_deref(), Some("Review1"));
    let current = page.texts("#nav [aria-current=page]");
    assert!(current.len() == 1 && current[0].starts_with("Review"), "{current:?}");

    // The address without a task leads there, too.
    page.go("/review");
    page.wait_text(".review", "to be reviewed");
    assert!(page.address().ends_with("/reviews"), "{}", page.address());
    page.press("j");
    page.press(driver::ENTER);
    page.wait_text("#main h1", "to be reviewed");
    assert!(page.address().ends_with(&format!("/review/{task}")), "{}", page.address());
    assert!(page.texts("#nav [aria-current=page]")[0].starts_with("Review"));

    fleet.cli(["approve", &task]).ok();
    page.eventually("nothing is in review any more", |page| (page.count(".nav-count") == 0).then_some(()));
    page.press("gr");
    page.wait_text(".empty", "Nothing waits for a review");
    page.is_content();
}

#[test]
fn the_form_of_a_new_task_says_what_each_field_takes_and_what_it_is_otherwise() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    page.wait(&column("ready"));
    page.press("c");
    page.wait(".create");
    let unexplained = page.script(
        "return [...document.querySelectorAll('.create .field')].filter(field => {
             const input = field.querySelector('input, textarea');
             if (!input) return false;
             const hint = document.getElementById(input.getAttribute('aria-describedby'));
             return !hint?.checkVisibility() || hint.textContent.length < 10 || !field.querySelector('label') || !(input.placeholder || input.value);
         }).map(field => field.textContent)",
        &[],
    );
    assert_eq!(unexplained, json!([]));
    page.eventually("the lanes of this host are offered", |page| {
        let offered = page.script("return [...document.querySelectorAll('.create datalist option')].map(one => one.value).includes('shell')", &[]);
        (offered == true).then_some(())
    });
    let place = yard(&fleet);
    page.fill(".create .create-title", "sweep the shop");
    page.fill(".create [id$=-workspace]", &format!("dir:{}", place.display()));
    page.click(".create button[type=submit]");
    page.wait_text(".columns", "sweep the shop");
    let made = fleet.json(["list"]);
    assert_eq!(made[0]["workspace"], format!("dir:{}", place.display()), "{made:#}");
    page.wait(&card(made[0]["id"].as_str().unwrap()));
    page.is_content();
}

#[test]
fn a_colour_means_one_thing_and_the_keys_explain_it() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fill(&fleet);
    let page = visit(&fleet);
    for theme in ["dark", "light"] {
        page.script("localStorage.setItem('supervisor.theme', arguments[0])", &[theme.into()]);
        open(&page, "/health");
        // How far two colours are from each other, of those that have to be told apart.
        let close = page.script(
            "const style = getComputedStyle(document.documentElement);
             const names = ['status-triage', 'status-scheduled', 'status-ready', 'status-running', 'status-review', 'status-blocked', 'status-done', 'warning', 'accent'];
             const colour = name => style.getPropertyValue(`--color-${name}`).trim().match(/\\w\\w/g).map(part => parseInt(part, 16));
             const found = [];
             for (const a of names) for (const b of names)
                 if (a < b && Math.hypot(...colour(a).map((part, at) => part - colour(b)[at])) < 34) found.push(`${a} ${b}`);
             return found",
            &[],
        );
        assert_eq!(close, json!([]), "{theme}");
        let (line, accent) =
            (page.style(".figure-line", "stroke"), page.style(".nav a[aria-current]", "color"));
        assert_ne!(line, accent, "a chart has the colour of what can be pressed");
    }
    page.press("?");
    page.wait_text("dialog[open]", "Colours, on all pages");
    for status in ["triage", "todo", "scheduled", "ready", "running", "review", "blocked", "done", "warning"]
    {
        page.wait(&format!("dialog[open] .status[data-status={status}]"));
    }
    page.is_content();
}

#[test]
fn what_is_grave_on_the_page_of_health_has_a_sign_of_its_own_and_no_text_is_cut() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("broken-lane", "argv = 7\n");
    fleet.cli(["service", "reload"]).refused(2, "broken-lane");
    let page = visit(&fleet);
    for width in [1280, 390] {
        page.resize(width, 844);
        open(&page, "/health");
        page.wait_text("section[aria-labelledby=problems-title]", "broken-lane");
        page.wait(".health-checks .severity[data-status=done]");
        let signs = page.script(
            "const sign = css => { const one = document.querySelector(css); return one && getComputedStyle(one, '::before').content };
             return [sign('.severity[data-status=error]'), sign('.severity[data-status=done]')]",
            &[],
        );
        assert!(signs[0] != signs[1] && signs[0].is_string(), "{signs}");
        let cut = page.script(
            "const holds = one => [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
             return [...document.querySelectorAll('#main *')].filter(one => holds(one) && !one.closest('.unseen') && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'hidden').map(one => one.textContent)",
            &[],
        );
        assert_eq!(cut, json!([]), "{width}");
    }
    page.is_content();
}
