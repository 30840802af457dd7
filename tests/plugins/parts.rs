//! Texts of plugins for workers, and messages of plugins to people.

use serde_json::json;

use super::{checked, failing, installed, kept, written};
use crate::harness::{Fleet, User};

/// A lane whose worker writes its prompt into a file of its workspace.
const READER: &str = r#"
argv = ["/bin/sh", "-c", "cp \"$0\" read; supervisor complete --summary ok", "{prompt_file}"]
prompt = "file"
"#;

const SECTIONS: &str = "timeout = '1m'
[[prompt]]
name = 'rules'
title = 'House rules'
text = 'Be kind.'
[[prompt]]
name = 'news'
title = 'News'
[[prompt]]
name = 'elsewhere'
title = 'Elsewhere'
text = 'not for this one'
profiles = ['someone-else']
";

/// Returns the context of a new task's worker.
fn read(fleet: &Fleet) -> String {
    let task = fleet.json(["create", "read this", "--assignee", "reader"])["id"].as_str().unwrap().to_owned();
    let shown = fleet.wait_for(&task, "done");
    let dir = shown["runs"][0]["workspace_path"].as_str().unwrap().to_owned();
    std::fs::read_to_string(format!("{dir}/read")).unwrap()
}

#[test]
fn a_worker_reads_the_sections_of_plugins_and_which_of_them_failed() {
    let fleet = Fleet::offline();
    fleet.lane("reader", READER);
    installed(&fleet, "papers", SECTIONS, "cat > \"$PLUGIN_STATE/call\"; echo '{\"text\":\"It rains.\"}'");
    fleet.start();

    let text = read(&fleet);

    assert!(text.contains("\n# House rules\n\nBe kind.\n\n# News\n\nIt rains.\n"), "{text}");
    assert!(!text.contains("not for this one"), "{text}");
    assert!(kept(&fleet, "papers", "call").contains("\"title\":\"read this\""));
    for (script, why) in [
        ("sleep 4242", "took longer than 2 s"),
        ("exit 3", "ended with code 3"),
        ("head -c 20000 /dev/zero | tr '\\0' x | sed 's/.*/{\"text\":\"&\"}/'", "more than 16384 bytes"),
    ] {
        let limit = if why.contains("longer than 2 s") { "'2s'" } else { "'1m'" };
        installed(&fleet, "papers", &SECTIONS.replace("'1m'", limit), script);
        let text = read(&fleet);
        let said = text.split("# News\n\n").nth(1).unwrap().lines().next().unwrap().to_owned();
        assert!(
            said.starts_with("(This section is missing: the plugin papers failed: ") && said.contains(why),
            "{said}"
        );
        assert!(text.contains("Be kind."), "{text}");
    }
    assert!(fleet.processes_with("4242").is_empty());
}

#[test]
fn a_sink_of_a_plugin_takes_messages_until_it_does_and_each_of_them() {
    for user in User::all() {
        let fleet = Fleet::offline_as(user);
        let sink = "[[sinks]]\nname = 'page'\nabout = 'Calls the one on duty'\n";
        installed(&fleet, "pager", sink, "echo busy >&2; exit 1");
        fleet.configure("[notify]\ndefault = 'duty'\n[notify.channels.duty]\nkind = 'plugin'\nplugin = 'pager.page'\nretry_first = 0\n");
        fleet.start();
        let test = fleet.cli(["notify", "test", "duty", "--json"]);
        assert!(test.code == 1 && test.stdout.contains("ended with code 1: busy"), "{test:?}");
        let task = fleet.create("say", "echo hi; supervisor complete --result well", &[]);
        fleet.wait_for(&task, "done");
        fleet.eventually("it fails", || {
            let waits = fleet.json(["notify", "outbox"]);
            (waits[0]["attempts"].as_u64()? > 0).then_some(())
        });

        installed(&fleet, "pager", sink, "cat >> \"$PLUGIN_STATE/messages\"");

        fleet.eventually("it has come", || (fleet.json(["notify", "outbox"]) == json!([])).then_some(()));
        let messages = kept(&fleet, "pager", "messages");
        assert!(messages.contains("\"call\":\"sink\"") && messages.contains(&task), "{messages}");
        fleet.cli(["notify", "test", "duty"]).ok();
        fleet.cli(["plugin", "uninstall", "pager"]).ok();
        let test = fleet.cli(["notify", "test", "duty", "--json"]);
        assert!(test.code == 1 && test.stdout.contains("there is no plugin `pager`"), "{test:?}");
    }
}

#[test]
fn a_check_calls_all_that_a_plugin_adds() {
    let fleet = Fleet::offline();
    let more = "[[events]]\nkinds = ['created']\n[[verbs]]\nname = 'v'\nabout = 'x'\n[[tools]]\nname = 't'\nabout = 'x'\n\
        [[prompt]]\nname = 'p'\ntitle = 'x'\n[[sinks]]\nname = 's'\nabout = 'x'\n";
    let dir = written(&fleet, "all", more, "grep -q '\"check\":true' && echo '{}'");
    let (ok, steps) = checked(&fleet, &dir.display().to_string());
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert!(ok, "{steps:#?}");
    assert_eq!(names[4..], ["event created", "verb v", "tool t", "prompt p", "sink s"]);
    let dir = written(&fleet, "asks", "[[sinks]]\nname = 's'\nabout = 'x'\n", "echo nothing >&2; exit 9");
    assert_eq!(failing(&fleet, &dir.display().to_string()), "sink s: the program ended with code 9: nothing");
}
