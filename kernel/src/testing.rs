//! Test bench: a board in a temporary directory, with time and randomness under the test's control.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::{
    Actor, Approval, ApprovalState, Board, Clock, EndCause, Ending, Error, Finished, Limits, ManualClock,
    NewTask, Readers, RunId, SeededEntropy, Start, Task, TaskId, Writer, WriterOptions, create_board,
};

/// Mark of the runs of a test.
pub(crate) const NONCE: &str = "6f1c1b7e-3c55-4a53-9d2e-0c4a64c1b2f0";

/// Returns the digest of some content.
pub(crate) fn digest() -> crate::Digest {
    "ab".repeat(32).parse().unwrap()
}

pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) writer: Writer,
    pub(crate) readers: Readers,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|options| options)
    }

    pub(crate) fn with(change: impl FnOnce(WriterOptions) -> WriterOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("board.db");
        let clock = Arc::new(ManualClock::default());
        let entropy = Arc::new(SeededEntropy::new(7));
        create_board(&path, &"test".parse().unwrap(), &*clock, &*entropy).unwrap();
        let options = WriterOptions { clock: clock.clone(), entropy, ..WriterOptions::default() };
        Self::over(directory, clock, change(options))
    }

    /// Opens the existing board in a directory.
    pub(crate) fn over(directory: TempDir, clock: Arc<ManualClock>, options: WriterOptions) -> Self {
        let path = directory.path().join("board.db");
        let writer = Writer::open(&path, options).unwrap();
        let readers = Readers::open(&path, clock.clone()).unwrap();
        Self { directory, path, clock, writer, readers }
    }

    /// Opens a board that another bench has open as well.
    pub(crate) fn at(path: &Path, clock: Arc<ManualClock>, options: WriterOptions) -> Self {
        let writer = Writer::open(path, options).unwrap();
        let readers = Readers::open(path, clock.clone()).unwrap();
        Self { directory: tempfile::tempdir().unwrap(), path: path.to_owned(), clock, writer, readers }
    }

    /// Opens another writer of the same board, like a second program.
    pub(crate) fn second_bench(&self) -> Self {
        let entropy = Arc::new(SeededEntropy::new(8));
        let options = WriterOptions { clock: self.clock.clone(), entropy, ..WriterOptions::default() };
        Self::at(&self.path, self.clock.clone(), options)
    }

    /// Returns the content of the board's tables as text.
    pub(crate) fn dump(&self) -> String {
        let mut out = Vec::new();
        self.readers.with(|view| view.export(&crate::Blobs::of_board(&self.path), None, &mut out)).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Runs a write and waits for its commit.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Board<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.writer.call(job)
    }

    pub(crate) fn create(&self, new: NewTask) -> Task {
        self.call(move |board| board.create(new, &alice())).unwrap().task
    }

    /// Creates a task that is ready for the profile `bob`.
    pub(crate) fn ready(&self) -> TaskId {
        self.create(titled("work")).id
    }

    pub(crate) fn child_of(&self, parents: &[&TaskId]) -> TaskId {
        let parents = parents.iter().map(|id| (*id).clone()).collect();
        self.create(NewTask { parents, ..titled("child") }).id
    }

    pub(crate) fn start(&self, id: &TaskId) -> RunId {
        let id = id.clone();
        let start = start(&*self.clock);
        self.call(move |board| board.start_run(&id, start)).unwrap().id
    }

    pub(crate) fn finish(&self, run: RunId, cause: EndCause) -> Finished {
        self.call(move |board| board.finish_run(run, Ending::new(cause))).unwrap()
    }

    pub(crate) fn task(&self, id: &TaskId) -> Task {
        self.readers.with(|view| view.expect_task(id)).unwrap()
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare path is not general over lifetimes"
    )]
    pub(crate) fn wake(&self) -> Vec<TaskId> {
        self.call(|board| board.wake_due()).unwrap()
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare path is not general over lifetimes"
    )]
    pub(crate) fn next_wake(&self) -> Option<crate::Timestamp> {
        self.readers.with(|view| view.next_wake()).unwrap()
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the bare path is not general over lifetimes"
    )]
    pub(crate) fn runs_to_stop(&self) -> Vec<crate::Run> {
        self.readers.with(|view| view.runs_to_stop()).unwrap()
    }

    pub(crate) fn stats(&self) -> crate::Stats {
        self.readers.with(|view| view.stats(None)).unwrap()
    }

    /// Returns the first candidates, up to `most`, when each is taken.
    pub(crate) fn offered(&self, most: usize, accounts: &crate::Accounts) -> Vec<crate::Candidate> {
        let mut found = Vec::new();
        let offer = |view: &crate::View<'_>| {
            view.offer(accounts, &checker(), |candidate| {
                if found.len() == most {
                    return crate::CandidateChoice::Left(crate::Reach::Everything);
                }
                found.push(candidate.clone());
                crate::CandidateChoice::Taken
            })
        };
        self.readers.with(offer).unwrap();
        found
    }

    /// Asserts the invariants of a board.
    pub(crate) fn check(&self) {
        self.readers
            .with(|view| {
                assert_eq!(view.replay()?, Vec::new(), "the replayed log differs");
                assert_eq!(view.tx.miscounts(), 0, "the tasks, or what a tenant keeps, are counted wrong");
                let open: Vec<_> = view.open_runs()?.into_iter().map(|run| (run.task_id, run.id)).collect();
                let tasks = view.tasks(&crate::Filter { limit: 10_000, ..crate::Filter::default() })?.tasks;
                for (task, why) in tasks.iter().zip(view.waiting_all(&tasks, &crate::Accounts::new())?) {
                    let over = [crate::Status::Running, crate::Status::Done, crate::Status::Archived];
                    let silent = over.contains(&task.status)
                        || (task.status == crate::Status::Ready && task.assignee.is_some());
                    assert!(silent || why.is_some(), "{} cannot say why it is {}", task.id, task.status);
                    if let Some(why) = why {
                        assert!(!why.text.trim().is_empty() && !why.text.contains('\n'), "{:?}", why.text);
                    }
                }
                for task in tasks {
                    let run = open.iter().find(|(id, _)| *id == task.id).map(|(_, run)| *run);
                    assert_eq!(task.current_run_id, run, "{} {}", task.id, task.status);
                    if task.status == crate::Status::Ready {
                        assert_eq!(
                            view.open_parents(&task.id)?,
                            Vec::new(),
                            "{} is ready too early",
                            task.id
                        );
                    }
                    if task.status == crate::Status::Todo {
                        assert!(!view.open_parents(&task.id)?.is_empty(), "{} is stuck in todo", task.id);
                    }
                }
                Ok(())
            })
            .unwrap();
    }
}

