//! The drawer of a task: what it says, and what is changed in it.

mod body;
mod edit;
mod events;
mod files;
mod head;
mod links;
mod live;
mod moves;
mod opened;
mod person;
mod runs;
mod thread;

use super::card;
use super::driver::Browser;

/// Opens the drawer of a task by its card.
#[track_caller]
fn open(page: &Browser, id: &str) {
    page.click(&format!("{} .card-title", card(id)));
    page.wait_text("#drawer .drawer-id", id);
    page.wait("#drawer .drawer-title");
}

/// Opens the drawer of a task by the address, without loading the page again: another drawer may cover its card.
#[track_caller]
fn open_by_address(page: &Browser, id: &str) {
    page.script(
        "history.pushState(null, '', '/board?archived=1&task=' + arguments[0]); dispatchEvent(new PopStateEvent('popstate'))",
        &[id.into()],
    );
    page.wait_text("#drawer .drawer-id", id);
    page.wait("#drawer .drawer-title");
}

/// The selector of the part of the drawer with a heading.
fn part(heading: &str) -> String {
    format!("#drawer .drawer-section[aria-label=\"{heading}\"]")
}
