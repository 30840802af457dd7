//! Boards that are exported and imported.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::testing::{Bench, alice, titled};
use crate::{Blobs, EndCause, Error, Imported, NewAttachment, NewTask, ScheduleSpec, Timing};

fn import(bench: &Bench, text: &str) -> Result<Imported, Error> {
    let (text, blobs) = (text.to_owned(), Blobs::of_board(&bench.path));
    bench.call(move |board| board.import(&mut BufReader::new(text.as_bytes()), &blobs, &alice()))
}

/// Hold that has ended.
const HOLD: &str = "
    INSERT INTO holds (kind, scope, name, reason, placed_by, created_at, ended_at, ended_by)
        VALUES ('manual', 'tenant', 'other', 'r', 'alice', 1, 2, 'alice')";

/// Pause of an earlier boot.
const DELAY: &str = "INSERT INTO delays (task_id, not_before, boot_id, due_boottime_us) SELECT id, 1, 'boot-0', 1 FROM tasks LIMIT 1";

/// Message to a run that is over.
const MESSAGE: &str = "
    INSERT INTO run_messages (run_id, number, task_id, author, body, state, created_at, changed_at)
        SELECT id, 1, task_id, 'alice', 'b', 'written', 1, 1 FROM task_runs LIMIT 1";

/// Message that was not delivered.
const LETTER: &str = "
    INSERT INTO notify_outbox (task_id, event_id, channel, kind, notice, state, due_at, created_at)
        SELECT id, 1, 'p', 'completed', '{\"title\":\"t\"}', 'dead', 1, 1 FROM tasks LIMIT 1";

/// Position of a plugin.
const PLUGIN: &str = "INSERT INTO plugin_cursors (plugin, event_id) VALUES ('p', 1)";

/// Traffic through the proxy of a run.
const EGRESS: &str = "INSERT INTO run_egress (run_id, egress) SELECT id, '{}' FROM task_runs LIMIT 1";

/// Message sent to a chat, and the directory of a thread.
const CHATS: &str = "INSERT INTO chat_messages SELECT id, 'tg', '7', '', '100', 1 FROM tasks LIMIT 1; \
    INSERT INTO chat_places VALUES ('tg', '7', '', '/srv/a', 'person:ann', 1);";

/// Mention, and use on a day.
const MENTION: &str = "
    INSERT INTO mentions (comment_id, profile, task_id) SELECT id, 'bob', task_id FROM task_comments LIMIT 1;
    INSERT INTO proposals (task_id, kind, subject, staff) SELECT id, 'specify', id, '{}' FROM tasks LIMIT 1;
    INSERT INTO spend (day, mission, tenant, account, profile) SELECT '2026-05-01', id, tenant, '', 'bob' FROM tasks LIMIT 1";

/// Returns a board with content in every table.
fn full() -> Bench {
    let bench = Bench::new();
    let parent = bench.create(NewTask {
        tenant: Some("acme".parse().unwrap()),
        body: Some("line\nline \"quoted\" – ü".to_owned()),
        skills: vec!["git".to_owned()],
        workspace: Some("dir:/srv/x".to_owned()),
        idempotency_key: Some("once".to_owned()),
        ..titled("parent")
    });
    let tenant = parent.tenant.clone();
    let child = bench.create(NewTask { parents: vec![parent.id.clone()], tenant, ..titled("child") }).id;
    let run = bench.start(&parent.id);
    let spent = crate::Spent { session: Some("s".to_owned()), output_tokens: 1, ..crate::Spent::default() };
    let ending = crate::Ending { spent: Some(spent), ..crate::Ending::new(EndCause::Exited { code: 1 }) };
    bench.call(move |board| board.finish_run(run, ending)).unwrap();
    let id = parent.id.clone();
    let schedule: crate::ScheduleName = "beat".parse().unwrap();
    bench
        .call(move |board| {
            board.comment(&id, "a word", None, &alice())?;
            let file = NewAttachment {
                filename: "a.txt".to_owned(),
                content_type: None,
                sha256: crate::testing::digest(),
                size: 7,
                author: None,
            };
            board.attach(&id, &file, &alice())?;
            board.tx.open_mission(id.as_str())?;
            board.tx.conn.execute(
                "INSERT INTO notify_subs (task_id, platform, chat_id, created_at) VALUES (?1, 'p', 'c', 1)",
                [&child],
            )
            .unwrap();
            board
                .tx
                .conn
                .execute(
                    "INSERT INTO requests (id, caller, reply, created_at) VALUES ('r', 'c', '{}', 1)",
                    [],
                )
                .unwrap();
            board.tx.conn.execute_batch(HOLD).unwrap();
            board.tx.add_usage(crate::RunId(1), crate::Bound::Comments, 1)?;
            board.tx.conn.execute_batch(DELAY).unwrap();
            board.tx.conn.execute_batch(MESSAGE).unwrap();
            board.tx.conn.execute_batch(EGRESS).unwrap();
            board.tx.conn.execute_batch(LETTER).unwrap();
            board.tx.conn.execute_batch(MENTION).unwrap();
            let timing = Timing { every: Some(Duration::from_hours(1)), ..Timing::default() };
            let command = Some(vec!["dispatch-fleet".to_owned()]);
            board.define_schedule(&schedule, &ScheduleSpec { timing, command, ..ScheduleSpec::default() })?;
            board.run_schedule(&schedule, &alice())?;
            board.tx.conn.execute_batch(CHATS).unwrap();
            board.tx.conn.execute_batch(PLUGIN).unwrap();
            board.fold_events(crate::Timestamp::from_micros(i64::MAX), 1)?;
            Ok(())
        })
        .unwrap();
    bench
}

