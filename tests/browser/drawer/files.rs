//! The files of a task: up by the button, by a drop and by a paste, down as they were.

use std::fs;

use super::{open, part};
use crate::browser::driver::ESCAPE;
use crate::browser::{fleet, visit};
use crate::harness::User;

#[test]
fn a_file_goes_up_and_comes_down_as_it_was() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("with a file", "true", &["--initial-status", "blocked"]);
    let file = fleet.home().join("figures.csv");
    fs::write(&file, "a,b\n1,2\n").unwrap();
    let down = tempfile::tempdir().unwrap();
    let page = visit(&fleet);
    page.download_into(down.path());
    open(&page, &task);

    page.upload("#drawer input[type=file]", &file);
    page.wait_text("#drawer .files", "figures.csv");
    let files = fleet.json(["attachments", &task]);
    assert_eq!(files[0]["filename"], "figures.csv", "{files:#}");
    assert_eq!(files[0]["size"], 8, "{files:#}");

    page.click("#drawer .file-name[title='Download figures.csv']");
    fleet.eventually("the file is down", || {
        (fs::read_to_string(down.path().join("figures.csv")).ok()? == "a,b\n1,2\n").then_some(())
    });
    page.is_content();
}

#[test]
fn files_are_dropped_pasted_and_removed() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let task = fleet.create("with files", "true", &["--triage"]);
    let page = visit(&fleet);
    open(&page, &task);
    let names = |fleet: &crate::harness::Fleet| -> Vec<String> {
        let files = fleet.json(["attachments", &task]);
        files.as_array().unwrap().iter().map(|file| file["filename"].as_str().unwrap().to_owned()).collect()
    };

    page.wait_text(&part("Attachments"), "Drop files here");
    page.drop_file("#drawer .drawer-scroll", "dropped.txt", "from another window");
    page.wait_text("#drawer .files", "dropped.txt");
    page.paste_file("#drawer .composer textarea", "pasted.png", "a picture");
    page.wait_text("#drawer .files", "pasted.png");
    page.wait_text(&format!("{} .drawer-count", part("Attachments")), "2");
    assert_eq!(names(&fleet), ["dropped.txt", "pasted.png"]);

    page.click("#drawer [aria-label='Remove dropped.txt']");
    page.wait_text("dialog[open]", "dropped.txt is removed from the task");
    page.press(ESCAPE);
    page.wait_gone("dialog[open]");
    assert_eq!(names(&fleet).len(), 2);
    page.click("#drawer [aria-label='Remove dropped.txt']");
    page.click("dialog[open] button.danger");
    page.wait_gone("#drawer [aria-label='Remove dropped.txt']");
    assert_eq!(names(&fleet), ["pasted.png"]);

    // What is too large is refused before it is sent.
    page.script(
        "const clipboardData = new DataTransfer();
         clipboardData.items.add(new File([new Uint8Array(26 << 20)], 'huge.bin'));
         document.querySelector('#drawer .composer textarea').dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}));",
        &[],
    );
    page.wait_text("#drawer .file.is-upload", "the limit is 25");
    assert_eq!(names(&fleet), ["pasted.png"]);
}
