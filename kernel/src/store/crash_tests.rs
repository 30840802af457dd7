//! Crash tests: a process dies before any one of its SQL statements. Each write is there whole or not at all, and its
//! repeat is right.
//!
//! The process is this test binary again. Its environment names a group of a fixed history and the number of a statement.
//! Each group starts with the board that the dead process of the previous group left, log included.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{env, fs, thread};

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::testing::{Bench, alice, gated, start, titled};
use crate::{
    Actor, BlockKind, Blocking, Board, Caller, Destination, Detach, Edit, EndCause, Ending, Error,
    FailPoints, Force, Handoff, ManualClock, NewAttachment, NewTask, OnCleanExit, Placement, Request, RunId,
    SeededEntropy, Start, TaskId, Writer, WriterOptions, check_board, create_board,
};

/// Write of the history, with the number of its group.
type Write = fn(&mut Board<'_>, u8) -> Result<Value, Error>;

/// Groups of writes. Each group is one transaction.
const HISTORY: [&[Write]; 14] = [
    &[
        |board, _| create(board, "parent", &[], |new| new.idempotency_key = Some("once".to_owned())),
        |board, _| create(board, "child", &["parent"], |_| {}),
        |board, _| create(board, "gated", &[], |new| new.approval = gated()),
    ],
    &[
        |board, _| create(board, "again", &[], |new| new.idempotency_key = Some("once".to_owned())),
        |board, _| {
            let at_work = crate::AtWork::TakeBack;
            board.link(&id(board, "gated"), &id(board, "child"), at_work, &alice()).map(|_| json!(null))
        },
        |board, _| to_json(board.comment(&id(board, "parent"), "a word", None, &alice())),
    ],
    &[begin_parent],
    &[
        |board, _| {
            let place = Placement { path: "/w".to_owned(), branch: None, worker_uid: Some(70_000) };
            board.record_workspace(open(board, "parent"), &place).map(|()| json!(null))
        },
        |board, _| board.record_spawned(open(board, "parent"), 77, &json!({ "uid": 1 })).map(|_| json!(null)),
        |board, _| to_json(board.heartbeat(&id(board, "parent"), Some("half"), &bob(board, "parent"))),
    ],
    &[|board, _| {
        let handoff = Handoff { summary: Some("found it".to_owned()), ..Handoff::default() };
        to_json(board.complete(&id(board, "parent"), handoff, None, &bob(board, "parent")))
    }],
    &[|board, _| end(board, "parent", EndCause::Exited { code: 0 })],
    &[
        |board, _| board.unlink(&id(board, "gated"), &id(board, "child"), &alice()).map(|()| json!(null)),
        |board, _| to_json(board.approve(&id(board, "gated"), None, None, &Actor::person("carol"))),
        |board, number| begin(board, "child", number),
    ],
    &[
        |board, _| end(board, "child", EndCause::Exited { code: 1 }),
        |board, _| {
            to_json(
                board
                    .claim(&id(board, "gated"), &crate::ClaimTerms::lasting(Duration::from_mins(5)), &alice())
                    .map(|claimed| claimed.run.id),
            )
        },
        |board, _| to_json(board.reclaim(&id(board, "gated"), Some("mine"), &alice())),
    ],
    &[
        |board, _| {
            let kind = BlockKind::NeedsInput;
            to_json(board.block(
                &id(board, "gated"),
                Blocking { kind, ..Blocking::default() },
                None,
                &alice(),
            ))
        },
        |board, _| to_json(board.answer(&id(board, "gated"), "yes", &alice())),
        |board, number| begin(board, "gated", number),
    ],
    &[
        |board, _| {
            to_json(board.request_review(
                &id(board, "gated"),
                Handoff::default(),
                None,
                None,
                &bob(board, "gated"),
            ))
        },
        |board, _| end(board, "gated", EndCause::Exited { code: 0 }),
        |board, _| {
            to_json(board.request_changes(&id(board, "gated"), "not yet", None, &Actor::person("carol")))
        },
    ],
    &[
        |board, _| {
            let at = board.now().after(Duration::from_secs(1));
            to_json(board.schedule(&id(board, "gated"), at, None, &alice()))
        },
        |board, _| to_json(board.promote(&id(board, "gated"), None, Force::No, &alice())),
        |board, _| to_json(board.move_task(&id(board, "gated"), Destination::Triage, &alice())),
    ],
    &[
        |board, _| to_json(board.wake_due()),
        |board, _| to_json(board.assign(&id(board, "gated"), Some("eve".parse().unwrap()), &alice())),
        |board, _| {
            let edit = Edit { body: Some("more to read".to_owned()), ..Edit::default() };
            to_json(board.edit(&id(board, "child"), &edit, &alice()))
        },
    ],
    &[
        |board, _| {
            let file = NewAttachment {
                filename: "a.txt".to_owned(),
                sha256: crate::testing::digest(),
                author: None,
                content_type: None,
                size: 7,
            };
            to_json(board.attach(&id(board, "parent"), &file, &alice()))
        },
        |board, _| to_json(board.archive(&id(board, "parent"), Detach::Refuse, &alice())),
        |board, _| to_json(board.allocate_uid(&id(board, "child"), 70_000, 70_009)),
    ],
    &[
        |board, _| to_json(board.delete(&id(board, "parent"), &alice())),
        |board, _| to_json(board.forget_requests(board.now())),
        |board, _| create(board, "last", &["child"], |_| {}),
    ],
];

fn create(
    board: &mut Board<'_>,
    title: &str,
    parents: &[&str],
    change: fn(&mut NewTask),
) -> Result<Value, Error> {
    let parents = parents.iter().map(|title| id(board, title)).collect();
    let mut new = NewTask { parents, ..titled(title) };
    change(&mut new);
    to_json(board.create(new, &alice()).map(|created| created.task))
}

fn begin_parent(board: &mut Board<'_>, number: u8) -> Result<Value, Error> {
    let uid = board.allocate_uid(&id(board, "parent"), 70_000, 70_009)?;
    let run = begin(board, "parent", number)?;
    Ok(json!([run, uid]))
}

fn begin(board: &mut Board<'_>, title: &str, number: u8) -> Result<Value, Error> {
    let start = Start { token_hash: [number; 32], ..start(&ManualClock::default()) };
    to_json(board.start_run(&id(board, title), start))
}

fn end(board: &mut Board<'_>, title: &str, cause: EndCause) -> Result<Value, Error> {
    let mut ending = Ending::new(cause);
    ending.result_policy = OnCleanExit::Complete { summary: None };
    board.finish_run(open(board, title), ending).map(|finished| json!(finished.status.to_string()))
}

/// Returns the result of a write, as the reply of its request.
fn to_json<T: std::fmt::Debug>(result: Result<T, Error>) -> Result<Value, Error> {
    result.map(|value| json!(format!("{value:?}")))
}

fn id(board: &Board<'_>, title: &str) -> TaskId {
    let text: String =
        board.tx.conn.query_row("SELECT id FROM tasks WHERE title = ?1", [title], |row| row.get(0)).unwrap();
    text.parse().unwrap()
}

fn open(board: &Board<'_>, title: &str) -> RunId {
    board.expect_task(&id(board, title)).unwrap().current_run_id.unwrap()
}

fn bob(board: &Board<'_>, title: &str) -> Actor {
    Actor::worker("bob", open(board, title), id(board, title), None)
}

/// Returns a directory in memory. The death of a process loses none of its writes there, on any disk.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory).unwrap() } else { TempDir::new().unwrap() }
}

