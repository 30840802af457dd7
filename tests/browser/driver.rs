//! A real browser that a test drives: Chromium without a window, over the `WebDriver` protocol of `chromedriver`.

mod gestures;
mod reading;

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Http;

/// Time limit for the appearance of an element. It is generous, because a slow host under load is no defect.
const LIMIT: Duration = Duration::from_mins(1);
/// The pause between two looks.
const POLL: Duration = Duration::from_millis(20);
/// Key of an element's id in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys that are no characters, as the protocol names them.
pub(super) const ESCAPE: &str = "\u{e00c}";
pub(super) const ENTER: &str = "\u{e007}";
pub(super) const SHIFT: &str = "\u{e008}";
pub(super) const CONTROL: &str = "\u{e009}";
pub(super) const DOWN: &str = "\u{e015}";
pub(super) const UP: &str = "\u{e013}";

/// A browser with one window. Dropped, it is gone with all its processes.
pub(super) struct Browser {
    driver: Child,
    http: Http,
    /// The path of its session.
    session: String,
    /// Its profile, and all that it writes.
    _profile: TempDir,
}

/// A command that the browser refused, in its words.
#[derive(Debug)]
pub(super) struct Refused(#[expect(dead_code, reason = "for the message of a failure")] String);

impl Browser {
    /// Starts one.
    pub(super) fn start() -> Self {
        let profile = tempfile::Builder::new().prefix("sv-browser").tempdir_in("/tmp").unwrap();
        let mut command = Command::new("chromedriver");
        // A group of its own, so that its browser ends with it.
        command.arg("--port=0").process_group(0).env("HOME", profile.path()).env("TMPDIR", profile.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = said.find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        let http = Http::on(port.expect("chromedriver says its port"));
        // What it says later is not read, and must not stop it.
        std::thread::spawn(move || said.for_each(drop));
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1440,900",
            &format!("--user-data-dir={}", profile.path().join("profile").display()),
        ];
        let wanted = json!({"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }});
        let made = http.post("/session", &json!({"capabilities": wanted})).json(200);
        let id = made["value"]["sessionId"].as_str().unwrap();
        Browser { driver, http, session: format!("/session/{id}"), _profile: profile }
    }

    /// Sends a command of the protocol.
    fn ask(&self, path: &str, body: &Value) -> Result<Value, Refused> {
        let answer = self.http.post(&format!("{}/{path}", self.session), body);
        let mut said: Value = serde_json::from_str(&answer.body).unwrap();
        if answer.status == 200 { Ok(said["value"].take()) } else { Err(Refused(said.to_string())) }
    }

    fn look(&self, path: &str) -> Result<Value, Refused> {
        let answer = self.http.get(&format!("{}/{path}", self.session));
        let mut said: Value = serde_json::from_str(&answer.body).unwrap();
        if answer.status == 200 { Ok(said["value"].take()) } else { Err(Refused(said.to_string())) }
    }

    /// The path of an element, where the page has it.
    fn element(&self, css: &str) -> Result<String, Refused> {
        let found = self.ask("element", &json!({"using": "css selector", "value": css}))?;
        Ok(format!("element/{}", found[ELEMENT].as_str().unwrap()))
    }

    /// Opens an address.
    pub(super) fn open(&self, url: &str) {
        self.ask("url", &json!({"url": url})).unwrap();
    }

    /// Opens another page of the dashboard, as a typed address does.
    pub(super) fn go(&self, path: &str) {
        let origin = self.script("return location.origin", &[]);
        self.open(&format!("{}{path}", origin.as_str().unwrap()));
    }

    /// Loads the page again.
    pub(super) fn reload(&self) {
        self.ask("refresh", &json!({})).unwrap();
    }

    /// The address of the page.
    pub(super) fn address(&self) -> String {
        self.look("url").unwrap().as_str().unwrap().to_owned()
    }

    /// Returns the result of a piece of JavaScript; a promise is awaited. `arguments` are its arguments.
    #[track_caller]
    pub(super) fn script(&self, script: &str, arguments: &[Value]) -> Value {
        self.ask("execute/sync", &json!({"script": script, "args": arguments})).unwrap()
    }

    /// Returns true if a visible element matches a CSS selector.
    pub(super) fn sees(&self, css: &str) -> bool {
        let shown = self.element(css).and_then(|element| self.look(&format!("{element}/displayed")));
        shown.is_ok_and(|shown| shown == true)
    }

    /// Returns the number of elements that match a selector.
    pub(super) fn count(&self, css: &str) -> u64 {
        self.script("return document.querySelectorAll(arguments[0]).length", &[css.into()]).as_u64().unwrap()
    }

    /// The text of what a selector names, where it is there.
    pub(super) fn text(&self, css: &str) -> Option<String> {
        let element = self.element(css).ok()?;
        Some(self.look(&format!("{element}/text")).ok()?.as_str()?.to_owned())
    }

    /// Waits until a look finds something.
    #[track_caller]
    pub(super) fn eventually<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            if start.elapsed() > LIMIT {
                let text = self.text("body").unwrap_or_default();
                panic!(
                    "after {LIMIT:?} it is not so that {what}; {} shows:\n{text}\n{:?}",
                    self.address(),
                    self.complaints()
                );
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until something is there and visible.
    #[track_caller]
    pub(super) fn wait(&self, css: &str) {
        self.eventually(&format!("{css} is there"), |page| page.sees(css).then_some(()));
    }

    /// Waits until something is there no more.
    #[track_caller]
    pub(super) fn wait_gone(&self, css: &str) {
        self.eventually(&format!("{css} is gone"), |page| (!page.sees(css)).then_some(()));
    }

    /// Waits until what a selector names has a text.
    #[track_caller]
    pub(super) fn wait_text(&self, css: &str, part: &str) {
        self.eventually(&format!("{css} says {part:?}"), |page| {
            page.text(css).is_some_and(|text| text.contains(part)).then_some(())
        });
    }

    /// Clicks on something as soon as it can be clicked on. What is drawn again meanwhile is looked for again.
    #[track_caller]
    pub(super) fn click(&self, css: &str) {
        self.eventually(&format!("{css} can be clicked on"), |page| {
            let element = page.element(css).ok()?;
            page.ask(&format!("{element}/click"), &json!({})).ok()
        });
    }

    /// Types into a field, in the place of what it has. The field keeps the focus.
    #[track_caller]
    pub(super) fn fill(&self, css: &str, text: &str) {
        self.eventually(&format!("{css} can be filled"), |page| {
            let element = page.element(css).ok()?;
            page.ask(
                "execute/sync",
                &json!({
                    "script": "arguments[0].focus(); arguments[0].select();",
                    "args": [{ELEMENT: element.trim_start_matches("element/")}],
                }),
            )
            .ok()?;
            page.ask(&format!("{element}/value"), &json!({"text": text})).ok()
        });
    }

    /// Gives a file to a field for files.
    #[track_caller]
    pub(super) fn upload(&self, css: &str, file: &std::path::Path) {
        self.eventually(&format!("{css} takes a file"), |page| {
            // Such a field is mostly hidden behind a button.
            let element = page.element(css).ok()?;
            page.ask(&format!("{element}/value"), &json!({"text": file})).ok()
        });
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub(super) fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|key| [stroke("keyDown", key), stroke("keyUp", key)]);
        self.act("key", "keyboard", &json!({}), &strokes.collect::<Vec<_>>());
    }

    /// Turns the wheel over something, by that many pixels.
    #[track_caller]
    pub(super) fn wheel(&self, css: &str, pixels: i64) {
        let (x, y) = self.middle(css);
        let turned = json!({"type": "scroll", "duration": 0, "x": x, "y": y, "deltaX": 0, "deltaY": pixels, "origin": "viewport"});
        self.act("wheel", "wheel", &json!({}), &[turned]);
    }

    /// Clicks on something while a key is held.
    #[track_caller]
    pub(super) fn click_with(&self, key: &str, css: &str) {
        let held = |kind| key.chars().map(|key| stroke(kind, key)).collect::<Vec<_>>();
        self.act("key", "keyboard", &json!({}), &held("keyDown"));
        self.click(css);
        self.act("key", "keyboard", &json!({}), &held("keyUp"));
    }

    /// Drags one thing onto another with the mouse.
    #[track_caller]
    pub(super) fn drag(&self, from: &str, to: &str) {
        self.drag_with("mouse", from, to);
    }

    /// The same with a finger.
    #[track_caller]
    pub(super) fn drag_with_a_finger(&self, from: &str, to: &str) {
        self.drag_with("touch", from, to);
    }

    #[track_caller]
    fn drag_with(&self, pointer: &str, from: &str, to: &str) {
        let (from, to) = (self.middle(from), self.middle(to));
        let moved = |(x, y): (i64, i64), millis: u64| json!({"type": "pointerMove", "duration": millis, "x": x, "y": y, "origin": "viewport"});
        let steps = vec![
            moved(from, 0),
            json!({"type": "pointerDown", "button": 0}),
            // What is touched is dragged after it was held for a moment.
            json!({"type": "pause", "duration": 600}),
            moved((from.0 + 12, from.1 + 12), 100),
            moved(to, 200),
            moved(to, 50),
            json!({"type": "pointerUp", "button": 0}),
        ];
        self.act("pointer", pointer, &json!({"pointerType": pointer}), &steps);
    }

    fn act(&self, kind: &str, id: &str, parameters: &Value, steps: &[Value]) {
        let source = json!({"type": kind, "id": id, "parameters": parameters, "actions": steps});
        self.ask("actions", &json!({"actions": [source]})).unwrap();
    }

    /// The middle of something on the window, in CSS pixels.
    #[track_caller]
    fn middle(&self, css: &str) -> (i64, i64) {
        self.wait(css);
        let middle = self.script(
            "const r = document.querySelector(arguments[0]).getBoundingClientRect();
             return [Math.round(r.x + r.width / 2), Math.round(r.y + Math.min(r.height, innerHeight - r.y) / 2)];",
            &[css.into()],
        );
        (middle[0].as_i64().unwrap(), middle[1].as_i64().unwrap())
    }

    /// Makes the page this large, in CSS pixels, which no window of a desktop may be.
    pub(super) fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools(&json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size}));
    }

    /// Sends a command of the browser's own protocol: `{"cmd", "params"}`.
    pub(super) fn devtools(&self, command: &Value) -> Value {
        self.ask("goog/cdp/execute", command).unwrap()
    }

    /// A picture of the window, as PNG.
    pub(super) fn picture(&self) -> Vec<u8> {
        let picture = self.look("screenshot").unwrap();
        base64::engine::general_purpose::STANDARD.decode(picture.as_str().unwrap()).unwrap()
    }

    /// The cookies of the page.
    pub(super) fn cookies(&self) -> Vec<Value> {
        self.look("cookie").unwrap().as_array().unwrap().clone()
    }

    /// Checks that no page has complained of anything: an error of a script, or what the policy for contents has stopped.
    #[track_caller]
    pub(super) fn is_content(&self) {
        assert_eq!(self.complaints(), Vec::<String>::new());
    }

    /// Returns the complaints of pages since the last call.
    fn complaints(&self) -> Vec<String> {
        let said = self.ask("se/log", &json!({"type": "browser"})).unwrap_or_default();
        let lines = said.as_array().cloned().unwrap_or_default();
        // A refusal of the daemon is one of its answers, which the page shows.
        let is_refusal = |line: &Value| {
            line["message"].as_str().is_some_and(|text| text.contains("Failed to load resource"))
        };
        let grave = lines.iter().filter(|line| line["level"] == "SEVERE" && !is_refusal(line));
        grave.map(|line| line["message"].to_string()).collect()
    }
}

fn stroke(kind: &str, key: char) -> Value {
    json!({"type": kind, "value": key})
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.driver.id()) {
            killpg(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        }
        drop(self.driver.wait());
    }
}
