//! Nothing moves under the hand: no page shifts what it shows, neither while it loads nor while events arrive.

use super::every_page::{fill, more_paths, open, paths};
use super::{fleet, visit};
use crate::harness::User;

/// Begins to keep what has shifted since the page began to load, as the browser measures it, with what it was.
const WATCH: &str = "window.shifts = [];
    new PerformanceObserver(list => { for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push(one); }).observe({type: 'layout-shift', buffered: true});
    window.asked = 0;
    const plain = window.fetch;
    window.fetch = (...all) => {
        if (/stream|verbs\\/log/.test(String(all[0]))) return plain(...all);
        window.asked += 1;
        return plain(...all).finally(() => { window.asked -= 1; });
    };";

/// The sum of the shifts, and the parts that moved most.
const SUM: &str = "const worst = [...window.shifts].sort((a, b) => b.value - a.value).slice(0, 3);
    return new Promise(done => requestAnimationFrame(() => setTimeout(() => done([window.shifts.reduce((sum, one) => sum + one.value, 0),
        worst.map(one => [one.value, one.sources.slice(0, 4).map(source => source.node?.nodeType === 1 ? source.node.className || source.node.tagName : String(source.node?.textContent).slice(0, 40))])]), 50)))";

/// The most that the browser's makers call good.
const GOOD: f64 = 0.1;

#[test]
fn no_page_moves_while_it_loads_or_while_things_happen() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    let more = more_paths(&fleet);
    let page = visit(&fleet);
    for (width, height) in [(1440, 900), (360, 740)] {
        page.resize(width, height);
        for path in paths(&ran).iter().chain(&more) {
            open(&page, path);
            page.script(WATCH, &[]);
            let loaded = page.script(SUM, &[]);
            assert!(loaded[0].as_f64().unwrap() < GOOD, "{path} at {width} while it loads: {loaded}");

            let task = fleet.create(
                "comes meanwhile",
                "echo one; supervisor ask 'Which?' --choice this --choice that",
                &[],
            );
            fleet.wait_for(&task, "blocked");
            fleet.cli(["comment", &ran, "a word"]).ok();
            let other = fleet.create("ends meanwhile", "true", &[]);
            fleet.wait_for(&other, "done");
            page.eventually("the page has the events, and what it asks for because of them", |page| {
                let seen = page.script(
                    "return window.asked === 0 ? Number(document.getElementById('connection').dataset.event ?? 0) : 0",
                    &[],
                );
                seen.as_u64().filter(|seen| *seen >= last(&fleet))
            });
            let after = page.script(SUM, &[]);
            println!("{path} at {width}: {} while it loads, {} in all", loaded[0], after[0]);
            assert!(after[0].as_f64().unwrap() < GOOD, "{path} at {width} with events: {after}");
            for id in [task, other] {
                fleet.cli(["archive", &id]).ok();
            }
        }
    }
}

/// The id of the newest event.
fn last(fleet: &crate::harness::Fleet) -> u64 {
    fleet.json(["events", "--limit", "1"])["last_event"].as_u64().unwrap_or(0)
}

#[test]
fn a_page_looks_the_same_whichever_pages_were_seen_before() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fill(&fleet);
    // Where the parts of the board are, and how large they are; texts that count time are left out.
    let places = "return [...document.querySelectorAll('.needs, .need, .column-head, .card, .counter.progress, .counter.progress .pie')]
        .map(one => [one.className, ...['top', 'height'].map(side => Math.round(one.getBoundingClientRect()[side])), getComputedStyle(one).display])";
    let page = visit(&fleet);
    open(&page, "/board");
    page.wait(".need");
    page.wait(".counter.progress");
    let before = page.script(places, &[]);
    // Without a load between them, so that each page leaves its styles behind.
    for (key, css) in [
        ("w", ".work-page"),
        ("m", ".missions"),
        ("t", ".timeline-page"),
        ("h", ".health-page"),
        ("b", ".columns .card"),
    ] {
        page.press("g");
        page.press(key);
        page.eventually("the page is there", |page| (page.count(css) > 0).then_some(()));
    }
    page.wait(".need");
    page.eventually("the board is as it was", |page| (page.script(places, &[]) == before).then_some(()));
}
