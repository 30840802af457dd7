//! Texts of workers remain texts everywhere in the page: nothing in them is executed.

use serde_json::{Value, json};

use super::driver::Browser;
use super::every_page::talks;
use super::{fleet, visit, yard};
use crate::harness::{Repository, User};

/// Texts that would run if a page took them for markup, a link, a style or a script.
const CORPUS: &[&str] = &[
    "<script>window.pwned = 1</script>",
    "<img src=x onerror=\"window.pwned = 2\">",
    "<svg/onload=window.pwned=3>",
    "\"><iframe srcdoc=\"<script>parent.pwned=4</script>\">",
    "[a](javascript:window.pwned=5)",
    "[b](data:text/html,<script>window.pwned=6</script>)",
    "![c](x\" onerror=\"window.pwned=7)",
    "<a href=\"javascript:window.pwned=8\">d</a>",
    "`</code><img src=x onerror=window.pwned=9>`",
    "<style>@import 'http://127.0.0.1:1/x';*{background:url(javascript:window.pwned=10)}</style>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=11>",
    "{{constructor.constructor('window.pwned=12')()}}",
    "\u{202e}<b onmouseover=window.pwned=13>x</b>",
    "\u{1b}]8;;javascript:window.pwned=14\u{7}x\u{1b}]8;;\u{7}",
    "<form action=javascript:window.pwned=15><button autofocus onfocus=window.pwned=16>x",
    "<base href=http://127.0.0.1:1/><meta http-equiv=refresh content=0;url=http://127.0.0.1:1/>",
];

/// Opens a page, and looks whether anything that was written became a script, an attribute that runs one, or a way elsewhere.
#[track_caller]
fn stays_text(page: &Browser, origin: &str, path: &str, has: &str) {
    page.open(&format!("{origin}{path}"));
    page.wait("#connection[data-state=live]");
    page.eventually(&format!("{path} shows {has}"), |page| {
        // What is folded is there as well.
        page.script("for (const one of document.querySelectorAll('details')) one.open = true", &[]);
        page.text("body").is_some_and(|text| text.contains(has)).then_some(())
    });
    if path.contains("task=") {
        page.eventually("all of the task is there", |page| {
            (page.count("#drawer .skeleton, #drawer [aria-busy=true]") == 0).then_some(())
        });
    }
    assert_eq!(page.script("return window.pwned ?? null", &[]), Value::Null, "{path}");
    let places = page.script(
        "return [...document.querySelectorAll('#main *, #drawer *, #top *')].filter(e => [...e.attributes].some(a =>
             a.name.startsWith('on') || /^\\s*(javascript|data:text)/i.test(a.value) && a.name !== 'title' && !a.name.startsWith('aria'))
             || ['SCRIPT', 'IFRAME', 'STYLE', 'BASE', 'META', 'OBJECT', 'EMBED', 'IMG'].includes(e.tagName)).map(e => e.outerHTML.slice(0, 200))",
        &[],
    );
    assert_eq!(places, json!([]), "{path}");
    assert_eq!(page.address(), format!("{origin}{path}"), "nothing leads away");
}

/// An image that runs a script where it is markup, with a number of its own.
fn image(number: u32) -> String {
    format!("<img src=x onerror=window.pwned={number}>")
}