/// Copies a board and its log, which no process has open. The index of the log is created anew, as after a crash.
fn copy(from: &Path) -> TempDir {
    let to = directory();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_name() != "board.db-shm" && entry.file_name() != TOLD {
            fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
        }
    }
    to
}

/// Returns the time and the randomness of a group.
fn options(group: usize, fail_point: FailPoints) -> (Arc<ManualClock>, WriterOptions) {
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_mins(group as u64));
    let entropy = Arc::new(SeededEntropy::new(group as u64));
    let options = WriterOptions { clock: clock.clone(), entropy, fail_point, ..WriterOptions::default() };
    (clock, options)
}

fn request(group: usize, at: usize) -> Request {
    Request::new(Caller::for_actor(&alice()), "write", format!("group-{group}-{at}").parse().unwrap(), b"{}")
}

/// Performs a group as one transaction. `armed` is called before it, `told` with each reply.
fn perform(
    writer: &Writer,
    group: usize,
    armed: impl FnOnce() + Send + 'static,
    on_reply: fn(usize, &Value),
) {
    let (running, has_started) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    writer.submit(
        move |_| {
            running.send(()).unwrap();
            // The job waits until the group is queued behind it.
            released.recv().unwrap();
            armed();
            Ok(())
        },
        |_| {},
    );
    has_started.recv().unwrap();
    let (acknowledge, acknowledged) = mpsc::channel();
    for (at, write) in HISTORY[group].iter().enumerate() {
        let acknowledge = acknowledge.clone();
        let number = u8::try_from(group).unwrap();
        writer.submit_once(
            request(group, at),
            move |board| write(board, number),
            move |result| {
                on_reply(at, &result.unwrap_or_else(|error| panic!("{group}.{at}: {error}")));
                acknowledge.send(()).unwrap();
            },
        );
    }
    drop(acknowledge);
    release.send(()).unwrap();
    assert_eq!(acknowledged.iter().count(), HISTORY[group].len(), "a write of group {group} failed");
}

