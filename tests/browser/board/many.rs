//! A board of ten thousand tasks: few of them are in the page, and all are found.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::browser::driver::Browser;
use crate::browser::{column, fleet, visit};
use crate::harness::{Fleet, User};

const TASKS: u64 = 10_000;

/// Fills another board with ideas, by an import: what one is like is copied.
fn fill(fleet: &Fleet) {
    fleet.create("idea", "true", &["--triage"]);
    let exported = fleet.cli(["export"]).ok().stdout;
    let mut rows = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all = format!("{}\n", rows.next().unwrap());
    for mut row in rows {
        let end = &mut row["end"];
        if end.is_object() {
            for table in ["tasks", "task_ids", "task_events"] {
                end[table] = TASKS.into();
            }
            end["requests"] = 0.into();
            writeln!(all, "{row}").unwrap();
            continue;
        }
        match row["table"].as_str().unwrap() {
            "requests" => {}
            "tasks" | "task_ids" | "task_events" => {
                for at in 1..=TASKS {
                    let id = format!("t_{at:08x}");
                    let is_event = row["table"] == "task_events";
                    let fields = &mut row["row"];
                    if is_event {
                        fields["id"] = at.into();
                        fields["task_id"] = id.into();
                    } else {
                        fields["id"] = id.into();
                    }
                    if fields["title"].is_string() {
                        fields["title"] = format!("idea {at}").into();
                        fields["priority"] = (at % 5).into();
                    }
                    writeln!(all, "{row}").unwrap();
                }
            }
            "sqlite_sequence" => {
                row["row"]["seq"] = TASKS.into();
                writeln!(all, "{row}").unwrap();
            }
            _ => {
                writeln!(all, "{row}").unwrap();
            }
        }
    }
    let file = fleet.home().join("ideas.jsonl");
    fs::write(&file, all).unwrap();
    fleet.cli(["--board", "many", "import", &file.display().to_string()]).ok();
}

/// Scrolls a column from its top to its end, and returns what was seen: the tasks in their order, and the most elements at once.
fn scroll(page: &Browser) -> (Vec<String>, u64) {
    loop {
        // A few windows at a time: the driver gives a script half a minute.
        let seen = page.script(
            "const column = document.querySelector(arguments[0]);
             const scroller = column.querySelector('.scroller');
             const drawn = () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
             const seen = window.seenCards ??= {tops: new Map(), most: 0};
             return (async () => {
                 for (let step = 0; step < 10; step += 1) {
                     await drawn();
                     const top = scroller.getBoundingClientRect().top - scroller.scrollTop;
                     seen.most = Math.max(seen.most, document.querySelectorAll('.columns *').length);
                     for (const card of column.querySelectorAll('.card'))
                         seen.tops.set(card.dataset.task, card.getBoundingClientRect().top - top);
                     if (scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2)
                         return [[...seen.tops].sort((a, b) => a[1] - b[1]).map(([id]) => id), seen.most];
                     // The windows overlap: a card that is drawn may be higher or lower than it was taken for.
                     scroller.scrollTop += 0.75 * scroller.clientHeight;
                 }
                 return null;
             })();",
            &[column("triage").into()],
        );
        if !seen.is_null() {
            return (serde_json::from_value(seen[0].clone()).unwrap(), seen[1].as_u64().unwrap());
        }
    }
}

#[test]
fn ten_thousand_cards_scroll_with_few_elements_and_each_is_there_once_in_its_order() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fill(&fleet);
    let page = visit(&fleet);
    let origin = page.script("return location.origin", &[]).as_str().unwrap().to_owned();

    page.open(&format!("{origin}/board?board=many"));
    page.eventually("all pages are read", |page| {
        let counted = page.text(&format!("{} .column-head .count", column("triage")))?;
        let of_rows = page.script(
            "return document.querySelector(arguments[0])?.getAttribute('aria-setsize')",
            &[format!("{} .card", column("triage")).into()],
        );
        (counted == "10,000" && of_rows == "10000").then_some(())
    });
    let pages = page.script(
        "return performance.getEntriesByType('resource').filter(one => one.name.includes('/board?') && one.name.includes('cursor=')).length",
        &[],
    );
    assert!(pages.as_u64().unwrap() >= 9, "{pages} pages after the first");

    page.resize(1440, 3000);
    let (seen, most) = scroll(&page);
    let mut expected: Vec<u64> = (1..=TASKS).collect();
    // The greatest priority goes first, then the oldest, which are all equally old here.
    expected.sort_by_key(|at| (4 - at % 5, *at));
    let expected: Vec<_> = expected.into_iter().map(|at| format!("t_{at:08x}")).collect();
    assert_eq!(seen.len(), expected.len());
    let wrong = seen.iter().zip(&expected).position(|(one, other)| one != other);
    assert_eq!(wrong, None, "the first that is elsewhere");
    assert!(most < 1500, "{most} elements at once");
    page.resize(1440, 900);

    page.press("/");
    page.press("idea 9876");
    page.eventually("one is found", |page| {
        (page.tasks(&format!("{} .card", column("triage"))) == [format!("t_{:08x}", 9876)]).then_some(())
    });
    page.is_content();
}
