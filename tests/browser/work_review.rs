//! Reviews: what a run has changed, the output of its check, the decision, comments on lines, and siblings beside each other.

use super::driver::ENTER;
use super::{fleet, visit};
use crate::harness::{Repository, User};

/// A script that changes the first and the last of forty lines of a file, adds a file and removes one.
const CHANGES: &str = "sed -i '1s/.*/first line changed/; 40s/.*/last line changed/' long; echo new > added; git rm -q gone; \
                       git add -A; git commit -qm work; supervisor request-review --summary 'three files'";

/// A repository with a file of forty lines, and one that goes.
fn forty(fleet: &crate::harness::Fleet) -> Repository {
    let repository = Repository::new(fleet, "code");
    let lines: Vec<String> = (1..=40).map(|line| format!("line {line}")).collect();
    repository.write("long", &(lines.join("\n") + "\n"));
    repository.write("gone", "old\n");
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "forty lines"]);
    repository
}

#[test]
fn a_diff_has_its_files_and_hunks_in_one_column_and_side_by_side() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = forty(&fleet);
    let task = fleet.create("changes three", CHANGES, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    let page = visit(&fleet);
    page.go(&format!("/review/{task}"));

    page.wait_text(".page-head", "3 files");
    for (path, status, counts) in
        [("added", "added", "+1"), ("gone", "deleted", "−1"), ("long", "modified", "+2")]
    {
        page.wait_text(&format!(".diff-link[data-path={path}]"), counts);
        page.wait_text(&format!(".diff-file[aria-label={path}] .diff-head"), status);
    }
    let long = ".diff-file[aria-label=long]";
    page.eventually("it has two hunks", |page| {
        (page.count(&format!("{long} .diff-hunk")) == 2).then_some(())
    });
    page.wait_text(&format!("{long} .diff-header"), "@@");
    page.wait_text(long, "last line changed");

    page.press("v");
    page.wait(&format!("{long} .diff-split .diff-pair"));
    let both = page.script(
        "const pair = [...document.querySelectorAll(arguments[0])].find(pair => pair.textContent.includes('first line changed'));
         return [...pair.querySelectorAll('.diff-code')].map(side => side.textContent)",
        &[format!("{long} .diff-pair").into()],
    );
    assert_eq!(both, serde_json::json!(["line 1", "first line changed"]));
    page.press("v");
    page.wait_gone(&format!("{long} .diff-split"));

    page.press("nn");
    page.wait(".diff-link[data-path=gone][aria-current=true]");
    page.press("o");
    page.wait(".diff-file[aria-label=gone] .diff-toggle[aria-expanded=false]");
    page.is_content();
}

#[test]
fn the_output_of_a_check_is_shown_with_the_changes_that_it_judged() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "code");
    let check = "printf '\\033[31mno proof\\033[0m in words\\n'; test -e proof";
    let script = "echo hello > words; git add words; git commit -qm one; supervisor complete --summary ready";
    let failed = fleet.create(
        "has no proof",
        script,
        &["--workspace", &repository.workspace(), "--check", check, "--max-checks", "1"],
    );
    let passed = fleet.create(
        "has a proof",
        "echo hello > proof; git add proof; git commit -qm one; supervisor request-review --summary ready",
        &["--workspace", &repository.workspace(), "--check", check],
    );
    fleet.wait_for(&failed, "blocked");
    fleet.eventually("the check has passed", || {
        let shown = fleet.show(&passed);
        let outcome = shown["runs"].as_array()?.last()?["outcome"].clone();
        (shown["task"]["status"] == "review" && outcome == "check_passed").then_some(())
    });
    let page = visit(&fleet);

    // One that failed is open.
    page.go(&format!("/review/{failed}"));
    page.wait_text(".check-panel", "check failed");
    page.wait_text(".check-panel summary", "exit 1");
    page.wait_text(".check-output", "no proof in words");
    assert!(page.count(".check-output [class*=ansi]") > 0, "its colours are colours");

    page.go(&format!("/review/{passed}"));
    page.wait_text(".check-panel", "check passed");
    assert!(!page.sees(".check-output"));
    page.click(".check-panel summary");
    page.wait_text(".check-output", "no proof in words");
    page.wait_text(".diff-files", "hello");
    page.is_content();
}

#[test]
fn a_diff_is_approved_by_a_key_after_a_confirmation() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = forty(&fleet);
    let task = fleet.create("changes three", CHANGES, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    let page = visit(&fleet);
    page.go(&format!("/review/{task}"));
    page.wait_text(".diff-files", "first line changed");
    page.fill(".verdict textarea", "well done");
    page.script("document.activeElement.blur()", &[]);
    page.press("A");
    page.wait("dialog[open]");
    assert_eq!(fleet.status_of(&task), "review", "nothing is approved before it is confirmed");
    page.press(ENTER);
    let shown = fleet.wait_for(&task, "done");
    assert!(shown["comments"].to_string().contains("well done"), "{shown:#}");
    page.wait_text(".verdict", "This task is done");
    assert!(!page.sees(".verdict-row"));
}

