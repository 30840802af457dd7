//! What the writer and its readers promise.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};

use serde_json::json;

use crate::testing::{Bench, alice, titled};
use crate::{ErrorCode, FailPoints, NewTask, Readers, RequestId, Stats, StorageKind, WriterOptions};

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
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    assert_eq!(total(&bench.readers.with(|view| view.stats()).unwrap()), 640);
    assert!(commits.load(Ordering::Relaxed) <= 640);
    bench.check();
}

#[test]
fn a_lost_group_fails_every_job_of_it() {
    let (open, gate) = mpsc::sync_channel::<()>(0);
    let gate = Mutex::new(gate);
    let calls = AtomicU32::new(0);
    let news = Arc::new(AtomicU32::new(0));
    let heard = news.clone();
    let bench = Bench::with(|options| WriterOptions {
        fail_point: FailPoints::failing(move |point| match (point, calls.load(Ordering::Relaxed)) {
            ("begin", 0) => {
                gate.lock().unwrap().recv().unwrap();
                None
            }
            ("commit", number) => {
                calls.fetch_add(1, Ordering::Relaxed);
                (number == 1).then_some(StorageKind::Full)
            }
            _ => None,
        }),
        on_commit: Arc::new(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        }),
        ..options
    });
    let (reply, answers) = mpsc::channel();
    for number in 0..4 {
        let reply = reply.clone();
        // The first job is a group of its own: the writer waits at its begin until the others are queued.
        bench.writer.submit(
            move |board| {
                let title = if number == 3 { "" } else { "queued" };
                board.create(NewTask { title: title.to_owned(), ..NewTask::default() }, &alice())
            },
            move |result| reply.send((number, result)).unwrap(),
        );
        if number == 0 {
            continue;
        }
    }
    open.send(()).unwrap();
    let answers: Vec<_> = (0..4).map(|_| answers.recv().unwrap()).collect();
    let failed = answers
        .iter()
        .filter(|(_, result)| result.as_ref().is_err_and(|error| error.code() == ErrorCode::Unavailable))
        .count();
    let kept = answers.iter().filter(|(_, result)| result.is_ok()).count();
    // The first group held what was queued when the thread woke: one job, or all of them.
    let stored = usize::try_from(total(&bench.readers.with(|view| view.stats()).unwrap())).unwrap();
    assert_eq!(stored, kept);
    assert!(failed == 3 || failed == 0, "{failed} failed, {kept} kept");
    let error = bench.call(|board| board.create(titled("after"), &alice()));
    assert_eq!(error.is_ok(), failed == 3);
    assert!(news.load(Ordering::Relaxed) >= 1);
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
    assert_eq!(total(&bench.readers.with(|view| view.stats()).unwrap()), 1);
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
    assert_eq!(total(&bench.readers.with(|view| view.stats()).unwrap()), 1);
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
