//! The pictures of the documentation, taken of real boards: `WRITE_DOCS=1 tests/run --browser pictures` writes them to `docs/pictures`.

use std::fs;
use std::path::{Path, PathBuf};

use super::driver::Browser;
use super::{fleet, visit};
use crate::harness::{Fleet, Repository, User};

/// Directory of the pictures.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures")
}

/// Opens a page, and takes a picture of it when all of it is there.
fn take(page: &Browser, name: &str, path: &str, has: &str) {
    let origin = page.script("return location.origin", &[]);
    page.open(&format!("{}{path}", origin.as_str().unwrap()));
    page.wait("#connection[data-state=live]");
    page.wait_text("body", has);
    page.eventually("all of it is there", |page| {
        (page.count(".skeleton, #main [aria-busy=true]") == 0).then_some(())
    });
    keep(page, name);
}

/// Takes a picture of what the page shows.
fn keep(page: &Browser, name: &str) {
    let picture = page.picture();
    assert!(picture.starts_with(b"\x89PNG"), "{name}");
    if std::env::var_os("WRITE_DOCS").is_some() {
        fs::create_dir_all(kept()).unwrap();
        fs::write(kept().join(format!("{name}.png")), picture).unwrap();
    }
}

fn small(page: &Browser) {
    page.resize(1280, 720);
}

#[test]
fn pictures_of_one_person_and_one_feature() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let schema = fleet.create(
        "design the schema",
        "supervisor complete --summary 'users with hashed passwords' --metadata '{\"tables\": [\"users\"]}'",
        &[],
    );
    fleet.wait_for(&schema, "done");
    let api = fleet.create("implement the API", "echo 'POST /login'; sleep 600", &["--parent", &schema]);
    fleet.create("write the tests", "supervisor complete --summary '12 pass'", &["--parent", &api]);
    fleet.wait_for(&api, "running");
    let page = visit(&fleet);
    small(&page);
    take(&page, "feature", "/board", "implement the API");
    take(&page, "run", &format!("/runs/{api}/2"), "POST /login");
}

#[test]
fn pictures_of_a_fleet() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    for name in ["translator", "transcriber"] {
        fleet.cli(["profile", "create", name, "--lane", "shell"]).ok();
    }
    for (title, who, tenant, script) in [
        ("homepage, de", "translator", "site", "supervisor complete --summary 'de is there'"),
        ("homepage, fr", "translator", "site", "supervisor complete --summary 'fr is there'"),
        ("homepage, es", "translator", "site", "sleep 600"),
        ("homepage, it", "translator", "site", "sleep 600"),
        ("call 17", "transcriber", "support", "sleep 600"),
        (
            "call 18",
            "transcriber",
            "support",
            "supervisor ask 'Who is the second speaker?' --choice 'the customer' --choice 'a colleague'",
        ),
    ] {
        fleet.cli(["create", title, "--assignee", who, "--tenant", tenant, "--body", script]).ok();
    }
    fleet.eventually("they run", || {
        (fleet.json(["list", "--status", "running"]).as_array()?.len() == 3).then_some(())
    });
    let page = visit(&fleet);
    small(&page);
    take(&page, "fleet", "/board?lanes=1", "Who is the second speaker?");
    take(&page, "work", "/work", "homepage, es");
    take(&page, "timeline", "/timeline?span=60", "translator");
    page.go("/health");
    if std::env::var_os("WRITE_DOCS").is_some() {
        let mut seen = 0;
        page.eventually("its lines have some values", |page| {
            let drawn = "return document.querySelector('.figure-line')?.points.length ?? 0";
            let points = page.script(drawn, &[]).as_u64()?;
            // Something happens meanwhile, now more and now less.
            for _ in 0..if points > seen { points % 3 } else { 0 } {
                fleet.cli(["create", "menu, de", "--assignee", "translator", "--body", "true"]).ok();
            }
            seen = points;
            (points >= 9).then_some(())
        });
    }
    keep(&page, "health");
}

/// A lane whose agent says what it has used, and works on.
const BUILDER: &str = r#"argv = ["/bin/sh", "{home}/agent"]
session = "stream-json"
stdout = "claude-stream-json"
"#;
const USAGE: &str = r#"read -r line
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
echo '{"type":"assistant","message":{"id":"a","model":"large","usage":{"input_tokens":48200,"output_tokens":3100},"content":[{"type":"text","text":"The index is built in 40 s."}]}}'
supervisor heartbeat --note 'the index is built, now the ranking'
sleep 600
"#;

/// A board of a small team, where two tasks run at once.
fn team(fleet: &Fleet) -> String {
    let mut lane: toml::Table = toml::from_str(BUILDER).unwrap();
    lane.insert("files".to_owned(), toml::Table::from_iter([("agent".to_owned(), USAGE.into())]).into());
    fleet.lane("builder", &lane.to_string());
    fleet.cli(["service", "reload"]).ok();
    let make = |title: &str, more: &[&str]| {
        let made = fleet.json([&["create", title], more].concat());
        made["id"].as_str().unwrap().to_owned()
    };
    let schema = fleet.create(
        "design the schema",
        "supervisor complete --summary 'orders, with a column for words'",
        &[],
    );
    fleet.wait_for(&schema, "done");
    let pipeline =
        fleet.create("set up the pipeline", "supervisor complete --summary 'tests run on each push'", &[]);
    fleet.wait_for(&pipeline, "done");
    let body = "Search finds a word **anywhere** in an order.\n\n* misspelt words as well\n* an answer within 50 ms\n* the newest order first";
    let reset = fleet.create("reset a password", "supervisor request-review --summary 'a link by mail'", &[]);
    fleet.wait_for(&reset, "review");
    let ask = "supervisor ask 'Which payment provider?' --choice 'the one we have' --choice 'a cheaper one'";
    let pays = fleet.create("take payments", ask, &["--priority", "3"]);
    fleet.wait_for(&pays, "blocked");
    let search = make(
        "rewrite the search",
        &[
            "--assignee",
            "builder",
            "--body",
            body,
            "--parent",
            &schema,
            "--priority",
            "5",
            "--check",
            "cargo test search",
        ],
    );
    fleet.cli(["comment", &search, "Customers type product numbers, too."]).ok();
    fleet.wait_for(&search, "running");
    make("announce the release", &["--assignee", "writer", "--parent", &search]);
    let old = fleet.create("index old orders", "sleep 600", &[]);
    fleet.wait_for(&old, "running");
    fleet.create("translate the help", "true", &[]);
    search
}

