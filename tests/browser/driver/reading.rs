//! Content of a page, read in one call.

use serde_json::{Value, json};

use super::Browser;

impl Browser {
    /// The texts of all that a selector names, in the order of the page, hidden ones for screen readers too.
    pub(crate) fn texts(&self, css: &str) -> Vec<String> {
        let texts = self.script(
            "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent.trim())",
            &[css.into()],
        );
        serde_json::from_value(texts).unwrap()
    }

    /// The tasks of all that a selector names, in the order of the page.
    pub(crate) fn tasks(&self, css: &str) -> Vec<String> {
        let ids = self.script(
            "return [...document.querySelectorAll(arguments[0])].map(one => one.dataset.task)",
            &[css.into()],
        );
        serde_json::from_value(ids).unwrap()
    }

    /// The task of the card that has the focus.
    pub(crate) fn focused_task(&self) -> Option<String> {
        let id =
            self.script("return document.activeElement?.closest('[data-task]')?.dataset.task ?? null", &[]);
        id.as_str().map(str::to_owned)
    }

    /// Returns the value of a field.
    pub(crate) fn value(&self, css: &str) -> Option<String> {
        let value = self.script("return document.querySelector(arguments[0])?.value ?? null", &[css.into()]);
        value.as_str().map(str::to_owned)
    }

    /// Returns true if an element has the focus.
    pub(crate) fn is_focused(&self, css: &str) -> bool {
        self.script("return document.activeElement?.matches(arguments[0]) ?? false", &[css.into()])
            == json!(true)
    }

    /// A computed style of something.
    pub(crate) fn style(&self, css: &str, name: &str) -> Value {
        self.script(
            "return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])",
            &[css.into(), name.into()],
        )
    }

    /// Clicks on the first of what a selector names that has a text.
    #[track_caller]
    pub(crate) fn click_text(&self, css: &str, text: &str) {
        self.eventually(&format!("{css} with {text:?} can be clicked on"), |page| {
            let clicked = page.script(
                "const [css, text] = arguments;
                 const one = [...document.querySelectorAll(css)].find(one => one.textContent.trim().includes(text) && one.checkVisibility() && !one.disabled);
                 one?.click(); return Boolean(one);",
                &[css.into(), text.into()],
            );
            (clicked == json!(true)).then_some(())
        });
    }

    /// Waits until the address has, or has not, a part.
    #[track_caller]
    pub(crate) fn wait_address(&self, part: &str, is_there: bool) {
        self.eventually(&format!("{part:?} in the address is {is_there}"), |page| {
            (page.address().contains(part) == is_there).then_some(())
        });
    }
}
