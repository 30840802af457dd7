//! The keyboard: every control of every page is reached by it, and each key that `?` lists does something.

use serde_json::{Value, json};

use super::driver::{Browser, ESCAPE};
use super::every_page::{fill, mission, open, paths, reviewed, talks};
use super::{fleet, visit};
use crate::harness::User;

/// The key that goes to the next control.
const TAB: &str = "\u{e004}";

/// Keeps every element that gets the focus.
const WATCH: &str = "window.reached = new Set();
    document.addEventListener('focusin', event => window.reached.add(event.target)); document.activeElement?.blur()";

/// Script that lists controls out of reach of the keyboard. A member of a group that Tab enters is reached by the keys
/// of the group.
const UNREACHED: &str = "
    const own = 'a[href], button, input, select, textarea, summary, [tabindex=\"0\"]';
    const groups = '.columns, .graph-nodes, .gantt-body, [role=toolbar], [role=listbox], [role=tablist]';
    const isThere = one => one.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !one.matches(':disabled') && one.type !== 'file'
        && !one.closest('[inert]') && one.getBoundingClientRect().width > 1;
    return [...document.querySelectorAll(own)].filter(one => isThere(one) && !window.reached.has(one)
            && !(one.tabIndex < 0 && [...window.reached].some(other => other.closest?.(groups) && other.closest(groups) === one.closest(groups))))
        .map(one => one.outerHTML.slice(0, 160))";

#[test]
fn every_control_of_every_page_is_reached_by_the_keyboard() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let mission = mission(&fleet);
    let page = visit(&fleet);
    for path in paths(&ran)
        .into_iter()
        .chain([format!("/missions/{mission}"), format!("/missions/{mission}?view=list")])
    {
        open(&page, &path);
        page.script(WATCH, &[]);
        let missed = page.eventually("every control is reached", |page| {
            page.press(&TAB.repeat(40));
            let missed = page.script(UNREACHED, &[]);
            let rounds = page.script("return window.rounds = (window.rounds ?? 0) + 1", &[]);
            (missed == json!([]) || rounds.as_u64() > Some(6)).then_some(missed)
        });
        assert_eq!(missed, json!([]), "{path}: {missed:#}");
    }
}

/// Script that returns the visible state that a key may change: address, focus, open, selected, pressed and edited
/// elements, and scroll positions; also the requests to the daemon, except those that the page sends by itself.
const SEEN: &str = "
    const all = [...document.querySelectorAll('*')];
    const of = name => all.filter(one => one.hasAttribute(name)).map(one => one.getAttribute(name)).join();
    return JSON.stringify([location.href, all.indexOf(document.activeElement), document.querySelectorAll('dialog[open]').length,
        document.querySelectorAll('.toast').length, of('aria-pressed'), of('aria-expanded'), of('aria-current'), document.documentElement.dataset.themeChoice,
        all.filter(one => one.scrollTop || one.scrollLeft).map(one => [one.scrollTop, one.scrollLeft]).join(';'),
        document.querySelectorAll('.is-chosen, .selected').length, document.querySelectorAll('.is-chosen')[0]?.dataset.task ?? '', document.querySelectorAll('form textarea, form input').length,
        performance.getEntriesByType('resource').filter(one => /(dispatch|doctor)$/.test(one.name)).length])";

/// The keys that the page lists, as `KeyboardEvent.key` names them, each with its label.
const LISTED: &str = "
    return [...document.querySelectorAll('dialog[open] .keys-help li')].map(item =>
        [[...item.querySelectorAll('kbd')].map(key => key.textContent), item.firstElementChild.textContent])";

/// A key as it is pressed.
fn pressed(cap: &str) -> String {
    match cap {
        "↑" => "\u{e013}".to_owned(),
        "↓" => "\u{e015}".to_owned(),
        "←" => "\u{e012}".to_owned(),
        "→" => "\u{e014}".to_owned(),
        "Esc" => ESCAPE.to_owned(),
        "Enter" => super::driver::ENTER.to_owned(),
        "Space" => " ".to_owned(),
        other => other.to_owned(),
    }
}

