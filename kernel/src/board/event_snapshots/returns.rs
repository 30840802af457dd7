//! Events of reopened and unarchived tasks.

use super::done;
use crate::testing::alice;
use crate::{Detach, Handoff};

#[test]
fn reopened_tells_of_a_task_that_is_to_be_done_again() {
    let rendered = done("reopened", |board, id| {
        board.complete(id, Handoff::default(), None, &alice())?;
        board.reopen(id, Some("wrong"), &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"begun":[],"reason":"wrong"}"#);
}

#[test]
fn unarchived_tells_of_a_task_that_comes_back() {
    let rendered = done("unarchived", |board, id| {
        board.archive(id, Detach::Refuse, &alice())?;
        board.unarchive(id, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"status":"ready"}"#);
}