pub(crate) fn alice() -> Actor {
    Actor::person("alice")
}

/// Returns the profile that runs checks.
pub(crate) fn checker() -> crate::Profile {
    "sh".parse().unwrap()
}

/// Returns a task with a check.
pub(crate) fn checked(command: &str, max_checks: Option<u32>) -> NewTask {
    NewTask { check: crate::Check { command: Some(command.to_owned()), max_checks }, ..titled("proved") }
}

pub(crate) fn titled(title: &str) -> NewTask {
    NewTask { title: title.to_owned(), assignee: Some("bob".parse().unwrap()), ..NewTask::default() }
}

pub(crate) fn limited(max_retries: u32) -> Limits {
    Limits { max_retries: Some(max_retries), ..Limits::default() }
}

pub(crate) fn gated() -> Approval {
    Approval { state: Some(ApprovalState::Required), ..Approval::default() }
}

pub(crate) fn start(clock: &dyn Clock) -> Start {
    Start {
        profile: None,
        claim_lock: "host:1:x".to_owned(),
        token_hash: {
            let mut hash = [0; 32];
            rand::Rng::fill_bytes(&mut rand::rng(), &mut hash);
            hash
        },
        nonce: NONCE.to_owned(),
        policy: None,
        account: None,
        log_path: None,
        max_runtime: None,
        boot_id: clock.boot_id(),
        deadline_boottime: None,
        takes_messages: false,
    }
}