/// Presses a key, or several in a row, or one with another held.
fn press(page: &Browser, caps: &[&str]) {
    match caps {
        ["Shift", key] => page.chord(super::driver::SHIFT, &pressed(key)),
        ["Ctrl", key] => page.chord(super::driver::CONTROL, &pressed(key)),
        keys => page.press(&keys.iter().map(|key| pressed(key)).collect::<String>()),
    }
}

/// Returns the keys to press before a key of a page, so that it has something to act on.
fn before(path: &str, label: &str) -> &'static str {
    let page = path.split(['/', '?']).nth(1).unwrap();
    match (page, label) {
        ("board", "Clear the selection") => "x",
        ("board", "Go to: Board") => "gh",
        ("work", "Next worker") => "",
        ("work", _) => "j",
        ("review", "Previous file" | "Comment on the line" | "Previous line") => "jj",
        ("runs", "To the end, and follow") => "gg",
        ("timeline", "Now" | "Later") => "h",
        _ => "",
    }
}

#[test]
fn each_key_that_a_page_lists_does_something() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let (works, reviewed) = (talks(&fleet), reviewed(&fleet));
    for title in ["a third", "a fourth"] {
        fleet.cli(["create", title, "--initial-status", "blocked"]).ok();
    }
    let mission = mission(&fleet);
    let page = visit(&fleet);
    let pages = [
        "/board".to_owned(),
        "/work".to_owned(),
        "/reviews".to_owned(),
        "/missions".to_owned(),
        format!("/missions/{mission}"),
        "/timeline".to_owned(),
        "/health".to_owned(),
        format!("/runs/{works}"),
        format!("/review/{reviewed}"),
        format!("/board?task={ran}"),
    ];
    let mut idle = Vec::new();
    for (number, path) in pages.iter().enumerate() {
        open(&page, path);
        page.press("?");
        page.wait("dialog[open] .keys-help");
        let listed = page.script(LISTED, &[]);
        for entry in listed.as_array().unwrap() {
            let caps: Vec<&str> =
                entry[0].as_array().unwrap().iter().map(|cap| cap.as_str().unwrap()).collect();
            let label = entry[1].as_str().unwrap();
            // What every page has is pressed on one of them.
            if number > 0
                && (caps[0] == "g" && caps.len() == 2 && caps[1] != "g" || ["T", "?"].contains(&caps[0]))
            {
                continue;
            }
            open(&page, path);
            if path.contains("task=") {
                page.eventually("the task is read", |page| {
                    (page.count("#drawer .skeleton") == 0 && page.sees("#drawer .composer")).then_some(())
                });
            }
            ready(&page, path);
            if path == "/board" {
                // A card with others above, below and on both sides.
                page.script(
                    "document.querySelectorAll('.column[data-column=blocked] .card-title')[1].focus()",
                    &[],
                );
            }
            for key in before(path, label).chars() {
                page.press(&key.to_string());
            }
            let seen = page.script(SEEN, &[]);
            press(&page, &caps);
            if !changes(&page, &seen) {
                idle.push(format!("{path}: {} ({label})", caps.join(" ")));
            }
        }
    }
    assert!(idle.is_empty(), "{idle:#?}");
}

/// Waits until what keys act on is there.
fn ready(page: &Browser, path: &str) {
    let css = match path.split(['/', '?']).nth(1).unwrap() {
        "board" => ".columns .card",
        "work" => ".worker[data-task]",
        "runs" => ".log-line",
        "reviews" => ".review",
        "review" => ".diff-line",
        "timeline" => ".gantt-bar",
        _ => "#main h1",
    };
    page.eventually(&format!("{css} is there"), |page| (page.count(css) > 0).then_some(()));
}

/// Returns true if the visible state changes soon. Only a key without an effect uses the whole time limit.
fn changes(page: &Browser, before: &Value) -> bool {
    (0..150).any(|_| {
        let is_other = page.script(SEEN, &[]) != *before;
        if !is_other {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        is_other
    })
}
