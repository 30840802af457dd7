//! The dashboard in a real browser.
//!
//! Chromium and its driver are not small: `tests/run --browser` installs them and runs these. Elsewhere they are skips.

mod begin;
mod board;
mod drawer;
mod driver;
mod every_page;
mod figures;
mod first_look;
mod hostile;
mod keys;
mod live;
mod look;
mod newcomer;
mod pictures;
mod steady;
mod tenant;
mod work;
mod work_health;
mod work_log;
mod work_mission;
mod work_review;

use self::driver::Browser;
use crate::harness::{Fleet, User, skip};
use crate::http::free_port;

/// A fleet with a daemon, whose dashboard has a port of its own. None where there is no browser.
fn fleet(user: User, more: &str) -> Option<Fleet> {
    if std::env::var_os("SUPERVISOR_TEST_BROWSER").is_none() {
        skip("the dashboard in a browser: tests/run --browser");
        return None;
    }
    let fleet = Fleet::offline_as(user);
    fleet.configure(&format!("[dashboard]\nlisten = \"127.0.0.1:{}\"\n{more}", free_port()));
    fleet.start();
    Some(fleet)
}

/// A browser that is let in at the dashboard of a fleet, with its board before it.
fn visit(fleet: &Fleet) -> Browser {
    let browser = Browser::start();
    enter(&browser, fleet);
    browser
}

/// Lets a browser in.
fn enter(browser: &Browser, fleet: &Fleet) {
    let url = fleet.json(["dashboard"])["url"].as_str().unwrap().to_owned();
    browser.open(&url);
    browser.wait("main .board");
}

/// The selector of the card of a task.
fn card(id: &str) -> String {
    format!(".columns .card[data-task=\"{id}\"]")
}

/// The selector of a column.
fn column(status: &str) -> String {
    format!(".column[data-column={status}]")
}

/// The answer that a task has got, by its events.
fn answered(shown: &serde_json::Value) -> &str {
    let events = shown["events"].as_array().unwrap();
    let event = events.iter().find(|event| event["kind"] == "answered");
    event.and_then(|event| event["payload"]["answer"].as_str()).unwrap_or_default()
}

/// A directory that the workers of a fleet may write in.
fn yard(fleet: &Fleet) -> std::path::PathBuf {
    let yard = fleet.home().join("yard");
    std::fs::create_dir(&yard).unwrap();
    if User::current() == User::Root {
        std::os::unix::fs::chown(&yard, Some(4711), Some(4711)).unwrap();
    }
    yard
}
