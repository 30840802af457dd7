//! Writer and readers of a board.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};

use serde_json::json;

use crate::testing::{Bench, alice, titled};
use crate::{
    Actor, Caller, EndCause, ErrorCode, FailPoints, Handoff, LogAtEnd, Readers, Request, Stats, StorageKind,
    WriterOptions,
};

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

/// Performs a job once for one caller, verb and body, under the same id as all others.
fn once<T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static>(
    bench: &Bench,
    (actor, verb, body): (&Actor, &'static str, &str),
    job: impl FnOnce(&mut crate::Board<'_>, &Actor) -> Result<T, crate::Error> + Send + 'static,
) -> Result<T, crate::Error> {
    let (reply, answer) = mpsc::channel();
    let request = Request::new(Caller::for_actor(actor), verb, "r-1".parse().unwrap(), body.as_bytes());
    let actor = actor.clone();
    bench.writer.submit_once(
        request,
        move |board| job(board, &actor),
        move |result| reply.send(result).unwrap(),
    );
    answer.recv().unwrap()
}

#[test]
fn a_repeated_request_gets_the_first_reply() {
    let bench = Bench::new();
    let create = |title: &'static str| {
        once(&bench, (&alice(), "create", "{}"), move |board, actor| {
            Ok(json!(board.create(titled(title), actor)?.task.id))
        })
    };
    assert_eq!(create("").unwrap_err().code(), ErrorCode::Invalid);
    let first = create("made once").unwrap();
    assert_eq!(create("made once").unwrap(), first);
    assert_eq!(total(&bench.stats()), 1);
}

#[test]
fn a_request_id_belongs_to_one_caller_one_verb_and_one_body() {
    let bench = Bench::new();
    let uid = |uid| Actor { uid: Some(uid), ..alice() };
    let create = |actor: &Actor, verb, body| {
        once(&bench, (actor, verb, body), |board, actor| Ok(board.create(titled("x"), actor)?.task.id))
    };
    let first = create(&uid(1), "create", "{}").unwrap();
    assert_ne!(create(&uid(2), "create", "{}").unwrap(), first, "another user of the same name");
    assert_ne!(create(&uid(1), "swarm", "{}").unwrap(), first, "another verb");
    let refused = create(&uid(1), "create", "{\"title\":\"y\"}").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Invalid);
    assert!(refused.to_string().contains("r-1 was already used for another `create`"), "{refused}");
    assert!(refused.hint().is_some());
    assert_eq!(create(&uid(1), "create", "{}").unwrap(), first);
    assert_eq!(total(&bench.stats()), 3);
}

#[test]
fn two_tenants_runs_of_one_profile_with_one_request_id_both_have_their_verdict_kept() {
    let bench = Bench::new();
    let workers: Vec<Actor> = ["acme", "rival"]
        .map(|tenant| {
            let tenant: crate::Tenant = tenant.parse().unwrap();
            let task = bench.create(crate::NewTask { tenant: Some(tenant.clone()), ..titled("work") }).id;
            Actor::worker("bob", bench.start(&task), task, Some(tenant))
        })
        .into();
    let complete = |worker: &Actor| {
        once(&bench, (worker, "complete", "{}"), |board, worker| {
            let own = worker.run.clone().unwrap().task;
            Ok(board.complete(&own, Handoff::default(), None, worker)?.task.id)
        })
    };

    let replies: Vec<_> = workers.iter().map(|worker| complete(worker).unwrap()).collect();

    for (worker, reply) in workers.iter().zip(replies) {
        let own = worker.run.clone().unwrap();
        assert_eq!(reply, own.task);
        let run = bench.readers.with(|view| view.expect_run(own.run)).unwrap();
        assert!(run.verdict.is_some(), "the verdict of {} is lost", own.task);
        bench.finish(own.run, EndCause::Stopped(crate::StopReason::Verdict));
        // The worker's token is no longer valid. The worker only gets its own stored reply.
        let request = Request::new(Caller::run(own.run), "complete", "r-1".parse().unwrap(), b"{}");
        let stored = bench.readers.with(|view| view.stored_reply(&request)).unwrap().unwrap();
        assert_eq!(stored, format!("{:?}", own.task.as_str()));
    }
    bench.check();
}

#[test]
fn a_reader_sees_commits_of_the_writer_and_cannot_write() {
    let bench = Bench::new();
    let before = bench.readers.data_version().unwrap();
    bench.ready();
    assert_ne!(bench.readers.data_version().unwrap(), before);
    let refused = bench.readers.with(|view| view.tx.reserve_task_id(&"t_00000001".parse().unwrap()));
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

#[test]
fn a_job_that_goes_on_counts_its_steps() {
    let bench = Bench::new();
    let writer = bench.writer.clone();
    let (before, after) = bench
        .call(move |board| {
            let before = writer.steps();
            for _ in 0..100 {
                board.create(titled("one of many"), &alice())?;
            }
            Ok((before, writer.steps()))
        })
        .unwrap();
    assert!(after > before, "{before} {after}");
}

#[test]
fn a_log_that_a_writer_leaves_has_its_commits_and_no_space_for_more() {
    let bench = Bench::with(|options| WriterOptions { log_at_end: LogAtEnd::LeftIfShort, ..options });
    let (first, second) = (bench.ready(), bench.ready());
    bench.writer.close();
    let log = fs::metadata(bench.path.with_extension("db-wal")).unwrap().len();
    assert!(log > 0 && !log.is_multiple_of(1024 * 1024), "{log} bytes");
    let readers = Readers::beside_writer(&bench.path, bench.clock.clone()).unwrap();
    for task in [first, second] {
        assert!(readers.with(|view| view.task(&task)).unwrap().is_some());
    }
    let version = readers.data_version().unwrap();
    let next = bench.second_bench();
    assert_eq!(next.writer.board_id(), bench.writer.board_id());
    next.ready();
    assert_ne!(readers.data_version().unwrap(), version);
    assert_eq!(crate::check_board(&bench.path).unwrap(), Vec::<String>::new());
}
