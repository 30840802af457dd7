//! Look of the page: the system's theme or a chosen one, in the colours of its variables, and with all controls in a
//! narrow window.

use serde_json::{Value, json};

use super::driver::Browser;
use super::every_page::{fill, open};
use super::{card, fleet, visit};
use crate::harness::User;

/// Has the browser say that the system is dark or light.
fn system(page: &Browser, theme: &str) {
    let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
    page.devtools(&json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}}));
}

/// Returns the lightness of the page's background, from 0 to 255.
fn lightness(page: &Browser) -> u64 {
    let colour = page.script(
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)",
        &[],
    );
    colour.as_array().unwrap().iter().map(|part| part.as_u64().unwrap()).sum::<u64>() / 3
}

fn wait_light(page: &Browser, is_light: bool) {
    page.eventually("the page has the theme", |page| ((lightness(page) > 128) == is_light).then_some(()));
}

#[test]
fn the_theme_is_that_of_the_system_until_another_is_chosen() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    system(&page, "light");
    wait_light(&page, true);
    // It changes with the system, without a load.
    system(&page, "dark");
    wait_light(&page, false);

    // The key goes from the system's to dark, and on to light, which stays.
    page.press("T");
    page.wait("#theme[aria-label='Theme: dark']");
    system(&page, "light");
    wait_light(&page, false);
    page.press("T");
    page.wait("#theme[aria-label='Theme: light']");
    wait_light(&page, true);
    system(&page, "dark");
    page.reload();
    page.wait("main .board");
    wait_light(&page, true);
}

#[test]
fn the_variables_of_the_theme_give_the_page_its_colours_its_corners_and_its_fonts() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("a card", "true", &["--initial-status", "blocked"]);
    let page = visit(&fleet);
    page.wait(&card(&task));
    let look = |page: &Browser| {
        page.script(
            "const [card, id] = [arguments[0], arguments[0] + ' .id'].map(css => getComputedStyle(document.querySelector(css)));
             const dot = getComputedStyle(document.querySelector('.column[data-status=blocked] .status'), '::before');
             return [getComputedStyle(document.body).backgroundColor, card.backgroundColor, card.borderTopLeftRadius, id.fontFamily, dot.backgroundColor]",
            &[card(&task).into()],
        )
    };
    let before = look(&page);
    page.script(
        "for (const [name, value] of Object.entries(arguments[0])) document.documentElement.style.setProperty(name, value)",
        &[json!({"--color-background": "rgb(1, 2, 3)", "--color-card": "rgb(4, 5, 6)", "--radius": "11px", "--font-mono": "Tiresias", "--color-status-blocked": "rgb(7, 8, 9)"})],
    );
    let after = json!(["rgb(1, 2, 3)", "rgb(4, 5, 6)", "11px", "Tiresias", "rgb(7, 8, 9)"]);
    page.eventually("the page has other colours", |page| (look(page) == after).then_some(()));
    assert!(
        before.as_array().unwrap().iter().zip(after.as_array().unwrap()).all(|(old, new)| old != new),
        "{before}"
    );
}

#[test]
fn a_narrow_window_cuts_off_no_control() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fill(&fleet);
    let page = visit(&fleet);
    page.resize(360, 740);
    for path in ["/board?q=x&archived=1", "/work", "/missions", "/timeline", "/health"] {
        open(&page, path);
        // Lists of cards and of columns are scrolled sideways; the rows of controls are not.
        let cut: Value = page.script(
            "return [...document.querySelectorAll('header *, .toolbar *, .page-head *, .section-head *')]
                 .filter(one => one.matches('a, button, input, select, label') && one.getClientRects().length)
                 .filter(one => { const box = one.getBoundingClientRect(); return box.left < 0 || box.right > innerWidth; })
                 .map(one => one.outerHTML.slice(0, 80))",
            &[],
        );
        assert_eq!(cut, json!([]), "{path}");
    }
}

/// The contrast of two colours of `#rrggbb`, as the rules for accessibility have it.
fn contrast(one: &str, other: &str) -> f64 {
    let light = |colour: &str| {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    };
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn words_have_contrast_enough_under_the_pointer_and_on_what_is_selected() {
    let css = include_str!("../../supervisor/bridges/src/dashboard/page/css/theme.css");
    let dark = css.split(":root[data-theme=\"dark\"] {").nth(1).unwrap();
    let light = css.split(":root[data-theme=\"light\"] {").nth(1).unwrap();
    for theme in [dark, light] {
        let value = |name: &str| {
            let (_, rest) = theme.split_once(&format!("--color-{name}: ")).unwrap();
            &rest[..7]
        };
        for (words, ground) in [
            ("primary-foreground", "primary"),
            ("primary-foreground", "primary-hover"),
            ("faint", "accent-soft"),
            ("muted-foreground", "accent-soft"),
            ("accent", "accent-soft"),
            ("status-archived", "accent-soft"),
        ] {
            let found = contrast(value(words), value(ground));
            assert!(found >= 4.5, "{words} on {ground}: {found:.2}");
        }
    }
}
