//! The pictures of the documentation, taken of real boards: `WRITE_DOCS=1 tests/run --browser pictures` writes them to `docs/pictures`.

use std::fs;
use std::path::{Path, PathBuf};

use super::driver::Browser;
use super::{fleet, visit};
use crate::harness::{Repository, User};

/// Where they are kept.
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
    take(&page, "feature", &format!("/board?task={api}"), "implement the API");
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
    take(&page, "timeline", "/timeline", "translator");
    take(&page, "health", "/health", "Health");
}

#[test]
fn pictures_of_roles_and_a_second_try() {
    let Some(fleet) = fleet(User::current(), "") else { return };
    let repository = Repository::new(&fleet, "shop");
    let script = "if supervisor context | grep -q 'limit the [r]ate'; then limit=5; else limit=0; fi; \
                  printf 'def reset(user):\\n    mail(user, link(expires=3600))\\n' > reset.py; \
                  [ $limit = 0 ] || printf 'RATE = %s  # an hour\\n' $limit >> reset.py; \
                  git add reset.py; git commit -qm 'reset a password'; supervisor request-review --summary 'a link by mail'";
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
