//! Export of a tenant: it has all data of the tenant, and none of any other.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::testing::{Bench, alice, titled};
use crate::{Blobs, EndCause, Error, NewAttachment, NewTask, RunId, TaskId, Tenant};

fn tenant(name: &str) -> Tenant {
    name.parse().unwrap()
}

/// Creates two tasks of a tenant, with content in every table.
fn fill(bench: &Bench, name: &str) -> (TaskId, TaskId, RunId) {
    let of_tenant =
        |title: &str| NewTask { tenant: Some(tenant(name)), ..titled(&format!("{title} of {name}")) };
    let parent = bench.create(of_tenant("parent")).id;
    let child = bench.create(NewTask { parents: vec![parent.clone()], ..of_tenant("child") }).id;
    let run = bench.start(&parent);
    let spent = crate::Spent { session: Some(name.to_owned()), output_tokens: 5, ..crate::Spent::default() };
    let ending = crate::Ending { spent: Some(spent), ..crate::Ending::new(EndCause::Exited { code: 1 }) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let (id, word, name) = (parent.clone(), format!("a word of {name}"), name.to_owned());
    bench
        .call(move |board| {
            board.comment(&id, &word, None, &alice())?;
            let file = NewAttachment {
                filename: format!("{name}.txt"),
                content_type: None,
                sha256: crate::testing::digest(),
                size: 7,
                author: None,
            };
            board.attach(&id, &file, &alice())?;
            board.tx.open_mission(id.as_str())?;
            board.tx.add_usage(run, crate::Bound::Comments, 1)?;
            let rows = format!(
                "INSERT INTO notify_subs (task_id, platform, chat_id, created_at) VALUES ('{id}', 'p', '{name}', 1); \
                 INSERT INTO holds (kind, scope, name, reason, placed_by, created_at, ended_at, ended_by) \
                   VALUES ('manual', 'tenant', '{name}', 'r', 'alice', 1, 2, 'alice'), \
                          ('manual', 'account', 'of-{name}', 'r', 'alice', 1, 2, 'alice'); \
                 INSERT INTO run_messages (run_id, number, task_id, author, body, state, created_at, changed_at) \
                   VALUES ({run}, 1, '{id}', 'alice', '{name}', 'written', 1, 1); \
                 INSERT INTO run_egress (run_id, egress) VALUES ({run}, '{{}}'); \
                 INSERT INTO requests (id, caller, reply, created_at) VALUES ('{name}', '{name}', '\"{name}\"', 1);"
            );
            board.tx.conn.execute_batch(&rows).unwrap();
            Ok(())
        })
        .unwrap();
    (parent, child, run)
}

fn export(bench: &Bench, name: &str) -> Result<String, Error> {
    let mut out = Vec::new();
    let blobs = Blobs::of_board(&bench.path);
    bench.readers.with(|view| view.export_tenant(&tenant(name), &blobs, &mut out))?;
    Ok(String::from_utf8(out).unwrap())
}

/// Returns the number of rows of each table in an export.
fn counted(text: &str) -> BTreeMap<String, u64> {
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    serde_json::from_value(last["end"].clone()).unwrap()
}

#[test]
fn an_export_has_all_rows_of_its_tenant_and_none_of_another() {
    let bench = Bench::new();
    let (own, _, _) = fill(&bench, "acme");
    let (other, other_child, other_run) = fill(&bench, "globex");

    let text = export(&bench, "acme").unwrap();

    for foreign in ["globex", other.as_str(), other_child.as_str()] {
        assert!(!text.contains(foreign), "{foreign} is in the export of acme");
    }
    assert!(!text.contains(&format!("\"run_id\":{other_run}")) && text.contains(own.as_str()), "{text}");
    let counts = counted(&text);
    for (table, rows) in [
        ("tasks", 2),
        ("task_ids", 2),
        ("task_links", 1),
        ("task_comments", 1),
        ("task_runs", 1),
        ("task_attachments", 1),
        ("notify_subs", 1),
        ("missions", 1),
        ("holds", 1),
        ("run_messages", 1),
        ("run_egress", 1),
        ("run_usage", 1),
    ] {
        assert_eq!(counts.get(table), Some(&rows), "{table}: {counts:?}");
    }
    assert!(!counts.contains_key("requests"), "a stored reply may hold a secret");
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(header["tenant"], "acme");
}

#[test]
fn what_a_row_names_of_another_tenant_is_left_out_of_it() {
    let bench = Bench::new();
    let (own, _, _) = fill(&bench, "acme");
    let (other, _, other_run) = fill(&bench, "globex");
    let rows = format!(
        "UPDATE tasks SET creator_task = '{other}', creator_run = {other_run}, mission = '{other}' WHERE id = '{own}'; \
         UPDATE task_comments SET run_id = {other_run} WHERE task_id = '{own}'; \
         UPDATE task_attachments SET run_id = {other_run} WHERE task_id = '{own}'; \
         INSERT INTO task_links (parent_id, child_id) VALUES ('{other}', '{own}');"
    );
    bench
        .call(move |board| {
            board.tx.conn.execute_batch(&rows).unwrap();
            Ok(())
        })
        .unwrap();

    let text = export(&bench, "acme").unwrap();

    assert!(!text.contains(other.as_str()), "{text}");
    let to = Bench::new();
    let path = to.path.clone();
    to.call(move |board| board.import(&mut text.as_bytes(), &Blobs::of_board(&path), &alice())).unwrap();
}

#[test]
fn what_a_tenant_exports_is_a_board_of_its_own() {
    let from = Bench::new();
    let (own, child, run) = fill(&from, "acme");
    fill(&from, "globex");
    let text = export(&from, "acme").unwrap();
    let to = Bench::new();

    let path = to.path.clone();
    let imported =
        to.call(move |board| board.import(&mut text.as_bytes(), &Blobs::of_board(&path), &alice())).unwrap();

    assert_eq!(imported.rows["tasks"], 2);
    assert_eq!(to.task(&own).title, "parent of acme");
    to.readers
        .with(|view| {
            assert_eq!(view.children(&own)?, std::slice::from_ref(&child));
            assert_eq!(view.runs(&own)?[0].id, run);
            assert_eq!(view.comments(&own)?[0].body, "a word of acme");
            assert_eq!(view.tenant_use(&tenant("acme"))?.total.tokens, 5);
            Ok(())
        })
        .unwrap();
    to.check();
    to.create(titled("goes on"));
}

#[test]
fn a_tenant_without_tasks_has_no_export() {
    let refused = export(&Bench::new(), "nobody").unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
}

#[test]
fn what_a_tenant_has_used_is_added_up_by_day() {
    let bench = Bench::new();
    let (own, _, _) = fill(&bench, "acme");
    fill(&bench, "globex");
    let usage =
        r#"UPDATE task_runs SET usage = '{"user_us":3,"system_us":4,"max_rss_kib":2,"read_bytes":5}'"#;
    bench
        .call(move |board| {
            board.tx.conn.execute_batch(usage).unwrap();
            Ok(())
        })
        .unwrap();

    let told = bench.readers.with(|view| view.tenant_use(&tenant("acme"))).unwrap();

    let total = told.total;
    assert_eq!((total.runs, total.cpu_us, total.peak_memory_bytes, total.read_bytes), (1, 7, 2048, 5));
    assert_eq!((total.tokens, told.attachments, told.attachment_bytes), (5, 1, 7));
    assert_eq!(told.days.values().copied().collect::<Vec<_>>(), [total]);
    assert_eq!(told.tasks.values().sum::<i64>(), 2);
    assert!(told.events > 0 && bench.task(&own).tenant == Some(tenant("acme")));
}
