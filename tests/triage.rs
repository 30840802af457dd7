//! Triage: ideas that a profile specifies or divides, missions that one plans, and tasks for which one finds an assignee.

mod removed;

use crate::harness::{Fleet, User};

/// A lane whose worker runs a script of its own instead of the text of its task.
fn stand_in(script: &str) -> String {
    format!("argv = [\"/bin/sh\", \"-c\", '''{script}''']\n")
}

/// A fleet in which a script makes the proposals of one kind.
fn fleet(user: User, key: &str, script: &str) -> Fleet {
    let fleet = Fleet::offline_as(user);
    fleet.configure(&format!("[triage]\n{key} = \"maker\"\n"));
    fleet.lane("maker", &stand_in(script));
    fleet.write_config("profiles.d/carol.md", "---\ndescription: writes things down\nlane: shell\n---\n");
    fleet.start();
    fleet
}

fn idea(fleet: &Fleet, title: &str) -> String {
    fleet.json(["create", title, "--triage"])["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_idea_is_specified_by_a_run_that_hears_why_its_first_answer_is_refused() {
    for user in User::all() {
        let script = "supervisor complete --metadata '{\"text\": \"x\"}' 2> refused && exit 3; \
                      grep -q 'missing field `body`\\|unknown field `text`' refused || exit 4; \
                      supervisor create more 2> refused && exit 5; \
                      supervisor context | grep -q '`carol`: writes things down' || exit 6; \
                      supervisor complete --metadata '{\"title\": \"a task\", \"body\": \"true\", \"assignee\": \"carol\"}'";
        let fleet = fleet(user, "specifier", script);
        let id = idea(&fleet, "rough");

        let asked = fleet.json(["specify", &id]);

        let made = asked["results"][0]["proposal"].as_str().unwrap().to_owned();
        let done = fleet.wait_for(&id, "done");
        assert_eq!(done["task"]["title"], "a task", "{done:#}");
        assert_eq!((&done["task"]["body"], &done["task"]["assignee"]), (&"true".into(), &"carol".into()));
        assert_eq!(fleet.show(&made)["task"]["status"], "done");
        fleet.cli(["specify", &id]).refused(4, "not in triage");
    }
}

#[test]
fn all_ideas_of_a_tenant_are_asked_about_once() {
    let fleet = fleet(User::current(), "specifier", "supervisor heartbeat; sleep 1000");
    let mine = fleet.json(["create", "mine", "--triage", "--tenant", "acme"])["id"].clone();
    idea(&fleet, "another's");

    let asked = fleet.json(["specify", "--all", "--tenant", "acme", "--author", "ann"]);
    let again = fleet.json(["specify", "--all", "--tenant", "acme"]);

    assert_eq!(asked["results"].as_array().map(Vec::len), Some(1), "{asked}");
    let made = asked["results"][0]["proposal"].as_str().unwrap();
    assert_eq!((&asked["results"][0]["task_id"], &asked["results"][0]["existing"]), (&mine, &false.into()));
    assert_eq!(
        (&again["results"][0]["proposal"], &again["results"][0]["existing"]),
        (&made.into(), &true.into())
    );
    let shown = fleet.show(made);
    assert_eq!((&shown["task"]["tenant"], &shown["task"]["created_by"]), (&"acme".into(), &"ann".into()));
    fleet.cli(["archive", made]).ok();
}

#[test]
fn all_ideas_of_a_tenant_are_divided_in_the_name_of_somebody() {
    let fleet = Fleet::offline();
    idea(&fleet, "another's");
    let mine = fleet.json(["create", "mine", "--triage", "--tenant", "acme"])["id"].clone();
    let asked = fleet.json(["decompose", "--all", "--tenant", "acme", "--author", "ann"]);
    assert_eq!(asked["results"].as_array().map(Vec::len), Some(1), "{asked}");
    assert_eq!((&asked["assignee"], &asked["results"][0]["task_id"]), (&"decomposer".into(), &mine));
    assert_eq!(fleet.show(asked["results"][0]["proposal"].as_str().unwrap())["task"]["created_by"], "ann");
    assert_eq!(fleet.json(["decompose", "--all", "--tenant", "other"])["results"], serde_json::json!([]));
}

#[test]
fn a_task_that_was_denied_is_no_idea() {
    let fleet = Fleet::offline();
    let denied = fleet.json(["create", "buys", "--approval-class", "spend"])["id"].clone();
    fleet.cli(["deny", denied.as_str().unwrap(), "--reason", "too dear"]).ok();
    assert_eq!(fleet.status_of(denied.as_str().unwrap()), "triage");
    let rough = idea(&fleet, "rough");
    for verb in ["decompose", "specify"] {
        let asked = fleet.json([verb, "--all"]);
        let tasks: Vec<&str> =
            asked["results"].as_array().unwrap().iter().map(|one| one["task_id"].as_str().unwrap()).collect();
        assert_eq!(tasks, [rough.as_str()], "{asked}");
        fleet.cli(["archive", asked["results"][0]["proposal"].as_str().unwrap()]).ok();
    }
}

#[test]
fn an_idea_is_divided_by_the_words_of_a_run_after_its_first_ones_were_refused() {
    for user in User::all() {
        let tasks = r#"{"tasks": [{"name": "a", "title": "part a", "body": "true", "assignee": "carol"},
            {"name": "b", "title": "part b", "body": "true", "assignee": "carol", "after": ["a"]}],
            "body": "true", "assignee": "carol"}"#;
        let script = format!(
            "if supervisor context | grep -q 'what it returned was refused'; then echo \"{}\"; else echo 'I would divide it.'; fi",
            tasks.replace('\n', " ").replace('"', "\\\"")
        );
        let fleet = Fleet::offline_as(user);
        fleet.configure("[triage]\ndecomposer = \"maker\"\n");
        let lane = format!("{}on_clean_exit = \"complete\"\n", stand_in(&script));
        fleet.lane("maker", &lane);
        fleet.write_config("profiles.d/carol.md", "---\nlane: shell\n---\n");
        fleet.start();
        let id = idea(&fleet, "rough");

        let asked = fleet.json(["decompose", &id]);
        let made = asked["results"][0]["proposal"].as_str().unwrap();
        let done = fleet.wait_for(&id, "done");
        let runs = fleet.show(made)["runs"].clone();
        assert_eq!((&runs[0]["outcome"], &runs[1]["outcome"]), (&"unreported".into(), &"completed".into()));
        let parts = done["parents"].as_array().unwrap();
        assert_eq!(parts.len(), 1, "it waits for what nothing else waits for: {done:#}");
        let last = fleet.show(parts[0].as_str().unwrap());
        assert_eq!(
            (&last["task"]["title"], &last["task"]["mission"]),
            (&"part b".into(), &id.as_str().into())
        );
        assert_eq!(last["parents"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_task_without_an_assignee_gets_the_one_that_the_router_names_and_is_asked_about_once() {
    for user in User::all() {
        let script = "supervisor context | grep -q 'write it' && supervisor complete --metadata '{\"assignee\": \"carol\"}' \
                      || supervisor block 'who is it for?'";
        let fleet = fleet(user, "router", script);
        let routed = fleet.json(["create", "write it", "--body", "true"])["id"].as_str().unwrap().to_owned();
        let done = fleet.wait_for(&routed, "done");
        assert_eq!(done["task"]["assignee"], "carol");

        let unclear = fleet.json(["create", "sing it", "--body", "true"])["id"].as_str().unwrap().to_owned();
        let asked = fleet.eventually("the router asks a person", || {
            let listed = fleet.json(["list", "--assignee", "maker", "--status", "blocked"]);
            listed[0]["id"].as_str().map(str::to_owned)
        });
        fleet.cli(["archive", &asked]).ok();
        fleet.cli(["comment", &unclear, "a change of the board"]).ok();
        fleet.cli(["create", "another", "--assignee", "carol", "--body", "true"]).ok();
        assert_eq!(
            fleet.json(["list", "--assignee", "maker", "--status", "ready,running,blocked"]),
            serde_json::json!([])
        );
        assert_eq!(fleet.show(&unclear)["task"]["assignee"], serde_json::Value::Null);
    }
}

#[test]
fn a_mission_waits_for_its_plan_and_then_for_all_that_is_planned() {
    let script = "supervisor complete --metadata '{\"tasks\": [{\"name\": \"a\", \"title\": \"part a\", \"body\": \"true\", \"assignee\": \"carol\"}], \"body\": \"true\", \"assignee\": \"carol\"}'";
    let fleet = fleet(User::current(), "planner", script);
    let mission = fleet.json(["mission", "create", "a site", "--max-tasks", "9"]);
    let id = mission["id"].as_str().unwrap().to_owned();
    let asked = fleet.json(["mission", "plan", &id, "--author", "ann"]);
    let made = asked["results"][0]["proposal"].as_str().unwrap();
    let done = fleet.wait_for(&id, "done");
    assert_eq!(done["parents"].as_array().map(Vec::len), Some(2), "its plan and the part: {done:#}");
    assert_eq!(fleet.show(made)["task"]["created_by"], "ann");
    let shown = fleet.json(["mission", "show", &id]);
    assert_eq!(shown["use"]["tasks"]["used"], 3, "{shown:#}");
    fleet.cli(["mission", "plan", &id]).refused(4, "before it starts");
}

#[test]
fn a_plan_asks_for_a_profile_that_a_person_makes_and_its_tasks_wait_for_that() {
    // A name that somebody has is refused, and nothing is recorded.
    let plan = |name: &str| {
        serde_json::json!({
            "tasks": [{"name": "a", "title": "a menu", "body": "soup for a week", "assignee": name}],
            "body": "true", "assignee": "carol",
            "profiles": [{"name": name, "description": "plans meals", "prompt": "You plan meals. No nuts."}],
        })
    };
    let script = format!(
        "supervisor complete --metadata '{}' 2> refused && exit 3; grep -q 'shell is there already' refused || exit 4; \
         supervisor complete --metadata '{}'",
        plan("shell"),
        plan("cook")
    );
    let fleet = fleet(User::current(), "planner", &script);
    fleet.lane("kitchen", &stand_in("supervisor complete --summary soup"));
    fleet.cli(["service", "reload"]).ok();
    let id = fleet.json(["mission", "create", "a week of meals"])["id"].as_str().unwrap().to_owned();
    fleet.cli(["mission", "plan", &id]).ok();

    let shown = fleet.eventually("the plan is there", || {
        let shown = fleet.json(["mission", "show", &id]);
        shown["profiles"][0]["name"].is_string().then_some(shown)
    });

    let menu = shown["tree"].as_array().unwrap().iter().find(|task| task["title"] == "a menu").unwrap();
    let menu = menu["id"].as_str().unwrap();
    assert_eq!((&shown["tree"][0]["status"], fleet.status_of(menu).as_str()), (&"todo".into(), "ready"));
    let why = fleet.show(menu)["why"]["text"].to_string();
    assert!(why.contains("`cook`"), "{why}");
    let text = fleet.cli(["mission", "show", &id]).ok().stdout;
    let command = format!("supervisor profile create cook --proposed-for {id}");
    assert!(
        text.contains("cook: plans meals") && text.contains("No nuts.") && text.contains(&command),
        "{text}"
    );

    let another = ["profile", "create", "baker", "--proposed-for", &id];
    fleet.cli(another).refused(3, "asks for no profile `baker`");
    fleet.cli(["profile", "create", "cook", "--proposed-for", &id, "--lane", "kitchen"]).ok();

    assert_eq!(fleet.wait_for(menu, "done")["latest_summary"], "soup");
    fleet.wait_for(&id, "done");
    let made = fleet.cli(["profile", "export", "cook"]).ok().stdout;
    assert!(made.contains("plans meals") && made.contains("You plan meals. No nuts."), "{made}");
    assert_eq!(fleet.json(["mission", "show", &id]).get("profiles"), None, "it is a profile like any other");
}

#[test]
fn a_mission_that_stands_still_is_reviewed_and_planned_anew_at_once() {
    for user in User::all() {
        let script = r#"part=$(supervisor context | grep -o 't_[0-9a-f]* ready .* forgotten' | cut -d ' ' -f 1)
printf '{"answer": "replan", "reason": "nobody does it", "drop": ["%s"],
  "tasks": [{"name": "a", "title": "instead", "body": "true", "assignee": "carol"}]}' "$part" > answer
supervisor complete --metadata "$(cat answer)""#;
        let fleet = Fleet::offline_as(user);
        fleet.configure("[triage]\noverseer = \"maker\"\nreview_idle = \"1s\"\n");
        fleet.lane("maker", &stand_in(script));
        fleet.write_config("profiles.d/carol.md", "---\nlane: shell\n---\n");
        let mission = fleet.json(["mission", "create", "a site", "--assignee", "carol", "--body", "true"]);
        let id = mission["id"].as_str().unwrap().to_owned();
        let part = fleet.json(["create", "forgotten", "--mission", &id])["id"].as_str().unwrap().to_owned();
        fleet.cli(["link", &part, &id]).ok();
        fleet.start();

        let done = fleet.wait_for(&id, "done");

        assert_eq!(fleet.show(&part)["task"]["status"], "archived", "{done:#}");
        let parents = done["parents"].as_array().unwrap();
        assert_eq!(parents.len(), 1, "{done:#}");
        assert_eq!(fleet.show(parents[0].as_str().unwrap())["task"]["title"], "instead");
        let events = fleet.json(["events", "--kind", "mission_reviewed"]).to_string();
        assert!(events.contains("nobody does it"), "{events}");
        fleet.cli(["mission", "review", &id]).refused(4, "is over");
    }
}

#[test]
fn a_mission_is_reviewed_after_some_moves_and_stops_with_a_question_where_the_review_wants_it() {
    let fleet = Fleet::offline();
    fleet.configure("[triage]\noverseer = \"maker\"\nreview_moves = 4\n");
    fleet.lane(
        "maker",
        &stand_in(
            r#"supervisor complete --metadata '{"answer": "stop", "reason": "it goes round in circles"}'"#,
        ),
    );
    fleet.start();
    let mission = fleet.json(["mission", "create", "a site"])["id"].as_str().unwrap().to_owned();
    let part = fleet.create("part", "true", &["--mission", &mission]);
    fleet.wait_for(&part, "done");

    let shown = fleet.eventually("a person is asked", || {
        let shown = fleet.json(["mission", "show", &mission]);
        shown["question"]["text"].as_str().map(str::to_owned)
    });

    assert!(shown.contains("it goes round in circles"), "{shown}");
    assert_eq!(fleet.json(["mission", "show", &mission])["state"], "paused");
    fleet.cli(["answer", &mission, "2"]).ok();
    assert_eq!(fleet.json(["mission", "show", &mission])["state"], "cancelled");
}

#[test]
fn a_plan_beyond_its_mission_pauses_that_and_is_taken_when_a_person_grants_the_tasks() {
    for user in User::all() {
        let part = |n: usize| {
            format!(r#"{{"name": "{n}", "title": "part {n}", "body": "true", "assignee": "carol"}}"#)
        };
        let plan = (0..5).map(part).collect::<Vec<_>>().join(", ");
        let plan = format!(r#"{{"tasks": [{plan}], "body": "true", "assignee": "carol"}}"#);
        // Refused until somebody has answered; the run goes on meanwhile.
        let script = format!(
            "supervisor complete --metadata '{plan}' 2> refused && exit 3; grep -q missions.tasks refused || exit 4; \
             until supervisor complete --metadata '{plan}'; do sleep 0.2; done"
        );
        let fleet = fleet(user, "planner", &script);
        let id =
            fleet.json(["mission", "create", "site", "--max-tasks", "3"])["id"].as_str().unwrap().to_owned();
        fleet.cli(["mission", "plan", &id]).ok();

        let question = fleet.eventually("a person is asked", || {
            fleet.json(["mission", "show", &id])["question"]["text"].as_str().map(str::to_owned)
        });

        assert!(
            question.contains("a proposal has 5 tasks, and 1 of 3 are left (missions.tasks)"),
            "{question}"
        );
        fleet.cli(["answer", &id, "1"]).ok();
        let done = fleet.wait_for(&id, "done");
        assert_eq!(done["parents"].as_array().map(Vec::len), Some(6), "the plan and its tasks: {done:#}");
        assert_eq!(fleet.json(["mission", "show", &id])["use"]["tasks"]["limit"], 9);
    }
}

#[test]
fn an_idea_without_an_assignee_is_said_to_wait_for_its_meaning() {
    let fleet = Fleet::offline();
    let made = fleet.cli(["create", "something", "--triage"]);
    assert!(
        made.stderr.contains("supervisor specify t_") && !made.stderr.contains("nobody is assigned"),
        "{made:?}"
    );
    let id = made.ok().stdout.split_whitespace().find(|word| word.starts_with("t_")).unwrap().to_owned();
    let asked = fleet.cli(["specify", &id]).ok().stdout;
    assert!(asked.starts_with(&format!("Asked specifier about {id}: t_")), "{asked}");
    let again = fleet.cli(["specify", &id]).ok().stdout;
    assert!(again.starts_with(&format!("Asked specifier about {id} before: t_")), "{again}");
}