#[test]
fn nothing_in_names_notes_reasons_and_messages_is_executed() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let blocked = fleet.create("is blocked", "true", &["--triage", "--skill", &image(30)]);
    fleet.cli(["block", &blocked, &image(31)]).ok();
    let file = fleet.home().join("attached");
    std::fs::write(&file, "text").unwrap();
    fleet.give(&file);
    fleet.cli(["attach", &blocked, file.to_str().unwrap(), "--name", &image(32)]).ok();
    let beats =
        fleet.create("beats", &format!("supervisor heartbeat --note '{}'; sleep 600", image(33)), &[]);
    let mission = fleet.json(["mission", "create", &image(34), "--body", &image(35)])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    fleet.cli(["mission", "pause", &mission, "--reason", &image(36)]).ok();
    fleet.cli(["boards", "create", "other", "--name", &image(37)]).ok();
    let checked = fleet.create(
        "is checked",
        "true",
        &["--check", &format!("echo '{}'; false", image(38)), "--max-checks", "1"],
    );
    let talks = talks(&fleet);
    fleet.cli(["steer", &talks, &image(39), "--timeout", "1s"]);
    fleet.wait_for(&checked, "blocked");
    fleet.wait_for(&beats, "running");

    let page = visit(&fleet);
    let origin = page.address().split("/board").next().unwrap().to_owned();
    let shown = |path: &str, number: u32| stays_text(&page, &origin, path, &format!("pwned={number}"));
    shown("/board", 31);
    shown(&format!("/board?task={blocked}"), 30);
    shown(&format!("/board?task={blocked}"), 32);
    shown("/work", 33);
    shown("/missions", 34);
    shown(&format!("/missions/{mission}"), 36);
    shown(&format!("/board?task={mission}"), 35);
    shown("/board", 37);
    shown("/board?board=other", 37);
    shown(&format!("/board?task={checked}"), 38);
    shown(&format!("/review/{checked}"), 38);
    shown(&format!("/runs/{talks}/{}", fleet.show(&talks)["runs"][0]["id"]), 39);
    page.is_content();
}

#[test]
fn nothing_in_a_real_diff_is_executed() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "code");
    repository.write("before", &CORPUS.join("\n"));
    repository.git(&["add", "-A"]);
    repository.git(&["commit", "-qm", "before"]);
    let script = format!(
        "cp before lines; sed -i 's/pwned/Pwned/' before; echo hello > '{}'; git add -A; git commit -qm one; \
         supervisor request-review --summary '{}'",
        image(40),
        image(41)
    );
    let task = fleet.create("changes", &script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&task, "review");
    let page = visit(&fleet);
    let origin = page.address().split("/board").next().unwrap().to_owned();
    let path = format!("/review/{task}");
    stays_text(&page, &origin, &path, "pwned=40");
    stays_text(&page, &origin, &path, "pwned=41");
    stays_text(&page, &origin, &path, "<script>window.Pwned = 1</script>");
    page.press("v");
    page.wait(".diff-split");
    page.click(".diff-pair .diff-number");
    page.fill(".diff-files textarea", &image(42));
    page.click(".diff-files form button.primary");
    page.wait_text(".diff-comment", "pwned=42");
    assert_eq!(page.script("return window.pwned ?? window.Pwned ?? null", &[]), Value::Null);
    assert_eq!(page.count("#main img"), 0);
    page.is_content();
}

