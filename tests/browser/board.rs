//! The board: columns, cards, what needs a person, and what is done to many tasks at once.

pub(super) mod cards;
mod create;
mod drag;
mod filters;
mod keyboard;
mod many;
mod needs;
mod select;

use super::column;
use super::driver::Browser;
use crate::harness::Fleet;

/// The selector of a card in a column.
fn card_in(status: &str, id: &str) -> String {
    format!("{} .card[data-task=\"{id}\"]", column(status))
}

/// Waits until a column has these tasks, in this order.
#[track_caller]
fn wait_column(page: &Browser, status: &str, ids: &[&String]) {
    let cards = format!("{} .card", column(status));
    page.eventually(&format!("{status} has {ids:?}"), |page| {
        (page.tasks(&cards).iter().collect::<Vec<_>>() == ids).then_some(())
    });
}

/// Chooses what fits a text in the list of a dialog.
#[track_caller]
fn choose(page: &Browser, text: &str) {
    page.fill("dialog.picker input", text);
    page.eventually(&format!("{text} is chosen"), |page| {
        let chosen = page.text("dialog.picker [aria-selected=true]")?;
        chosen.starts_with(text).then_some(())
    });
    page.press(super::driver::ENTER);
    page.wait_gone("dialog.picker");
}

/// Creates tasks that wait for a person, in the order of their titles on the board.
fn parked<const N: usize>(fleet: &Fleet, titles: [&str; N]) -> [String; N] {
    let mut priority = 100;
    titles.map(|title| {
        priority -= 1;
        fleet.create(title, "true", &["--initial-status", "blocked", "--priority", &priority.to_string()])
    })
}
