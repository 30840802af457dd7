//! Events of edits by people.

use super::done;
use crate::testing::alice;

#[test]
fn assigned_tells_of_a_new_assignee() {
    let rendered = done("assigned", |board, id| board.assign(id, Some("carol".parse()?), &alice()).map(drop));
    insta::assert_snapshot!(rendered, @r#"no run: {"assignee":"carol","from":"bob"}"#);
}

#[test]
fn edited_tells_of_a_new_title() {
    let rendered = done("edited", |board, id| {
        let edit = crate::Edit { title: Some("other".to_owned()), ..crate::Edit::default() };
        board.edit(id, &edit, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"fields":["title"],"result_len":0}"#);
}

#[test]
fn reprioritized_tells_of_a_new_priority() {
    let rendered = done("reprioritized", |board, id| {
        let edit = crate::Edit { priority: Some(7), ..crate::Edit::default() };
        board.edit(id, &edit, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"priority":7}"#);
}
