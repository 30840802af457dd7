//! Changes elsewhere appear at once, and a page misses nothing while its connection is lost.

use serde_json::{Value, json};

use super::driver::Browser;
use super::every_page::{mission, open};
use super::{card, column, enter, fleet, visit};
use crate::harness::User;
use crate::http::Http;

#[test]
fn two_browsers_and_the_command_line_see_the_same() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (one, two) = (visit(&fleet), visit(&fleet));
    let task = fleet.create("seen by both", "true", &["--initial-status", "blocked"]);
    one.wait(&card(&task));
    two.wait(&card(&task));

    one.drag(&card(&task), &column("triage"));
    two.wait(&format!("{} [data-task=\"{task}\"]", column("triage")));
    fleet.cli(["archive", &task]).ok();
    one.wait_gone(&card(&task));
    two.wait_gone(&card(&task));
}

#[test]
fn a_page_outlives_a_restart_of_the_daemon_and_misses_nothing() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = Browser::start();
    enter(&page, &fleet);
    page.wait("#connection[data-state=live]");

    fleet.stop(&[]);
    page.wait("#connection:not([data-state=live])");
    let task = fleet.create("made while nobody looked", "true", &["--initial-status", "blocked"]);
    fleet.start();

    page.wait("#connection[data-state=live]");
    page.wait(&card(&task));
}

#[test]
fn a_session_that_is_revoked_ends_and_the_page_says_how_to_go_on() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (page, other) = (visit(&fleet), visit(&fleet));
    let sessions = fleet.json(["dashboard", "sessions"]);
    let of_page = sessions[0]["session"].as_str().unwrap_or_else(|| panic!("{sessions:#}"));
    fleet.cli(["dashboard", "revoke", of_page]).ok();

    let revoked = page.eventually("one of the pages says how to go on", |page| {
        [page, &other]
            .into_iter()
            .position(|page| page.text("body").is_some_and(|text| text.contains("supervisor dashboard")))
    });
    let still = if revoked == 0 { &other } else { &page };
    assert!(still.sees(".board"), "the other session goes on");
    still.wait("#connection[data-state=live]");
}

#[test]
fn a_thousand_events_at_once_draw_a_few_times_and_all_of_them() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let api = Http::at(fleet.root().join("run/supervisor.sock"));
    let ids: Vec<Value> = (0..500)
        .map(|number| {
            let body = json!({"title": format!("task {number}"), "initial_status": "blocked"});
            let made: Value = serde_json::from_str(&api.post("/api/v1/verbs/create", &body).body).unwrap();
            made["id"].clone()
        })
        .collect();
    let page = visit(&fleet);
    page.eventually("all are there", |page| {
        (page.text(&format!("{} .count", column("blocked")))?.contains("500")).then_some(())
    });
    page.script(
        "window.batches = 0;
         new MutationObserver(changes => { window.batches += changes.length; })
             .observe(document.getElementById('connection'), {attributes: true, attributeFilter: ['data-event']});
         window.draws = 0; window.last = performance.now(); window.first = window.last;
         new MutationObserver(() => { window.draws += 1; window.last = performance.now(); })
             .observe(document.querySelector('.columns'), {subtree: true, childList: true, characterData: true});
         performance.clearResourceTimings(); performance.setResourceTimingBufferSize(100000)",
        &[],
    );
    // Each request is one commit with 500 events, and they come as fast as the daemon writes them.
    for priority in [5, 6] {
        let answer = api.post("/api/v1/tasks/bulk", &json!({"ids": ids, "priority": priority}));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    page.eventually("the last change of the last card is seen", |page| {
        page.wheel(&format!("{} .scroller", column("blocked")), 100_000);
        let card = page.script("return [...document.querySelectorAll('.column[data-column=blocked] .card')].at(-1)?.textContent ?? ''", &[]);
        card.as_str().is_some_and(|text| text.contains('6')).then_some(())
    });
    let measured = page.script(
        "return [window.draws, performance.getEntriesByType('resource').filter(one => one.name.includes('/api/')).length, window.last - window.first, window.batches]",
        &[],
    );
    println!("draws, requests, milliseconds, batches: {measured}");
    let [draws, requests, millis, handed] = [0, 1, 2, 3].map(|at| measured[at].as_f64().unwrap());
    // A batch each 50 ms, however many events are in it. What is scrolled draws, too.
    let batches = millis / 50.0 + 2.0;
    assert!((1.0..=batches).contains(&handed), "{measured}");
    assert!(requests <= 4.0 * batches, "{measured}");
    assert!(draws <= 6.0 * batches + 40.0, "{measured}");
}