fn die() {
    kill_process(getpid(), Signal::KILL).unwrap();
}

/// Number of statements that may still begin; negative as long as they are not counted.
static LEFT: AtomicI64 = AtomicI64::new(-1);

fn at_statement(_: TraceEvent<'_>) {
    if LEFT.load(Ordering::Relaxed) >= 0 && LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
        die();
    }
}

/// Point at which a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// Before this statement, counted from the end of the job that holds up the group.
    Statement(i64),
    /// Between the commit and the first reply.
    Committed,
    /// After all replies.
    Through,
}

impl Death {
    fn parse(text: &str) -> Self {
        match text {
            "committed" => Death::Committed,
            "through" => Death::Through,
            number => Death::Statement(number.parse().unwrap()),
        }
    }

    fn text(self) -> String {
        match self {
            Death::Statement(number) => number.to_string(),
            Death::Committed => "committed".to_owned(),
            Death::Through => "through".to_owned(),
        }
    }
}

const VARIABLE: &str = "KERNEL_CRASH";
/// File of the replies that the process has reported.
const TOLD: &str = "told";

#[test]
#[ignore = "the process that dies: the other test starts it"]
fn a_process_that_dies() {
    let Ok(text) = env::var(VARIABLE) else { return };
    let [dir, group, death]: [&str; 3] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (group, death) = (group.parse().unwrap(), Death::parse(death));
    env::set_current_dir(dir).unwrap();
    // The job that holds up the group commits first.
    let armed = Arc::new(AtomicBool::new(false));
    let commits = AtomicUsize::new(0);
    let is_armed = Arc::clone(&armed);
    let point = FailPoints::new(move |point| {
        let counts = point == "committed" && is_armed.load(Ordering::Relaxed);
        if counts && commits.fetch_add(1, Ordering::Relaxed) == 1 && death == Death::Committed {
            die();
        }
    });
    let writer = Writer::open(Path::new("board.db"), options(group, point).1).unwrap();
    writer
        .call(|board| {
            board.tx.conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(at_statement));
            Ok(())
        })
        .unwrap();
    let arm = move || {
        armed.store(true, Ordering::Relaxed);
        if let Death::Statement(number) = death {
            LEFT.store(number, Ordering::Relaxed);
        }
    };
    perform(&writer, group, arm, |at, value| {
        let mut file = fs::File::options().create(true).append(true).open(TOLD).unwrap();
        file.write_all(format!("{at} {value}\n").as_bytes()).unwrap();
    });
    // The board is not closed, so that its log stays as it is.
    die();
}

