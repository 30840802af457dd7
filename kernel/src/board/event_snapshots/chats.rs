//! Events of subscriptions.

use super::done;
use crate::TaskId;
use crate::testing::alice;

fn chat(id: &TaskId) -> crate::SubscriptionKey {
    crate::SubscriptionKey {
        task_id: id.clone(),
        platform: "telegram".to_owned(),
        chat_id: "42".to_owned(),
        thread_id: "7".to_owned(),
    }
}

#[test]
fn subscribed_tells_of_a_chat() {
    let rendered =
        done("subscribed", |board, id| board.subscribe(&chat(id), Some("u"), None, &alice()).map(drop));
    insta::assert_snapshot!(rendered, @r#"no run: {"chat_id":"42","platform":"telegram","thread_id":"7"}"#);
}

#[test]
fn unsubscribed_tells_of_a_chat() {
    let rendered = done("unsubscribed", |board, id| {
        board.subscribe(&chat(id), None, None, &alice())?;
        board.unsubscribe(&chat(id), &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"chat_id":"42","platform":"telegram","thread_id":"7"}"#);
}