#[test]
fn an_exported_board_comes_back_the_same() {
    let from = full();
    let text = from.dump();
    let to = Bench::new();

    let imported = import(&to, &text).unwrap();

    assert_eq!(imported.rows["tasks"], 2);
    let again = to.dump();
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(hostless(&body(&text)), hostless(&body(&again)));
    assert_eq!(to.readers.with(|view| view.replay()).unwrap(), vec![]);
    to.check();
    to.create(titled("goes on"));
}

/// Tables that an export leaves out: they are derived from others, or identify the file.
const NOT_CARRIED: [&str; 4] = ["task_counts", "tenant_counts", "line_heads", "meta"];

/// Returns all tables with their rows.
fn tables(path: &Path) -> BTreeMap<String, Vec<Vec<rusqlite::types::Value>>> {
    let conn = Connection::open(path).unwrap();
    let mut names = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let rows = |name: &String| {
        let mut rows = conn.prepare(&format!("SELECT * FROM \"{name}\" ORDER BY 1")).unwrap();
        let width = rows.column_count();
        let rows = rows.query_map([], |row| (0..width).map(|at| row.get(at)).collect()).unwrap();
        let mut rows: Vec<Vec<_>> = rows.map(Result::unwrap).collect();
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

#[test]
fn every_table_of_the_schema_comes_through_an_export_and_through_a_backup() {
    let from = full();
    // Data of a host is not exported to another host.
    from.call(|board| board.tx.forget_host()).unwrap();
    let expected = tables(&from.path);
    for (table, rows) in &expected {
        assert!(!rows.is_empty(), "`full` has no row of {table}, so nothing shows that it is carried");
    }

    let to = Bench::new();
    import(&to, &from.dump()).unwrap();
    let copy = from.directory.path().join("copy.db");
    crate::backup_board(&from.path, &copy, crate::Existing::Keep, "{}").unwrap();
    let other = tempfile::tempdir().unwrap();
    let restored = other.path().join("board.db");
    let terms = crate::RestoreTerms {
        runs: crate::RunId(0),
        now: crate::Timestamp::from_micros(1),
        workspace: &|_| None,
        unfit: crate::UnfitRows::Refused,
    };
    crate::restore_board(&restored, &copy, &terms, &|_| ()).unwrap();

    assert_eq!(tables(&restored), expected);
    let imported = tables(&to.path);
    assert_eq!(imported.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, rows) in expected.iter().filter(|(table, _)| !NOT_CARRIED.contains(&table.as_str())) {
        assert_eq!(&imported[table], rows, "{table}");
    }
    to.check();
}

/// Returns a board with a file of several pieces, and with a file that is gone.
fn with_files() -> (Bench, Vec<u8>) {
    let bench = full();
    let task = bench.ready();
    let blobs = Blobs::of_board(&bench.path);
    let bytes: Vec<u8> = (0..1_300_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
    for (name, bytes) in [("big", bytes.as_slice()), ("empty", &[])] {
        let stored = blobs.store(&mut &*bytes).unwrap();
        let file = NewAttachment {
            filename: name.to_owned(),
            content_type: None,
            sha256: stored.digest.clone(),
            size: stored.size,
            author: None,
        };
        let task = task.clone();
        bench.call(move |board| board.attach(&task, &file, &alice())).unwrap();
    }
    (bench, bytes)
}

#[test]
fn files_come_through_an_export_and_what_is_missing_is_named() {
    let (from, bytes) = with_files();
    let mut out = Vec::new();
    let details = Some(serde_json::json!({"name": "Ours"}));
    let exported = from
        .readers
        .with(|view| view.export(&Blobs::of_board(&from.path), details.clone(), &mut out))
        .unwrap();
    assert_eq!(exported.files, 2);
    let lacks: Vec<String> = exported.lacks.iter().map(ToString::to_string).collect();
    assert!(lacks.len() == 1 && lacks[0].ends_with("its bytes are missing"), "{lacks:?}");
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().all(|line| line.len() < 1_100_000));
    let to = Bench::new();

    let imported = import(&to, &text).unwrap();

    assert_eq!((imported.files, imported.details), (2, details));
    let stored = Blobs::of_board(&to.path);
    let digests = to.readers.with(|view| view.attached(&crate::SweepScope::All)).unwrap();
    let read = digests.iter().filter_map(|digest| stored.read(digest).unwrap().ok());
    let mut read: Vec<Vec<u8>> = read.collect();
    read.sort_by_key(Vec::len);
    assert_eq!(read, [Vec::new(), bytes]);
}

#[test]
fn files_that_are_not_what_they_say_are_refused_and_none_is_kept() {
    let (from, _) = with_files();
    let text = from.dump();
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| line.contains("\"at\":0") && line.len() > 1000).unwrap();
    let piece = lines[first].to_owned();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        lines.join("\n")
    };
    let without = |at: usize| {
        let mut lines = lines.clone();
        lines.remove(at);
        lines.join("\n")
    };
    let last = |text: String| text.replace("\"files\":2", "\"files\":3");
    let altered = piece.replacen("\"hex\":\"00", "\"hex\":\"ff", 1);
    assert_ne!(altered, piece);
    let strange = format!("{{\"file\":{{\"sha256\":\"{}\",\"at\":0,\"hex\":\"\"}}}}", "0".repeat(64));
    for (text, expected) in [
        (with(first, &altered), "not those that were attached"),
        (without(first), "goes on at"),
        (without(first + 1), "goes on at"),
        (with(first + 1, &piece), "goes on at"),
        (with(first + 1, &strange), "not those that were attached"),
        (with(first, &strange), "no attachment has the content"),
        (with(first, &piece.replacen("\"hex\":\"00", "\"hex\":\"zz", 1)), "hexadecimal"),
        (last(text.clone()), "count is not that of the files"),
    ] {
        let to = Bench::new();
        let error = import(&to, &text).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        to.create(titled("the board is usable"));
    }
}