/// Runs a process that performs a group over the board in a directory, and returns the replies that it has reported.
fn run(dir: &Path, group: usize, death: Death) -> Vec<String> {
    let name = concat!(module_path!(), "::a_process_that_dies");
    let name = name.split_once("::").unwrap().1;
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, format!("{} {group} {}", dir.display(), death.text()))
        .output()
        .unwrap();
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(9), "{group} {death:?}: {}", said());
    let printed_ids = fs::read_to_string(dir.join(TOLD)).unwrap_or_default();
    printed_ids.lines().map(str::to_owned).collect()
}

/// Group with the board before and after it, and its replies.
struct Group {
    number: usize,
    before: TempDir,
    state_before: String,
    state_after: String,
    replies: Vec<String>,
}

/// Returns the content of a board.
fn state(dir: &Path, group: usize) -> String {
    let copy = copy(dir);
    let (clock, options) = options(group, FailPoints::default());
    Bench::over(copy, clock, options).dump()
}

/// Examines the board that a process has left, and repeats its requests.
fn look(group: &Group, death: Death, dir: TempDir, printed_ids: &[String]) {
    let at = format!("group {} {death:?}", group.number);
    let (clock, options) = options(group.number, FailPoints::default());
    let bench = Bench::over(dir, clock, options);
    assert_eq!(check_board(&bench.path).unwrap(), Vec::<String>::new(), "{at}");
    bench.check();
    let found = bench.dump();
    let whole = found == group.state_after;
    assert!(whole || found == group.state_before, "{at}: in part:\n{found}\n{}", group.state_after);
    assert!(whole || printed_ids.is_empty(), "{at}: acknowledged and lost: {printed_ids:?}");
    match death {
        Death::Statement(_) => {}
        Death::Committed => assert!(whole && printed_ids.is_empty(), "{at}"),
        Death::Through => assert_eq!(printed_ids, group.replies, "{at}"),
    }
    // An uncommitted request is done now for the first time. A committed request must not be done twice.
    let replies = replies(&bench, group.number);
    assert_eq!(replies, group.replies, "{at}");
    assert_eq!(bench.dump(), group.state_after, "{at}: repeated");
}

fn replies(bench: &Bench, group: usize) -> Vec<String> {
    let write = |at: usize| {
        let (reply, answer) = mpsc::channel();
        let number = u8::try_from(group).unwrap();
        bench.writer.submit_once(
            request(group, at),
            move |board| HISTORY[group][at](board, number),
            move |result| reply.send(result).unwrap(),
        );
        format!("{at} {}", answer.recv().unwrap().unwrap())
    };
    (0..HISTORY[group].len()).map(write).collect()
}

/// Performs the whole history in processes that die only at the end.
fn groups() -> Vec<Group> {
    let mut current = directory();
    let clock = ManualClock::default();
    create_board(&current.path().join("board.db"), &"test".parse().unwrap(), &clock, &SeededEntropy::new(99))
        .unwrap();
    let mut groups = Vec::new();
    for (number, writes) in HISTORY.iter().enumerate() {
        let next = copy(current.path());
        let replies = run(next.path(), number, Death::Through);
        assert_eq!(replies.len(), writes.len());
        let (state_before, state_after) = (state(current.path(), number), state(next.path(), number));
        assert_ne!(state_before, state_after);
        groups.push(Group { number, before: current, state_before, state_after, replies });
        current = next;
    }
    groups
}

#[test]
fn a_process_that_dies_before_any_statement_leaves_each_write_whole_or_not_at_all() {
    let groups = groups();
    let next = AtomicUsize::new(0);
    let statements = AtomicUsize::new(0);
    let work = || {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            let die = |death: Death| {
                let dir = copy(group.before.path());
                let printed_ids = run(dir.path(), group.number, death);
                look(group, death, dir, &printed_ids);
                printed_ids.len()
            };
            die(Death::Committed);
            for number in 0.. {
                if die(Death::Statement(number)) > 0 {
                    break;
                }
                statements.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
    // Each write reads, changes and logs. If the trace missed its statements, the processes would not die between them.
    let writes: usize = HISTORY.iter().map(|group| group.len()).sum();
    let statements = statements.into_inner();
    assert!(statements > 8 * writes, "{statements} statements of {writes} writes");
}
