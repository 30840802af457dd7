//! Several writers of one board, as threads, connections and processes: no acknowledged write is lost or done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier, mpsc};
use std::{env, fs, thread};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rustix::process::{Signal, getpid, kill_process};

use crate::board::history_tests::{Act, act, perform};
use crate::testing::{Bench, alice, titled};
use crate::{
    Caller, Error, ManualClock, NewTask, Readers, Request, StorageKind, TaskId, WriterOptions, check_board,
};

/// Returns true if another writer held the lock for too long: the refusal of a busy host. Nothing was written.
fn was_busy(error: &Error) -> bool {
    matches!(error, Error::Storage { kind: StorageKind::Busy, .. })
}

/// Tasks of the histories, and a task that no act touches, which takes the comments of all writers.
struct Tasks {
    ids: Vec<TaskId>,
    ledger: TaskId,
}

/// Performs a history, and comments on the ledger task after each act. Reports each acknowledged comment to `told`.
fn live(bench: &Bench, name: &str, tasks: &Tasks, acts: &[Act], mut acknowledge: impl FnMut(&str)) {
    let mut ids = tasks.ids.clone();
    for (at, act) in acts.iter().enumerate() {
        if let Err(error) = perform(bench, &mut ids, act) {
            assert!(was_busy(&error), "{name}: {act:?}: {error}");
        }
        let text = format!("{name} has done {at}");
        let (id, said) = (tasks.ledger.clone(), text.clone());
        match bench.call(move |board| board.comment(&id, &said, None, &alice())) {
            Ok(_) => acknowledge(&text),
            Err(error) => assert!(was_busy(&error), "{name}: {error}"),
        }
    }
}

/// Asserts that the board is sound and has each acknowledged comment once.
fn check(bench: &Bench, ledger: &TaskId, acknowledged: impl IntoIterator<Item = String>) {
    bench.check();
    assert_eq!(check_board(&bench.path).unwrap(), Vec::<String>::new());
    let mut found = BTreeMap::new();
    for comment in bench.readers.with(|view| view.comments(ledger)).unwrap() {
        *found.entry(comment.body).or_insert(0) += 1;
    }
    for text in acknowledged {
        assert_eq!(found.get(&text), Some(&1), "{text}");
    }
}

fn some_tasks(bench: &Bench) -> Tasks {
    Tasks { ids: (0..4).map(|_| bench.ready()).collect(), ledger: bench.create(titled(LEDGER)).id }
}

const LEDGER: &str = "ledger";

