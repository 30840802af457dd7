//! What the writer and its readers promise.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};

use serde_json::json;

use crate::testing::{Bench, alice, titled};
use crate::{ErrorCode, FailPoints, Readers, RequestId, Stats, StorageKind, WriterOptions};

fn total(stats: &Stats) -> i64 {
    stats.by_status.values().sum()
}

#[test]
fn sixty_four_threads_lose_nothing() {
    let commits = Arc::new(AtomicU32::new(0));
    let counter = commits.clone();
    let bench = Bench::with(|options| WriterOptions {
        on_commit: Arc::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        }),
        ..options
    });
    let gate = Arc::new(Barrier::new(64));
    let handles: Vec<_> = (0..64)
        .map(|_| {
            let (writer, gate) = (bench.writer.clone(), gate.clone());
            std::thread::spawn(move || {
                gate.wait();
                for _ in 0..10 {
                    writer.call(|board| board.create(titled("one of many"), &alice())).unwrap();
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    assert_eq!(total(&bench.stats()), 640);
    assert!(commits.load(Ordering::Relaxed) <= 640);
    bench.check();
}

#[test]
fn a_lost_group_fails_every_job_of_it() {
    let commits = AtomicU32::new(0);
    let news = Arc::new(AtomicU32::new(0));
    let heard = news.clone();
    let bench = Bench::with(|options| WriterOptions {
        fail_point: FailPoints::failing(move |point| {
            (point == "commit" && commits.fetch_add(1, Ordering::Relaxed) == 1).then_some(StorageKind::Full)
        }),
        on_commit: Arc::new(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        }),
        ..options
    });
    let (reply, answers) = mpsc::channel();
    let (running, has_started) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let first = reply.clone();
    bench.writer.submit(
        move |board| {
            running.send(()).unwrap();
            released.recv().unwrap();
            board.create(titled("a group of its own"), &alice())
        },
        move |result| first.send(("first", result)).unwrap(),
    );
    has_started.recv().unwrap();
    // These are queued while the first one runs, so they are one group.
    for title in ["one", "", "two"] {
        let reply = reply.clone();
        bench.writer.submit(
            move |board| board.create(titled(title), &alice()),
            move |result| reply.send(("grouped", result)).unwrap(),
        );
    }
    release.send(()).unwrap();
    for number in 0..4 {
        let (group, result) = answers.recv().unwrap();
        assert_eq!(group, if number == 0 { "first" } else { "grouped" });
        match result {
            Ok(_) => assert_eq!(group, "first"),
            Err(error) => assert_eq!((group, error.code()), ("grouped", ErrorCode::Unavailable)),
        }
    }
    assert_eq!((total(&bench.stats()), news.load(Ordering::Relaxed)), (1, 1));
    bench.create(titled("after"));
    bench.check();
}

#[test]
fn a_refused_job_does_not_touch_its_neighbours() {
    let bench = Bench::new();
    let error = bench
        .call(|board| {
            board.create(titled("undone"), &alice())?;
            board.create(titled(""), &alice())
        })
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::Invalid);
    let error = bench.call::<()>(|_| panic!("a fault in a job")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Internal);
    bench.create(titled("kept"));
    assert_eq!(total(&bench.stats()), 1);
    bench.check();
}

#[test]
fn a_repeated_request_gets_the_first_reply() {
    let bench = Bench::new();
    let once = |caller: &str, title: &str| {
        let (reply, answer) = mpsc::channel();
        let new = titled(title);
        bench.writer.submit_once(
            "r-1".parse::<RequestId>().unwrap(),
            caller.to_owned(),
            move |board| Ok(json!(board.create(new, &alice())?.task.id)),
            move |result| reply.send(result).unwrap(),
        );
        answer.recv().unwrap()
    };
    assert_eq!(once("alice", "").unwrap_err().code(), ErrorCode::Invalid);
    let first = once("alice", "made once").unwrap();
    assert_eq!(once("alice", "made once").unwrap(), first);
    assert_eq!(once("mallory", "made once").unwrap_err().code(), ErrorCode::Conflict);
    assert_eq!(total(&bench.stats()), 1);
}

#[test]
fn a_reader_sees_commits_of_the_writer_and_cannot_write() {
    let bench = Bench::new();
    let before = bench.readers.data_version().unwrap();
    bench.ready();
    assert_ne!(bench.readers.data_version().unwrap(), before);
    let refused =
        bench.readers.with(|view| crate::store::tasks::reserve_id(view.conn, &"t_00000001".parse().unwrap()));
    assert!(refused.is_err());
}

#[test]
fn a_board_can_be_read_when_nobody_writes() {
    let bench = Bench::new();
    let id = bench.ready();
    let Bench { directory, path, clock, writer, readers } = bench;
    drop((writer, readers));
    let readers = Readers::open(&path, clock).unwrap();
    assert_eq!(readers.with(|view| view.expect_task(&id)).unwrap().id, id);
    drop(directory);
}