#[test]
fn a_value_that_no_board_has_is_refused_with_its_line_and_column() {
    let text = full().dump();
    let with = |table: &str, column: &str, value: serde_json::Value| {
        let mut is_first = true;
        let lines = text.lines().map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            if line["table"] == table && std::mem::take(&mut is_first) {
                line["row"][column] = value.clone();
            }
            line.to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    for (table, column, value) in [
        ("tasks", "created_at", serde_json::json!(-1)),
        ("tasks", "updated_at", serde_json::json!(253_402_300_800_000_000_i64)),
        ("tasks", "priority", serde_json::json!("high")),
        ("tasks", "id", serde_json::json!("0123abcd")),
        ("task_ids", "id", serde_json::json!("of another form")),
        ("task_comments", "id", serde_json::json!(i64::MAX)),
        ("schedules", "next", serde_json::json!(i64::MAX)),
        ("sqlite_sequence", "seq", serde_json::json!(i64::MAX)),
        ("sqlite_sequence", "seq", serde_json::json!((1_i64 << 53) - 1)),
        ("task_runs", "nonce", serde_json::json!("=")),
    ] {
        let error = import(&Bench::new(), &with(table, column, value)).unwrap_err().to_string();
        assert!(
            error.contains("line ") && error.contains(&format!("{table}.{column}")),
            "{table}.{column}: {error}"
        );
    }
}

#[test]
fn an_imported_schedule_does_nothing_until_it_is_defined_on_this_host() {
    let from = full();
    let name: crate::ScheduleName = "beat".parse().unwrap();
    let to = Bench::new();
    import(&to, &from.dump()).unwrap();
    let read = || to.readers.with(|view| view.schedules()).unwrap().remove(0);

    let imported = read();

    assert_eq!((&imported.name, imported.next), (&name, None));
    assert!(to.readers.with(|view| view.due_commands(10)).unwrap().is_empty());
    to.call(move |board| board.define_schedule(&name, &imported.spec)).unwrap();
    assert!(read().next.is_some());
}

#[test]
fn an_imported_board_keeps_no_breaker_of_the_former_host_and_no_plugin_ahead_of_its_events() {
    let from = full();
    Connection::open(&from.path)
        .unwrap()
        .execute_batch(
            "INSERT INTO holds (kind, scope, name, reason, placed_by, until, created_at) \
               VALUES ('breaker', 'host', 'host', 'r', 'system:supervisor', 9000000000000000, 1), \
                      ('manual', 'profile', 'shell', 'r', 'alice', NULL, 1); \
             UPDATE plugin_cursors SET event_id = 4000000000",
        )
        .unwrap();
    let to = Bench::new();

    import(&to, &from.dump()).unwrap();

    let live = to.readers.with(|view| view.holds()).unwrap();
    assert_eq!(live.iter().map(|hold| hold.kind).collect::<Vec<_>>(), [crate::HoldKind::Manual]);
    let cursors = to.readers.with(|view| view.plugin_cursors()).unwrap();
    let last = to.call(|board| board.tx.last_event()).unwrap();
    assert_eq!(cursors[0].event, last, "the next event is delivered");
}

#[test]
fn the_policies_of_imported_tasks_are_known_before_the_import_is_kept() {
    let bench = Bench::new();
    let policy = |policy: &str, title: &str| {
        bench.create(NewTask {
            policy: Some(policy.to_owned()),
            assignee: Some("ann".parse().unwrap()),
            ..titled(title)
        })
    };
    let wide = policy("unconfined", "wide").id;
    policy("unconfined", "wide too");
    bench.create(titled("plain"));
    let found = bench.call(|board| board.imported_policies()).unwrap();
    let counts: Vec<_> = found.iter().map(|one| (one.policy.as_deref(), one.tasks)).collect();
    assert!(counts.contains(&(Some("unconfined"), 2)) && counts.contains(&(None, 1)), "{found:?}");
    assert!(found.iter().any(|one| one.first == wide), "{found:?}");
}

#[test]
fn an_older_export_without_newer_tables_is_read() {
    let text = full().dump();
    let old: Vec<String> = text
        .lines()
        .filter(|line| {
            !line.contains("\"table\":\"holds\"") && !line.contains("\"table\":\"sqlite_sequence\"")
        })
        .map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(end) = line.get_mut("end").and_then(|end| end.as_object_mut()) {
                end.retain(|table, _| table != "holds" && table != "sqlite_sequence");
            }
            line.to_string()
        })
        .collect();
    let to = Bench::new();
    let imported = import(&to, &old.join("\n")).unwrap();
    assert_eq!((imported.rows["tasks"], imported.files, imported.details), (2, 0, None));
}

