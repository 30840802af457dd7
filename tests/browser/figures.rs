//! Figures of the dashboard, as a table: `tests/run --browser figures`. They depend on the host and its load, so nothing is checked.
//! `SUPERVISOR_TEST_BINARY` names the binary that is measured, such as a release build.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::driver::Browser;
use super::every_page::{fill, mission, open, paths};
use super::{column, enter, fleet, visit};
use crate::harness::{User, binary};
use crate::http::Http;

/// Number of measurements; the median and the maximum are printed.
const TIMES: usize = 15;
/// Number of cards of the column that is scrolled.
const CARDS: u32 = 10_000;
/// Milliseconds of a frame at 60 frames per second.
const FRAME: f64 = 16.7;

/// The middle and the largest of some figures.
fn middle(mut all: Vec<f64>) -> (f64, f64) {
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2], *all.last().unwrap())
}

/// The time of the host, in milliseconds.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0
}

/// Returns the times of the first paint and of the page with its data, in milliseconds since the start of loading.
fn painted(page: &Browser) -> (f64, f64) {
    let at = page.eventually("something is painted", |page| {
        page.script(
            "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null",
            &[],
        )
        .as_f64()
    });
    let whole = page.script("return performance.getEntriesByType('resource').reduce((last, one) => Math.max(last, one.name.includes('/stream') ? 0 : one.responseEnd), 0)", &[]);
    (at, whole.as_f64().unwrap())
}

#[test]
#[ignore = "it measures, and checks nothing: tests/run --browser figures"]
fn figures_of_pages() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let ran = fill(&fleet);
    println!("binary {}", binary());
    println!(
        "{:<24} {:>14} {:>14} {:>12} {:>12} {:>10} {:>10}",
        "page", "cold paint ms", "warm paint ms", "cold data", "warm data", "raw bytes", "as sent"
    );
    for path in paths(&ran) {
        // A browser that has seen nothing yet loads all of it, and then the same page again from what it keeps.
        let cold = (0..3).map(|_| {
            let page = Browser::start();
            enter(&page, &fleet);
            let cleared = json!({"cmd": "Network.clearBrowserCache", "params": {}});
            page.devtools(&cleared);
            open(&page, &path);
            painted(&page)
        });
        let cold: Vec<(f64, f64)> = cold.collect();
        let page = visit(&fleet);
        open(&page, &path);
        let warm = (0..TIMES).map(|_| {
            open(&page, &path);
            painted(&page)
        });
        let warm: Vec<(f64, f64)> = warm.collect();
        page.devtools(&json!({"cmd": "Network.clearBrowserCache", "params": {}}));
        open(&page, &path);
        let bytes = page.script(
            "const all = performance.getEntriesByType('resource').filter(one => one.name.includes('/assets/'));
             const own = performance.getEntriesByType('navigation');
             return [[...all, ...own].reduce((sum, one) => sum + one.decodedBodySize, 0), [...all, ...own].reduce((sum, one) => sum + one.encodedBodySize, 0)]",
            &[],
        );
        let of = |all: &[(f64, f64)], data: bool| {
            middle(all.iter().map(|one| if data { one.1 } else { one.0 }).collect()).0
        };
        let name = path.replace(&ran, "T");
        println!(
            "{name:<24} {:>14.0} {:>14.0} {:>12.0} {:>12.0} {:>10} {:>10}",
            of(&cold, false),
            of(&warm, false),
            of(&cold, true),
            of(&warm, true),
            bytes[0],
            bytes[1]
        );
    }
}

/// Returns the verb and its fields that make a text be seen on a page.
type Change<'a> = dyn Fn(&str) -> (&'static str, Value) + 'a;