#[test]
fn a_daemon_that_is_killed_is_shown_as_gone_and_its_return_shows_all_that_happened() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let (stays, goes) = (
        fleet.create("stays", "true", &["--initial-status", "blocked"]),
        fleet.create("goes", "true", &["--initial-status", "blocked"]),
    );
    let board = Browser::start();
    enter(&board, &fleet);
    board.wait(&card(&goes));
    let log = Browser::start();
    enter(&log, &fleet);
    let works = fleet.create("works", "echo begun; while :; do sleep 0.2; echo again; done", &[]);
    log.go(&format!("/runs/{works}"));
    log.wait_text(".log-rows", "begun");

    fleet.kill_daemon();
    for page in [&board, &log] {
        page.wait_text("#connection", "Connection lost");
        page.wait_text("#banner", "The daemon does not answer");
    }
    let made = fleet.create("made meanwhile", "true", &["--initial-status", "blocked"]);
    fleet.cli(["archive", &goes]).ok();
    fleet.cli(["edit", &stays, "--title", "stays under another name"]).ok();
    fleet.start();

    for page in [&board, &log] {
        page.wait("#connection[data-state=live]");
        page.wait_gone("#banner");
    }
    board.wait(&card(&made));
    board.wait_text(&card(&stays), "stays under another name");
    board.wait_gone(&card(&goes));
    let before = log.text(".log-state");
    log.eventually("the log goes on", |page| (page.text(".log-state") != before).then_some(()));
    fleet.cli(["cancel", &works]).ok();
    log.wait_text(".page-head", "cancelled");
    board.is_content();
    log.is_content();
}

/// Returns the page's requests to the API since the list was cleared, without the stream.
fn requests(page: &Browser) -> Vec<String> {
    let all = page.script(
        "return performance.getEntriesByType('resource').map(one => one.name.split('/api/v1/')[1]).filter(one => one && !one.startsWith('stream'))",
        &[],
    );
    serde_json::from_value(all).unwrap()
}

/// Returns the number of requests with this beginning.
fn begin(requests: &[String], begin: &str) -> usize {
    requests.iter().filter(|one| one.starts_with(begin)).count()
}

#[test]
fn an_event_is_drawn_by_what_it_says_or_with_one_request() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("first name", "sleep 600", &[]);
    fleet.wait_for(&task, "running");
    let mission = mission(&fleet);
    let page = visit(&fleet);
    let rename = |id: &str, to: &str| fleet.cli(["edit", id, "--title", to]).ok();
    let forget = || page.script("performance.clearResourceTimings()", &[]);

    open(&page, &format!("/board?task={task}"));
    page.wait_text("#drawer .drawer-title", "first name");
    forget();
    rename(&task, "second name");
    page.wait_text("#drawer .drawer-title", "second name");
    let asked = requests(&page);
    assert_eq!(begin(&asked, "tasks/"), 1, "{asked:?}");

    open(&page, "/missions");
    page.wait_text(".missions", "the mission");
    forget();
    rename(&mission, "its second name");
    page.wait_text(".missions", "its second name");
    let asked = requests(&page);
    assert_eq!((asked.len(), begin(&asked, "verbs/missions")), (1, 1), "{asked:?}");

    open(&page, "/timeline?by=task");
    page.wait_text(".gantt", "second name");
    forget();
    rename(&task, "third name");
    page.wait_text(".gantt", "third name");
    let asked = requests(&page);
    assert_eq!((asked.len(), begin(&asked, "board?ids=")), (1, 1), "{asked:?}");
    // Its end is drawn by the event alone.
    forget();
    fleet.cli(["cancel", &task]).ok();
    page.wait(".gantt-bar:not(.is-live)");
    assert_eq!(requests(&page), [""; 0]);
    // What begins is drawn with what its task is called, which one request says, and what runs now, which another one says beside it.
    let later = fleet.create("came later", "sleep 600", &[]);
    page.wait(".gantt-bar.is-live");
    page.wait_text(".gantt", "came later");
    assert!(requests(&page).len() <= 4, "{:?} for {later}", requests(&page));
}

/// The pages that are entered while the daemon is away, and a text that each shows once it is back.
const AWAY: [(&str, &str, &str); 4] = [
    ("/board?archived=1", ".columns", "was archived"),
    ("/work", ".work-page", "stays asleep"),
    ("/timeline?by=task", ".timeline-page", "stays asleep"),
    ("/health", ".health-page", "healthy"),
];

#[test]
fn a_page_that_is_entered_while_the_daemon_is_away_is_read_when_it_is_back_and_counts_nothing_before() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.create("is blocked", "true", &["--initial-status", "blocked"]);
    let archived = fleet.create("was archived", "true", &["--initial-status", "blocked"]);
    fleet.cli(["archive", &archived]).ok();
    let sleeps = fleet.create("stays asleep", "sleep 600", &[]);
    fleet.wait_for(&sleeps, "running");
    let pages: Vec<Browser> = AWAY.iter().map(|_| visit(&fleet)).collect();

    fleet.kill_daemon();
    for (page, (path, _, _)) in pages.iter().zip(AWAY) {
        page.wait("#connection:not([data-state=live])");
        // As a click on a link does. The page of the board was there before; that of another is not loaded yet.
        let enter = "history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))";
        page.script(enter, &["/work".into()]);
        page.script(enter, &[path.into()]);
    }
    let counts = "return [...document.querySelectorAll('.columns .count, .strip .number')].map(one => one.textContent).join('')";
    let board = &pages[0];
    board.wait(".columns");
    board.wait_text("#toasts", "The daemon does not answer");
    assert_eq!(board.script(counts, &[]), "", "no count is known");
    fleet.start();

    for (page, (_, css, part)) in pages.iter().zip(AWAY) {
        page.wait("#connection[data-state=live]");
        page.wait_text(css, part);
    }
    for status in ["blocked", "archived"] {
        board.wait_text(&format!("{} .count", column(status)), "1");
    }
}