#[test]
fn pictures_of_a_board_and_a_task() {
    let Some(fleet) = fleet(User::current(), "[limits]\nmax_running = 2\n") else { return };
    let search = team(&fleet);
    let page = visit(&fleet);
    page.resize(1680, 660);
    take(&page, "board", "/board", "Which payment provider?");
    page.resize(1440, 810);
    take(&page, "task", &format!("/board?task={search}"), "an answer within 50 ms");
    page.resize(1680, 660);
    page.script("localStorage.setItem('supervisor.theme', 'dark')", &[]);
    take(&page, "dark", "/board", "Which payment provider?");
}

#[test]
fn pictures_of_a_mission() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let made = fleet.json(["mission", "create", "the new shop", "--max-tasks", "20", "--max-cost", "5"]);
    let mission = made["id"].as_str().or(made["task"]["id"].as_str()).unwrap().to_owned();
    let part = |title: &str, script: &str, parents: &[&String]| {
        let mut more = vec!["--mission", &mission];
        for parent in parents {
            more.extend(["--parent", parent.as_str()]);
        }
        fleet.create(title, script, &more)
    };
    let done = |title: &str, parents: &[&String]| {
        let task = part(title, "supervisor complete --summary 'it is there'", parents);
        fleet.wait_for(&task, "done");
        task
    };
    let design = done("design the pages", &[]);
    let words = done("write the words", &[]);
    let home = done("build the home page", &[&design, &words]);
    let list = part("build the list of goods", "sleep 600", &[&design]);
    let pays = part(
        "take payments",
        "supervisor ask 'Which provider?' --choice 'the one we have' --choice 'a cheaper one'",
        &[&design],
    );
    let tests = part("test it in three browsers", "true", &[&home, &list, &pays]);
    part("announce it", "true", &[&words, &tests]);
    fleet.wait_for(&list, "running");
    fleet.wait_for(&pays, "blocked");
    let page = visit(&fleet);
    page.resize(1440, 810);
    take(&page, "mission", &format!("/missions/{mission}"), "announce it");
}

#[test]
fn pictures_of_roles_and_a_second_try() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "shop");
    let script = "said='a link by mail'; \
                  if supervisor context | grep -q 'limit the [r]ate'; then limit=5; said=\"$said, five an hour at most\"; else limit=0; fi; \
                  printf 'def reset(user):\\n    mail(user, link(expires=3600))\\n' > reset.py; \
                  [ $limit = 0 ] || printf 'RATE = %s  # an hour\\n' $limit >> reset.py; \
                  git add reset.py; git commit -qm 'reset a password'; supervisor request-review --summary \"$said\"";
    let build = fleet.create("build: reset a password", script, &["--workspace", &repository.workspace()]);
    fleet.wait_for(&build, "review");
    fleet.cli(["request-changes", &build, "limit the rate: anybody can flood a mailbox"]).ok();
    fleet.eventually("it is built again", || {
        let shown = fleet.show(&build);
        (shown["task"]["status"] == "review" && shown["runs"].as_array()?.len() == 2).then_some(())
    });
    let page = visit(&fleet);
    small(&page);
    take(&page, "roles", &format!("/board?task={build}"), "reset a password");
    take(&page, "review", &format!("/review/{build}"), "RATE");
}

#[test]
fn pictures_of_a_worker_that_cannot_be_started() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    fleet.lane("deploy", "argv = [\"/opt/deploy\", \"{prompt_text}\"]\nprompt = \"argument\"\n");
    fleet.cli(["service", "reload"]).ok();
    fleet
        .cli([
            "create",
            "deploy to staging",
            "--assignee",
            "deploy",
            "--body",
            "staging",
            "--max-retries",
            "2",
        ])
        .ok();
    let script = "echo 'AWS_ACCESS_KEY_ID is not set' >&2; exit 1";
    let broken = fleet.create("deploy", script, &["--max-retries", "2"]);
    fleet.wait_for(&broken, "blocked");
    let page = visit(&fleet);
    small(&page);
    take(&page, "gave-up", &format!("/board?task={broken}"), "AWS_ACCESS_KEY_ID");
}

/// Each picture that a page of the documentation shows is kept, and each that is kept is shown.
#[test]
fn the_documentation_shows_the_pictures_that_there_are() {
    let docs = kept().join("..");
    let mut shown = std::collections::BTreeSet::new();
    for page in fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().path()) {
        if page.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&page).unwrap();
            let names = text.split("(pictures/").skip(1).filter_map(|rest| rest.split_once(')'));
            shown.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
    let there = fs::read_dir(kept()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(shown, there.collect());
}
