//! The drawer of a task: what it says, and what is changed in it.

mod body;
mod edit;
mod events;
mod files;
mod head;
mod links;
mod live;

use super::card;
use super::driver::Browser;

/// Opens the drawer of a task: by its card, and by the address where the drawer of another one covers that.
#[track_caller]
fn open(page: &Browser, id: &str) {
    if page.sees("#drawer") {
        page.script(
            "history.pushState(null, '', '/board?archived=1&task=' + arguments[0]); dispatchEvent(new PopStateEvent('popstate'))",
            &[id.into()],
        );
    } else {
        page.click(&format!("{} .card-title", card(id)));
    }
    page.wait_text("#drawer .drawer-id", id);
    page.wait("#drawer .drawer-title");
}

/// The selector of the part of the drawer with a heading.
fn part(heading: &str) -> String {
    format!("#drawer .drawer-section[aria-label=\"{heading}\"]")
}