#[test]
fn the_page_of_health_says_nothing_of_holds_and_problems_while_the_daemon_is_away() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.cli(["hold", "--profile", "shell", "--reason", "repairs"]).ok();
    let page = visit(&fleet);
    // Its modules are loaded.
    open(&page, "/health");
    page.wait_text(".health-page", "repairs");
    open(&page, "/work");

    fleet.kill_daemon();
    page.wait("#connection:not([data-state=live])");
    page.script("history.pushState(null, '', '/health'); dispatchEvent(new PopStateEvent('popstate'))", &[]);
    page.wait(".health-page:not(.is-waiting)");
    page.wait_text("#toasts", "The daemon does not answer");
    let shown = page.text(".health-page").unwrap();
    for claim in ["No problem is known", "Nothing is held"] {
        assert!(!shown.contains(claim), "{shown}");
    }
    fleet.start();

    page.wait_text(".health-page", "repairs");
    page.wait_text(".health-page", "No problem is known");
}

#[test]
fn a_log_that_is_opened_while_the_daemon_is_away_has_no_lines_before_they_are_read() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let writes = fleet.create("writes", "echo begun; sleep 600", &[]);
    let page = visit(&fleet);
    page.go(&format!("/runs/{writes}"));
    page.wait_text(".log-rows", "begun");
    // Without a load between the pages, so that the modules of the log stay.
    let enter = "history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))";
    page.script(enter, &["/work".into()]);
    page.wait(".work-page");

    fleet.kill_daemon();
    page.wait("#connection:not([data-state=live])");
    page.script(enter, &[format!("/runs/{writes}").into()]);
    page.wait_text(".log-note", "cannot be followed at the moment");
    assert_eq!(page.text(".log-state").as_deref(), Some(""), "no size is known");
    assert!(!page.text(".log").unwrap().contains("Nothing has been written"));
    fleet.start();

    page.wait_text(".log-rows", "begun");
    page.wait_text(".log-state", "1 line");
}

#[test]
fn the_tasks_of_all_tenants_that_need_a_person_are_counted_once_they_are_read() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    for tenant in ["acme", "beta"] {
        fleet.create("is blocked", "true", &["--initial-status", "blocked", "--tenant", tenant]);
    }
    let page = visit(&fleet);
    open(&page, "/board?tenant=acme");
    page.wait_text(".needs-head", "1 blocked");

    fleet.kill_daemon();
    page.wait("#connection:not([data-state=live])");
    page.script("history.pushState(null, '', '/board'); dispatchEvent(new PopStateEvent('popstate'))", &[]);
    page.wait_text("#toasts", "The daemon does not answer");
    page.wait_text(".needs-list", "is blocked");
    assert_eq!(page.text(".needs-head").unwrap().trim(), "Needs a person");
    fleet.start();

    page.wait_text(".needs-head", "2 blocked");
}

#[test]
fn what_had_no_answer_is_read_again_although_the_connection_was_never_lost() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let before = fleet.create("was there before", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    page.wait(&card(&before));
    let enter = "history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))";
    page.script(enter, &["/work".into()]);
    page.wait(".work-page:not(.is-waiting)");
    page.script(
        "const plain = window.fetch; window.isLost = true;
         window.fetch = (...all) => (window.isLost && /board/.test(String(all[0])) ? Promise.reject(new TypeError('lost')) : plain(...all))",
        &[],
    );
    page.script(enter, &["/board".into()]);
    page.wait_text("#toasts", "The daemon does not answer");
    page.wait("#connection[data-state=live]");
    page.script("window.isLost = false", &[]);
    fleet.create("is the next event", "true", &["--initial-status", "blocked"]);

    page.wait(&card(&before));
    page.wait_text(&format!("{} .count", column("blocked")), "2");
}

#[test]
fn the_archived_tasks_are_counted_once_they_are_read() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let archived = fleet.create("was archived", "true", &["--initial-status", "blocked"]);
    fleet.cli(["archive", &archived]).ok();
    let page = visit(&fleet);
    page.wait(".columns:not([aria-busy])");

    fleet.kill_daemon();
    page.wait("#connection:not([data-state=live])");
    page.click("[aria-label='Show archived tasks']");
    page.wait(&column("archived"));
    page.wait_text("#toasts", "The daemon does not answer");
    assert_eq!(page.text(&format!("{} .count", column("archived"))).as_deref(), Some(""));
    fleet.start();

    page.wait(&card(&archived));
    page.wait_text(&format!("{} .count", column("archived")), "1");
}