#[test]
fn a_number_that_was_given_out_is_not_given_out_again_on_an_imported_board() {
    let from = full();
    let task = from.ready();
    let file = |sha256| NewAttachment {
        filename: "a".to_owned(),
        content_type: None,
        sha256,
        size: 0,
        author: None,
    };
    let last = file(crate::testing::digest());
    let last = from.call(move |board| board.attach(&task, &last, &alice())).unwrap().id;
    from.call(move |board| board.detach_file(last, &alice())).unwrap();
    let to = Bench::new();
    import(&to, &from.dump()).unwrap();
    let task = to.ready();
    let next = file(crate::testing::digest());
    let next = to.call(move |board| board.attach(&task, &next, &alice())).unwrap().id;
    assert!(next.get() > last.get(), "{next} {last}");
}

/// Returns the rows without data of a host.
fn hostless(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(|line| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(row) = value.get_mut("row").and_then(|row| row.as_object_mut()) {
            row.remove("worker_uid");
            row.remove("token_hash");
            row.remove("next");
        }
        if value["table"] == "schedule_ticks" {
            value["row"]["outcome"] = serde_json::json!("missed");
            value["row"]["note"] = serde_json::Value::Null;
        }
        value
    });
    lines.collect()
}

#[test]
fn an_import_takes_all_or_nothing_and_says_which_line_is_wrong() {
    let text = full().dump();
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let without = |mark: &str| {
        let kept: Vec<&str> = lines.iter().copied().filter(|line| !line.contains(mark)).collect();
        kept.join("\n")
    };
    let cases = [
        (String::new(), "empty"),
        ("{}".to_owned(), "line 1: this is not an exported board"),
        (text.replacen("supervisor-board", "others", 1), "format"),
        (text.replacen("\"version\":2", "\"version\":1", 1), "older than 0.1.0"),
        (text.replacen("\"version\":2", "\"version\":3", 1), "newer"),
        (cut, "cut off"),
        (without("\"table\":\"task_links\""), "counts"),
        (text.replacen("\"table\":\"tasks\"", "\"table\":\"taskz\"", 1), "no table"),
        (text.replacen("\"title\":", "\"titel\":", 1), "no column"),
        (text.replacen("\"status\":\"todo\"", "\"status\":\"bogus\"", 1), "line"),
        (text.replacen("\"assignee\":\"bob\"", "\"assignee\":\"not a name!\"", 1), "invalid value"),
        (format!("{text}{}\n", lines[1]), "follows"),
    ];
    for (text, expected) in cases {
        let to = Bench::new();
        let error = import(&to, &text).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(error.hint().is_some(), "{error}");
        assert_eq!(to.readers.with(|view| view.stats(None)).unwrap().by_status.len(), 0, "{expected}");
        to.create(titled("the board is usable"));
    }
    let used = full();
    let error = import(&used, &text).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}