proptest! {
    // The same histories meet in another order the next time, so a seed would prove nothing.
    #![proptest_config(ProptestConfig {
        cases: 12,
        max_shrink_iters: 50,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn histories_of_several_writers_keep_the_invariants_and_everything_acknowledged(
        histories in prop::collection::vec(prop::collection::vec(act(), 1..25), 2..5)
    ) {
        let bench = Bench::new();
        let tasks = some_tasks(&bench);
        // Two writers of one file; some of the threads share the first.
        let benches = [&bench, &bench.second_bench()];
        let gate = Barrier::new(histories.len());
        let told = thread::scope(|scope| {
            let threads: Vec<_> = histories
                .iter()
                .enumerate()
                .map(|(number, acts)| {
                    let (bench, tasks, gate) = (benches[usize::from(number == 1)], &tasks, &gate);
                    scope.spawn(move || {
                        let mut told = Vec::new();
                        gate.wait();
                        live(bench, &format!("thread {number}"), tasks, acts, |text| told.push(text.to_owned()));
                        told
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        check(&bench, &tasks.ledger, told);
    }
}

/// Calls `f` in `count` threads at once, half of them with each of two writers of a board.
fn at_once<T: Send>(bench: &Bench, count: usize, f: impl Fn(&Bench) -> T + Sync) -> Vec<T> {
    let benches = [bench, &bench.second_bench()];
    let gate = Barrier::new(count);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (f, gate, bench) = (&f, &gate, benches[number % 2]);
                scope.spawn(move || {
                    gate.wait();
                    f(bench)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn sixty_four_creators_with_one_key_make_one_task() {
    let bench = Bench::new();
    let created = at_once(&bench, 64, |bench| {
        loop {
            let new = NewTask { idempotency_key: Some("once".to_owned()), ..titled("keyed") };
            match bench.call(move |board| board.create(new, &alice())) {
                Ok(created) => return created,
                Err(error) => assert!(was_busy(&error), "{error}"),
            }
        }
    });
    assert_eq!(created.iter().filter(|one| !one.existing).count(), 1);
    assert_eq!(created.iter().map(|one| &one.task.id).collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(bench.stats().by_status.values().sum::<i64>(), 1);
}

#[test]
fn a_request_that_is_repeated_at_once_is_done_once_and_answered_alike() {
    let bench = Bench::new();
    let replies = at_once(&bench, 32, |bench| {
        loop {
            let (reply, answer) = mpsc::channel();
            bench.writer.submit_once(
                Request::new(Caller::for_actor(&alice()), "create", "one-request".parse().unwrap(), b"{}"),
                |board| board.create(titled("made once"), &alice()).map(|created| created.task.id),
                move |result| reply.send(result).unwrap(),
            );
            match answer.recv().unwrap() {
                Ok(id) => return id,
                Err(error) => assert!(was_busy(&error), "{error}"),
            }
        }
    });
    assert_eq!(replies.iter().collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(bench.stats().by_status.values().sum::<i64>(), 1);
}

/// Value: `<board> <file for the report> <number> <acts> <acts before it dies>`.
const VARIABLE: &str = "KERNEL_RIVAL";
const ACTS: usize = 40;

#[test]
#[ignore = "one of several processes: the test below starts it"]
fn a_process_that_writes() {
    let Ok(text) = env::var(VARIABLE) else { return };
    let [path, told, number, deadly]: [&str; 4] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (number, deadly): (u8, usize) = (number.parse().unwrap(), deadly.parse().unwrap());
    let clock = Arc::new(ManualClock::default());
    let path = Path::new(path);
    let tasks = Readers::open(path, clock.clone())
        .unwrap()
        .with(|view| Ok(view.tasks(&crate::Filter::default())?.tasks))
        .unwrap();
    // The other processes are at work already, and may have made or deleted some of these tasks.
    let (ledger, others): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| task.title == LEDGER);
    let tasks = Tasks {
        ids: others.into_iter().map(|task| task.id).collect(),
        ledger: ledger.into_iter().next().unwrap().id,
    };
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[number; 32]));
    let strategy = act();
    let mut file = fs::File::options().create(true).append(true).open(told).unwrap();
    let mut acknowledged = 0;
    let open =
        || Bench::at(path, clock.clone(), WriterOptions { clock: clock.clone(), ..WriterOptions::default() });
    let mut bench = open();
    for at in 0..ACTS {
        let act = strategy.new_tree(&mut runner).unwrap().current();
        live(&bench, &format!("process {number}.{at}"), &tasks, &[act], |text| {
            file.write_all(format!("{text}\n").as_bytes()).unwrap();
            acknowledged += 1;
            if acknowledged == deadly {
                kill_process(getpid(), Signal::KILL).unwrap();
            }
        });
        // Process 2 acts like a new program for each of its acts: it opens the board and closes it again.
        if number == 2 {
            drop(bench);
            bench = open();
        }
    }
}

#[test]
fn processes_that_open_close_and_die_lose_nothing_that_another_was_told() {
    let bench = Bench::new();
    let tasks = some_tasks(&bench);
    let told = |number: u8| bench.directory.path().join(format!("told-{number}"));
    let name = concat!(module_path!(), "::a_process_that_writes").split_once("::").unwrap().1;
    let begin = |number: u8| -> Child {
        let dies = if number == 0 { ACTS / 3 } else { usize::MAX };
        Command::new(env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, format!("{} {} {number} {dies}", bench.path.display(), told(number).display()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..4).map(begin).collect();
    for (number, mut child) in children.into_iter().enumerate() {
        let status = child.wait().unwrap();
        let as_meant = if number == 0 { status.signal() == Some(9) } else { status.success() };
        assert!(as_meant, "process {number}: {status}");
    }
    let lines = |number: u8| fs::read_to_string(told(number)).unwrap();
    let told: Vec<String> =
        (0..4).flat_map(|number| lines(number).lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(told.len() > ACTS, "{told:?}");
    check(&bench, &tasks.ledger, told);
}