#[test]
fn nothing_that_is_written_on_a_board_is_executed() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let all = CORPUS.join("\n\n");
    let mut tasks = Vec::new();
    for text in CORPUS {
        let title: String = text.chars().filter(|letter| !letter.is_control()).collect();
        let made = fleet.json(["create", &title, "--initial-status", "blocked", "--body", text]);
        let task = made["id"].as_str().unwrap().to_owned();
        fleet.cli(["comment", &task, text]).ok();
        tasks.push(task);
    }
    let yard = yard(&fleet);
    let file = yard.join("text");
    std::fs::write(&file, &all).unwrap();
    let loud = fleet.create(
        "loud",
        &format!("cat {0}; supervisor complete --summary \"$(cat {0})\"", file.display()),
        &["--workspace", &format!("dir:{}", yard.display())],
    );
    let asking = fleet.create(
        "asks",
        &format!(
            "supervisor ask \"$(head -c 200 {0})\" --choice '<img src=x onerror=window.pwned=20>' --choice b",
            file.display()
        ),
        &["--workspace", &format!("dir:{}", yard.display())],
    );
    fleet.wait_for(&loud, "done");
    fleet.wait_for(&asking, "blocked");

    let page = visit(&fleet);
    let origin = page.address().split("/board").next().unwrap().to_owned();
    let mut paths: Vec<String> =
        ["/board", "/board?archived=1&lanes=1", "/work", "/missions", "/timeline", "/health"]
            .map(str::to_owned)
            .into();
    paths.push(format!("/runs/{loud}/1"));
    paths.push(format!("/review/{loud}"));
    paths.extend(tasks.iter().chain([&loud, &asking]).map(|task| format!("/board?task={task}")));
    for path in &paths {
        page.open(&format!("{origin}{path}"));
        page.wait("#connection[data-state=live]");
        if let Some((_, task)) = path.split_once("task=") {
            page.wait_text("#drawer", task);
            page.eventually("all of the task is there", |page| {
                (page.count("#drawer .skeleton, #drawer [aria-busy=true]") == 0).then_some(())
            });
        }
        assert_eq!(page.script("return window.pwned ?? null", &[]), serde_json::Value::Null, "{path}");
        let places = page.script(
            "return [...document.querySelectorAll('#main *, #drawer *')].filter(e => [...e.attributes].some(a =>
                 a.name.startsWith('on') || /^\\s*(javascript|data:text)/i.test(a.value) && a.name !== 'title' && !a.name.startsWith('aria'))
                 || ['SCRIPT', 'IFRAME', 'STYLE', 'BASE', 'META', 'OBJECT', 'EMBED'].includes(e.tagName)).map(e => e.outerHTML.slice(0, 200))",
            &[],
        );
        assert_eq!(places, serde_json::json!([]), "{path}");
        assert_eq!(page.address(), format!("{origin}{path}"), "nothing leads away");
    }
    page.is_content();
}

#[test]
fn the_cookie_alone_lets_nobody_in_and_no_script_reads_it() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    assert_eq!(page.script("return document.cookie", &[]), "", "no script reads the session");
    let cookies = page.cookies();
    assert!(
        cookies.iter().all(|cookie| cookie["httpOnly"] == true && cookie["sameSite"] == "Strict"),
        "{cookies:?}"
    );
    let refused = page.script("return fetch('/api/v1/board').then(answer => answer.status)", &[]);
    assert!([401, 403].contains(&refused.as_u64().unwrap()), "{refused}");
}

#[test]
fn a_page_of_another_origin_reads_and_changes_nothing_though_it_has_the_key() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let page = visit(&fleet);
    let [origin, key] = ["location.origin", "localStorage.getItem('supervisor.key')"]
        .map(|what| page.script(&format!("return {what}"), &[]));
    // What it would do if it were not of another origin.
    let ask = "const [origin, key, path, body] = arguments;
        const headers = {'X-Supervisor-Dashboard': key, 'Content-Type': 'application/json'};
        return fetch(origin + path, {method: body ? 'POST' : 'GET', body, headers, credentials: 'include'}).then(answer => answer.status, () => 'refused')";
    let create = json!({"title": "planted"}).to_string();
    let asked = |path: &str, body: Value| page.script(ask, &[origin.clone(), key.clone(), path.into(), body]);
    assert_eq!(asked("/api/v1/board", Value::Null), 200);
    assert_eq!(asked("/api/v1/verbs/create", create.clone().into()), 200);

    page.open("data:text/html,<title>elsewhere</title>");
    assert_eq!(asked("/api/v1/board", Value::Null), "refused");
    assert_eq!(asked("/api/v1/verbs/create", create.into()), "refused");
    // A form sends without asking, and brings no header.
    page.script(
        "const form = Object.assign(document.createElement('form'), {action: arguments[0] + '/api/v1/verbs/create', method: 'post', enctype: 'text/plain'});
         const field = Object.assign(document.createElement('input'), {name: '{\"title\": \"planted\", \"body\": \"', value: '\"}'});
         form.append(field); document.body.append(form); form.submit()",
        &[origin],
    );
    page.eventually("the form is answered", |page| page.address().contains("/api/v1/").then_some(()));
    let there = fleet.json(["list"]).to_string();
    assert_eq!(there.matches("planted").count(), 1, "{there}");
}
