//! The users of a tenant have its ideas specified and divided, and nobody else's.

use super::{ANN, EVE, ZOE, by, json_by, two_tenants};

#[test]
fn the_users_of_a_tenant_ask_for_proposals_about_its_ideas_alone() {
    let Some(fleet) = two_tenants() else { return };
    let idea = |uid: u32, title: &str| {
        json_by(&fleet, uid, &["create", title, "--triage"])["id"].as_str().unwrap().to_owned()
    };
    let (own, second, foreign) = (idea(ANN, "ours"), idea(ANN, "ours too"), idea(EVE, "theirs"));
    let nobodys = fleet.json(["create", "an operator's", "--triage"])["id"].as_str().unwrap().to_owned();

    let asked = json_by(&fleet, ANN, &["specify", &own]);

    let proposal = asked["results"][0]["proposal"].as_str().unwrap().to_owned();
    let shown = fleet.show(&proposal);
    assert_eq!(shown["task"]["tenant"], "acme", "{shown:#}");
    assert_ne!(shown["task"]["created_by"], "root");
    for id in [&foreign, &nobodys] {
        for verb in ["specify", "decompose"] {
            by(&fleet, ANN, &[verb, id]).refused(3, "no such task");
        }
    }
    by(&fleet, ANN, &["specify", "--all", "--tenant", "globex"]).refused(77, "sees the tenant acme alone");
    let all = json_by(&fleet, ANN, &["decompose", "--all"]);
    let about: Vec<&str> =
        all["results"].as_array().unwrap().iter().map(|one| one["task_id"].as_str().unwrap()).collect();
    assert!(about.len() == 2 && about.contains(&own.as_str()) && about.contains(&second.as_str()), "{all}");
    let said = json_by(&fleet, ANN, &["specify", &second, "--author", "root"]);
    let author = fleet.show(said["results"][0]["proposal"].as_str().unwrap())["task"]["created_by"].clone();
    assert_ne!(author, "root", "nobody asks in another's name");
    // A proposal is a task of the tenant: another tenant's user does not see it.
    by(&fleet, EVE, &["show", &proposal]).refused(3, "no such task");
    for words in [["mission", "plan"], ["mission", "review"]] {
        by(&fleet, ANN, &[words[0], words[1], &own]).refused(77, "for operators");
    }
    by(&fleet, ZOE, &["specify", &own]).refused(77, "");
}
