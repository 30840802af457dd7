//! Abbreviated ids in the requests of verbs.

use serde_json::json;

use api::Verb;
use base::short_ids::{in_request, may_be_in, of_request};
use kernel::TaskId;
use schemars::{Schema, schema_for};
use serde_json::Value;

use crate::{Archive, Comment, Link, Unblock};

fn found(schema: &Schema, mut request: Value) -> Vec<String> {
    in_request(schema, &mut request).iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

fn of<V: Verb>(verb: &V) -> Vec<TaskId> {
    of_request(&schema_for!(V), &serde_json::to_vec(verb).unwrap()).unwrap()
}

#[test]
fn all_tasks_of_a_request_are_found_for_who_may_see_some_alone() {
    let id = |text: &str| text.parse::<TaskId>().unwrap();
    let link: Link =
        serde_json::from_value(json!({ "parent_id": "t_00000001", "child_id": "t_00000002" })).unwrap();
    let mut found = of(&link);
    found.sort();
    assert_eq!(found, [id("t_00000001"), id("t_00000002")]);
    let unblock = Unblock { task_ids: vec![id("t_00000003"), id("t_00000004")], ..Unblock::default() };
    assert_eq!(of(&unblock), [id("t_00000003"), id("t_00000004")]);
    let rm = Archive { rm: Some(vec![id("t_00000005")]), ..Archive::default() };
    assert_eq!(of(&rm), [id("t_00000005")]);
}

#[test]
fn an_id_is_found_where_a_task_is_named_and_nowhere_else() {
    let request = json!({ "task_id": "t_0", "body": "t_0", "author": null });
    assert_eq!(found(&schema_for!(Comment), request), ["t_0"]);
    assert_eq!(
        found(&schema_for!(Link), json!({ "parent_id": "t_12", "child_id": "t_ab" })),
        ["t_ab", "t_12"]
    );
    let request = json!({ "task_ids": ["t_0123abcd", "t_0123", "t_x"], "reason": "t_1" });
    assert_eq!(found(&schema_for!(Unblock), request), ["t_0123"]);
    assert!(may_be_in(br#"{"task_id":"t_01"}"#) && !may_be_in(br#"{"task_id":"t_0123abcd","title":"t"}"#));
}
