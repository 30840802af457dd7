//! What workers write is text, wherever the page shows it: nothing of it is executed.

use serde_json::{Value, json};

use super::{fleet, visit, yard};
use crate::harness::User;

/// What would run where a text is taken for markup, for a link, for a style or for a script.
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