#[test]
fn comments_on_lines_are_kept_changed_and_reach_the_next_run() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "code");
    let script = "if supervisor context | grep -q 'words:1: too [s]hort'; then echo longer >> words; git commit -qam two; supervisor complete --summary fixed; \
                  else echo hello > words; echo more >> words; git add words; git commit -qm one; supervisor request-review --summary 'please look'; fi";
    let task = fleet.create("writes words", script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    let page = visit(&fleet);
    page.go(&format!("/review/{task}"));
    page.wait_text(".diff-files", "hello");

    page.press("jc");
    page.fill(".diff-files textarea", "too long");
    page.click(".diff-files form button.primary");
    page.wait_text(".diff-comment", "too long");
    page.wait_text(".verdict-written summary", "1 comment on lines, not sent yet");
    page.click(".diff-comment button");
    page.fill(".diff-files textarea", "too short");
    page.click(".diff-files form button.primary");
    page.wait_text(".diff-comment", "too short");
    // A second one by the number of its line, which is dropped again.
    page.click(".diff-line[data-line=\"2\"] .diff-number:nth-child(2)");
    page.fill(".diff-files textarea", "not this");
    page.click(".diff-files form button.primary");
    page.wait_text(".verdict-written summary", "2 comments");
    page.click(".diff-line[data-line=\"2\"] + .diff-comment button");
    page.click(".diff-files form .push-start");
    page.wait_text(".verdict-written summary", "1 comment on lines");

    // What is not sent yet outlives a reload.
    page.reload();
    page.wait_text(".diff-comment", "too short");
    page.press("R");
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "fixed", "{shown:#}");
    let sent: Vec<&str> =
        shown["comments"].as_array().unwrap().iter().filter_map(|comment| comment["body"].as_str()).collect();
    assert!(sent.iter().all(|body| !body.contains("not this")), "{sent:?}");
    page.wait_text(".page-head", "done");
    page.is_content();
}

#[test]
fn a_comment_on_a_removed_line_is_beside_one_on_the_line_that_replaces_it() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = forty(&fleet);
    let script = "if supervisor context | grep -q 'long:1 (removed line): [k]eep it'; then supervisor complete --summary kept; \
                  else sed -i '1s/.*/first line changed/' long; git commit -qam one; supervisor request-review --summary 'please look'; fi";
    let task = fleet.create("changes one", script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    let page = visit(&fleet);
    page.go(&format!("/review/{task}"));
    let line = |side: &str| format!(".diff-line[data-side={side}][data-line=\"1\"]");
    let note = |side: &str| format!("{} + .diff-comment[data-side={side}]", line(side));
    let write = |place: &str, text: &str| {
        page.click(place);
        page.fill(".diff-files textarea", text);
        page.click(".diff-files form button.primary");
    };

    write(&format!("{} .diff-number", line("old")), "not this");
    write(&format!("{} .diff-number:nth-child(2)", line("new")), "why?");
    page.wait_text(&note("old"), "not this");
    page.wait_text(&note("new"), "why?");
    assert_eq!(page.count(".diff-comment"), 2);
    // What is deleted leaves nothing, and takes nothing else along.
    page.click(&format!("{} button", note("old")));
    page.click(".diff-files form .push-start");
    page.wait_gone(&note("old"));
    assert_eq!(page.count(".diff-comment"), 1);
    write(&format!("{} .diff-number", line("old")), "keep it");
    page.wait_text(".verdict-written summary", "2 comments on lines");

    // Side by side both stand below the pair, and each number leads to its own.
    page.press("v");
    page.wait(".diff-split");
    assert_eq!(page.texts(".diff-comment p"), ["keep it", "why?"]);
    page.click(".diff-pair[data-old=\"1\"] .diff-side:first-child .diff-number");
    assert_eq!(page.value(".diff-files textarea").as_deref(), Some("keep it"));
    page.click_text(".diff-files form button", "Cancel");
    page.wait_gone(".diff-files form");
    page.click(".verdict-written summary");
    page.wait_text(".verdict-comments", "long:1 (removed line)");

    page.script("document.activeElement.blur()", &[]);
    page.press("R");
    let shown = fleet.wait_for(&task, "done");
    assert_eq!(shown["latest_summary"], "kept", "{shown:#}");
    page.is_content();
}

#[test]
fn two_siblings_are_compared_beside_each_other() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "code");
    let parent = fleet.create("the idea", "supervisor complete --summary go", &[]);
    fleet.wait_for(&parent, "done");
    let sibling = |title: &str, text: &str, more: &str| {
        let script = format!(
            "echo {text} > words; {more} git add -A; git commit -qm one; supervisor request-review --summary ready"
        );
        let task =
            fleet.create(title, &script, &["--workspace", &repository.workspace(), "--parent", &parent]);
        fleet.wait_for(&task, "review");
        task
    };
    let one = sibling("by one", "hello", "");
    let two = sibling("by another", "good-day", "echo alone > own;");
    let page = visit(&fleet);
    page.go(&format!("/review/{one}"));
    page.wait_text(".diff-files", "hello");
    page.click("select[aria-label='Compare with']");
    page.press("by another");
    page.press(ENTER);
    page.wait_text(".diff-beside-head", "by another");
    page.wait_text(".diff-beside-head", "by one");
    page.wait_text(".diff-files", "good-day");
    page.wait_text(".diff-files", "hello");
    page.wait_text(".diff-files", "own is not changed here.");
    assert!(page.address().contains(&format!("with={two}")), "{}", page.address());
    let sides = page.script(
        "const words = [...document.querySelectorAll('.diff-beside')].find(pair => pair.querySelector('[aria-label^=words]'));
         return [...words.children].map(side => side.getBoundingClientRect().left)",
        &[],
    );
    assert!(sides[0].as_f64() < sides[1].as_f64(), "{sides}");
    assert!(!page.sees(".verdict-row"), "two at once are not decided on");
    page.is_content();
}
