//! Senders without rights, and senders who name tasks or chats of others.

use std::os::unix::fs::chown;

use serde_json::json;

use super::{SENDERS, task_in};
use crate::harness::{Fleet, User};
use crate::listeners::operator;

/// Posts a program's message to the chat and returns the reply.
fn says(fleet: &Fleet, number: u32, sender: &str, text: &str) -> String {
    let body = json!({ "id": format!("m{number}"), "sender": sender, "chat_id": "!room", "text": text });
    fleet.eventually("the chat is served", || {
        let answer = operator(fleet).send("POST", "/api/v1/chat/room", body.to_string().as_bytes());
        (answer.status == 200).then(|| answer.json(200)["reply"].as_str().unwrap_or_default().to_owned())
    })
}

#[test]
fn the_tasks_of_a_sender_with_a_tenant_stay_in_its_directory_by_whatever_words_they_are_made() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let sites = fleet.home().join("sites");
        for (name, uid) in [("acme", 65_534), ("other", 4712)] {
            std::fs::create_dir_all(sites.join(name)).unwrap();
            fleet.give(&sites.join(name));
            if user == User::Root {
                // No worker runs as root: each directory has a user of its own.
                chown(sites.join(name), Some(uid), Some(uid)).unwrap();
            }
        }
        fleet.give(&sites);
        let tenants_user = if user == User::Root { "user = 65534\n" } else { "" };
        let root = sites.join("acme");
        fleet.write_config("tenants.d/acme.toml", &format!("root = '{}'\n{tenants_user}", root.display()));
        fleet.configure("[notify.channels.hook]\nkind = 'webhook'\nurl = 'http://127.0.0.1:9/none'\n");
        let directories = format!("directories = ['{}']\n", sites.display());
        fleet.write_config("chat.d/room.toml", &format!("channel = 'hook'\n{directories}{SENDERS}"));
        fleet.write_config("profiles.d/site.md", "---\ndescription: works\nlane: shell\n---\n");
        fleet.start();
        let own = "Not done: the tasks of the tenant acme work in scratch directories and beneath";

        // Dan is a user of the tenant acme, and Bob is nobody's.
        assert!(says(&fleet, 1, "4", "/kanban here other").starts_with(own));
        assert!(says(&fleet, 2, "2", "/kanban here other").contains("work in"));
        let mentioned = says(&fleet, 3, "4", "@site\ntouch escaped");
        assert!(mentioned.starts_with(own), "{mentioned}");
        assert!(says(&fleet, 4, "4", "/kanban create x --assignee shell\ntouch escaped").starts_with(own));

        let placed = says(&fleet, 5, "4", "/kanban here acme");
        assert!(placed.contains("work in"), "{placed}");
        let made = task_in(&says(&fleet, 6, "4", "@site; touch made; exit 0"));
        fleet.wait_for(&made, "done");
        assert!(root.join("made").exists());
        assert!(!sites.join("other/escaped").exists());
    }
}
