//! Actions in a browser beside clicks and letters: keys together, files, the button Back.

use std::path::Path;

use serde_json::{Value, json};

use super::{Browser, stroke};

impl Browser {
    /// Presses a key while others are held.
    pub(crate) fn chord(&self, held: &str, key: &str) {
        let down = |keys: &str| keys.chars().map(|key| stroke("keyDown", key)).collect::<Vec<_>>();
        let up = |keys: &str| keys.chars().rev().map(|key| stroke("keyUp", key)).collect::<Vec<_>>();
        self.act("key", "keyboard", &json!({}), &[down(held), down(key), up(key), up(held)].concat());
    }

    /// Presses with the mouse at a place of the window, and lets go.
    pub(crate) fn press_at(&self, x: i64, y: i64) {
        let steps = [
            json!({"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": "viewport"}),
            json!({"type": "pointerDown", "button": 0}),
            json!({"type": "pointerUp", "button": 0}),
        ];
        self.act("pointer", "mouse", &json!({"pointerType": "mouse"}), &steps);
    }

    /// Drags something onto another thing, and presses Escape before it lets go.
    #[track_caller]
    pub(crate) fn drag_and_escape(&self, from: &str, to: &str) {
        let (from, to) = (self.middle(from), self.middle(to));
        let moved = |(x, y): (i64, i64), millis: u64| json!({"type": "pointerMove", "duration": millis, "x": x, "y": y, "origin": "viewport"});
        let act = |steps: &[Value]| self.act("pointer", "mouse", &json!({"pointerType": "mouse"}), steps);
        act(&[
            moved(from, 0),
            json!({"type": "pointerDown", "button": 0}),
            moved((from.0 + 12, from.1 + 12), 50),
            moved(to, 100),
        ]);
        self.wait(".ghost");
        self.press(super::ESCAPE);
        act(&[json!({"type": "pointerUp", "button": 0})]);
    }

    /// Drops a file on something, as from another window.
    #[track_caller]
    pub(crate) fn drop_file(&self, css: &str, name: &str, text: &str) {
        self.wait(css);
        self.script(
            "const [css, name, text] = arguments;
             const dataTransfer = new DataTransfer();
             dataTransfer.items.add(new File([text], name, {type: 'text/plain'}));
             const target = document.querySelector(css);
             for (const kind of ['dragenter', 'dragover', 'drop'])
                 target.dispatchEvent(new DragEvent(kind, {dataTransfer, bubbles: true, cancelable: true}));",
            &[css.into(), name.into(), text.into()],
        );
    }

    /// Pastes a file into something.
    #[track_caller]
    pub(crate) fn paste_file(&self, css: &str, name: &str, text: &str) {
        self.wait(css);
        self.script(
            "const [css, name, text] = arguments;
             const clipboardData = new DataTransfer();
             clipboardData.items.add(new File([text], name, {type: 'text/plain'}));
             document.querySelector(css).dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}));",
            &[css.into(), name.into(), text.into()],
        );
    }

    /// Has what is downloaded written into a directory.
    pub(crate) fn download_into(&self, directory: &Path) {
        let how = json!({"behavior": "allow", "downloadPath": directory});
        self.ask("goog/cdp/execute", &json!({"cmd": "Browser.setDownloadBehavior", "params": how})).unwrap();
    }

    /// Presses the button Back.
    pub(crate) fn back(&self) {
        self.ask("back", &json!({})).unwrap();
    }
}