#[test]
#[ignore = "it measures, and checks nothing: tests/run --browser figures"]
fn figures_of_events() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    let task = fleet.create("changes", "sleep 600", &[]);
    fleet.wait_for(&task, "running");
    let page = visit(&fleet);
    println!("binary {}", binary());
    let waits = fleet.create("changes", "true", &["--initial-status", "blocked"]);
    let mission = mission(&fleet);
    let titled = |id: &str| {
        let id = id.to_owned();
        move |text: &str| ("edit", json!({"task_id": id, "title": text}))
    };
    let held = |text: &str| ("hold", json!({"tenant": "acme", "reason": text}));
    let opened = format!("/board?task={task}");
    let its = format!("/missions/{mission}");
    let places: [(&str, &str, &Change<'_>); 7] = [
        ("/board", ".columns", &titled(&task)),
        (&opened, "#drawer", &titled(&task)),
        ("/work", ".waitings", &titled(&waits)),
        ("/missions", ".missions", &titled(&mission)),
        (&its, ".page-head", &titled(&mission)),
        ("/timeline?by=task", ".gantt", &titled(&task)),
        ("/health", ".health-page", &held),
    ];
    for (path, place, change) in places {
        open(&page, path);
        page.wait(place);
        // An event by itself, as one that a person waits for; and one after the other, which a page draws together where they are near.
        for (pause, way) in [(Duration::from_millis(400), "by itself"), (Duration::ZERO, "in a row")] {
            let taken: Vec<(f64, f64)> = (0..TIMES)
            .map(|number| {
                std::thread::sleep(pause);
                let title = format!("changes{number}x{}", way.len());
                page.script(
                    "window.seen = null; window.watch?.disconnect();
                     window.watch = new MutationObserver(() => {
                         if (window.seen === null && document.querySelector(arguments[0])?.textContent.includes(arguments[1])) requestAnimationFrame(() => { window.seen = performance.timeOrigin + performance.now(); });
                     });
                     window.watch.observe(document.body, {subtree: true, childList: true, characterData: true})",
                    &[place.into(), title.clone().into()],
                );
                let sent = now();
                let (verb, body) = change(&title);
                let answer = api.post(&format!("/api/v1/verbs/{verb}"), &body);
                assert_eq!(answer.status, 200, "{}", answer.body);
                let committed = now();
                let seen = page.eventually("the change is seen", |page| page.script("return window.seen", &[]).as_f64());
                (seen - sent, seen - committed)
            })
            .collect();
            let (sent, most) = middle(taken.iter().map(|one| one.0).collect());
            let (committed, worst) = middle(taken.iter().map(|one| one.1).collect());
            let name = path.replace(&task, "T").replace(&mission, "M");
            println!(
                "{name:<18} {way:<10} request to paint: median {sent:.0} ms, most {most:.0}; reply of the commit to paint: median {committed:.0} ms, most {worst:.0}"
            );
        }
    }
}

#[test]
#[ignore = "it measures, and checks nothing: tests/run --browser figures"]
fn figures_of_scrolling() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    for number in 0..CARDS {
        let body = json!({"title": format!("card {number} of very many"), "initial_status": "blocked", "priority": number % 7});
        let made: Value = serde_json::from_str(&api.post("/api/v1/verbs/create", &body).body).unwrap();
        assert!(made["id"].is_string(), "{made:#}");
    }
    let page = visit(&fleet);
    let blocked = format!("{} .scroller", column("blocked"));
    // All pages of the column are loaded, as a person does who goes on to its end.
    page.eventually("all cards are there", |page| {
        page.script(
            "const more = document.querySelector(arguments[0]); if (more && !more.hidden) more.click();
             const all = document.querySelector(arguments[1]); return all.scrollHeight",
            &[format!("{} .column-more", column("blocked")).into(), blocked.clone().into()],
        )
        .as_f64()
        .filter(|height| *height > 60.0 * f64::from(CARDS))
    });
    let height = page
        .script("return document.querySelector(arguments[0]).scrollHeight", &[blocked.clone().into()])
        .as_i64()
        .unwrap();
    // The compositor's own pace, where nothing happens.
    let measure = |page: &Browser, act: &dyn Fn()| -> Vec<f64> {
        page.script(
            "window.frames = []; window.going = true; let before = null;
             const step = now => { if (before !== null) window.frames.push(now - before); before = now; if (window.going) requestAnimationFrame(step); };
             requestAnimationFrame(step)",
            &[],
        );
        act();
        let frames = page.script("window.going = false; return window.frames", &[]);
        frames.as_array().unwrap().iter().filter_map(Value::as_f64).collect()
    };
    let told = |name: &str, frames: Vec<f64>| {
        let count = frames.len();
        let late = frames.iter().filter(|time| **time > FRAME + 1.0).count();
        let (half, most) = middle(frames);
        let late_after = FRAME + 1.0;
        println!(
            "{name:<34} {count} frames, {late} over {late_after:.1} ms, median {half:.1} ms, longest {most:.1} ms"
        );
    };
    println!("binary {}; {CARDS} cards, {height} px high", binary());
    told("nothing happens", measure(&page, &|| std::thread::sleep(std::time::Duration::from_secs(2))));
    let steps = 400;
    told(
        "the wheel goes through all of them",
        measure(&page, &|| {
            // A turn that comes while the one before is still carried out is cut short.
            for turn in 0..4 * steps {
                page.wheel(&blocked, height / steps + 1);
                let at_end = "const all = document.querySelector(arguments[0]); return all.scrollTop + all.clientHeight + 2 > all.scrollHeight";
                if turn % 20 == 0 && page.script(at_end, &[blocked.clone().into()]) == true {
                    break;
                }
            }
        }),
    );
    let share = page.script(
        "const all = document.querySelector(arguments[0]); return Math.round(100 * (all.scrollTop + all.clientHeight) / all.scrollHeight)",
        &[blocked.into()],
    );
    println!("{share} % of the column were scrolled through");
}
