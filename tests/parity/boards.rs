//! `init` and `boards`.

use serde_json::{Value, json};

use super::{TypedRoot, assert_has};

pub(super) fn walk(desk: &TypedRoot) {
    assert!(desk.ok("init").starts_with("Board default is ready"));
    let made = "boards create releases --name 'Our releases' --description 'what ships' --icon R --color '#fff' \
                --default-workdir /srv/r --switch";
    desk.ok(made);
    let shown = desk.json("boards show");
    let said = json!({"slug": "releases", "name": "Our releases", "description": "what ships", "icon": "R",
        "color": "#fff", "default_workdir": "/srv/r", "is_current": true});
    assert_has(&shown, &said);
    desk.ok("boards new other --color=red");
    assert_eq!(desk.json("boards current")["slug"], "releases");
    desk.ok("boards switch other");
    assert_has(&desk.json("boards current"), &json!({"slug": "other", "color": "red"}));
    desk.ok("boards use releases");
    desk.ok("boards rename releases Shipping");
    desk.ok("boards set-default-workdir releases /srv/ships");
    assert_has(
        &desk.json("boards show"),
        &json!({"slug": "releases", "name": "Shipping", "default_workdir": "/srv/ships"}),
    );
    desk.ok("boards set-default-workdir releases");
    assert_eq!(desk.json("boards show")["default_workdir"], Value::Null);
    desk.ok("boards rm other");
    desk.ok("boards new third");
    desk.ok("boards rm third --delete");
    desk.ok("boards new fourth");
    desk.ok("boards delete fourth");
    desk.ok("boards new fifth");
    desk.ok("boards remove fifth");
    let slugs = |line: &str| -> Vec<String> {
        let listed = desk.json(line);
        let kept = listed.as_array().unwrap().iter();
        kept.map(|board| board["slug"].as_str().unwrap().split("-1").next().unwrap().to_owned()).collect()
    };
    assert_eq!(slugs("boards list"), ["default", "releases"]);
    assert_eq!(slugs("boards ls --all"), ["default", "releases", "fifth", "other"], "deleted ones are gone");
    desk.ok("boards list --all --json");
    desk.ok("boards use default");
}

#[test]
fn work_on_a_board_is_where_the_board_says() {
    let desk = TypedRoot::new();
    let repository = desk.fleet.home().join("repo");
    let mut git = std::process::Command::new("git");
    desk.fleet.dress(&mut git);
    assert!(git.args(["init", "--quiet"]).arg(&repository).status().unwrap().success());
    let place = repository.display();
    desk.run("create x --workspace worktree").refused(2, "is not in a git repository");
    desk.ok("init");
    desk.ok(&format!("boards set-default-workdir default {place}"));

    let made = desk.json("create x --workspace worktree");

    assert_eq!(made["workspace"], format!("worktree:{place}"));
    assert_eq!(made["workspace_kind"], "worktree");
    assert_eq!(desk.json("create x --workspace dir")["workspace"], format!("dir:{place}"));
    assert_eq!(desk.json("create x")["workspace"], "scratch");
}
