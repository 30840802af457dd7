//! End of a run, as its supervisor reports it, with the files that the run hands over. Nothing that a worker wrote can
//! make it fail.

use serde_json::json;

use super::attach::plain;
use super::charge::Cost;
use super::{Board, Record, SYSTEM, preview};
use crate::model::actor::Actor;
use crate::model::error::{Error, StorageKind};
use crate::model::event::EventKind;
use crate::model::id::{Profile, RunId};
use crate::model::note::NewAttachment;
use crate::model::outcome::{BlockKind, EndCause, Ending, Finished, Outcome};
use crate::model::quota::Bound;
use crate::model::run::Run;
use crate::model::state::{Change, Then};
use crate::model::verdict::Blocking;
use crate::rules::retry::{self, Decision};
use crate::store::attachments::Origin;

/// Number of lost artifacts that a comment lists. The events list all of them.
const NAMED: usize = 20;

/// Declared artifact that could not be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostArtifact {
    pub path: String,
    pub reason: String,
}

/// Files that were taken out of the workspace of a finished run.
#[derive(Clone, Debug, Default)]
pub struct Handed {
    /// Stored files, each with its declared path.
    pub kept: Vec<(String, NewAttachment)>,
    /// Artifacts that could not be stored.
    pub lost: Vec<LostArtifact>,
}

impl Board<'_> {
    /// Closes a run whose end is proven, stores the files that it hands over, and moves its task on as
    /// [`Board::finish_run`] does.
    ///
    /// A file that the board refuses is left out, with an `artifact_lost` event for each and one comment. An end that
    /// breaks a rule of the board is recorded in a bare form: the run gets the error, and its task is blocked. A second
    /// call for the same run returns the result of the first.
    ///
    /// # Errors
    /// Only errors that a later call may not meet: failures of the store. [`Error::NotFound`] for a run that does not
    /// exist.
    pub fn end_run(&mut self, id: RunId, ending: &Ending, handed: &Handed) -> Result<Finished, Error> {
        let run = self.expect_run(id)?;
        if run.ended_at.is_none() {
            self.keep_artifacts(&run, handed)?;
        }
        match self.attempt(|board| board.finish_run(id, ending.clone())) {
            Err(refusal) if is_refusal(&refusal) => self.end_bare(id, ending, &refusal),
            outcome => outcome,
        }
    }

    fn keep_artifacts(&mut self, run: &Run, handed: &Handed) -> Result<(), Error> {
        if handed.kept.is_empty() && handed.lost.is_empty() {
            return Ok(());
        }
        let task = self.expect_task(&run.task_id)?;
        let system = Actor::system();
        let by = run.profile.as_ref().map_or("worker", Profile::as_str);
        let worker = Actor::worker(by, run.id, run.task_id.clone(), task.tenant.clone());
        let mut lost = handed.lost.clone();
        for (path, file) in &handed.kept {
            let origin = Origin { by, run: Some(run.id), artifact: Some(path) };
            let cost = Cost::one(Bound::Attachments).text([file.filename.as_str()]).file(file.size);
            let stored = plain(&file.filename).and_then(|()| {
                self.attempt(|board| {
                    board.charge(&worker, cost)?;
                    board.add_file(&task, file, &origin, &system.label())
                })
            });
            match stored {
                Ok(_) => {}
                Err(refusal) if is_refusal(&refusal) => {
                    lost.push(LostArtifact { path: path.clone(), reason: refusal.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        for LostArtifact { path, reason } in &lost {
            let payload = json!({ "artifact": preview(Some(path)), "reason": preview(Some(reason)) });
            self.append(&task, Some(run.id), EventKind::ArtifactLost, payload, &system.label())?;
        }
        self.comment(&task.id, &lost_artifacts_text(&lost), None, &system).map(drop)
    }

    /// Records the end of a run in a bare form, after the board refused the reported end: only with facts about the
    /// process. The task is blocked for a person. The verdict stays on the run.
    fn end_bare(&mut self, id: RunId, ending: &Ending, refusal: &Error) -> Result<Finished, Error> {
        let run = self.expect_run(id)?;
        let from = self.state_row(&run.task_id)?;
        let error = format!("its end could not be recorded as reported: {refusal}");
        let then = Then::Blocked(BlockKind::GaveUp);
        let decision =
            Decision { error: Some(error.clone()), ..retry::plain(Outcome::Lost, then, from.failures) };
        let payload = json!({ "outcome": decision.outcome, "error": error, "verdict": run.verdict });
        let blocking = Blocking { kind: BlockKind::GaveUp, reason: Some(error), ..Blocking::default() };
        let record = Record::new(EventKind::Lost, payload, SYSTEM).in_run(id).blocking(&blocking);
        let change = Change::Ended { run: id, outcome: decision.outcome, then: decision.then };
        let to = self.shift(&run.task_id, &from, change, record)?;
        let bare = Ending {
            exit_code: ending.exit_code,
            signal: ending.signal,
            core_dumped: ending.core_dumped,
            usage: ending.usage.clone(),
            ..Ending::new(EndCause::ShimKilled)
        };
        let finished = Finished::new(&run.task_id, to.status(), decision.outcome);
        self.close(&run, &decision, &bare, &finished, self.now())?;
        self.charge_mission(&run, self.now().since(run.started_at), 0)?;
        self.drop_consults_of(id)?;
        self.tx.forget_usage(id)?;
        Ok(finished)
    }
}

/// Returns true if the error concerns the written data and not the store: the same write would fail again in the same
/// way.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Conflict { .. }
        | Error::Illegal { .. }
        | Error::Invalid { .. }
        | Error::Forbidden { .. }
        | Error::Exhausted { .. } => true,
        Error::Storage { kind, .. } => *kind == StorageKind::Constraint,
        Error::NotFound { .. } | Error::Writer { .. } => false,
    }
}

/// Returns the comment about lost artifacts, short for any number of artifacts and any length of their paths.
fn lost_artifacts_text(lost: &[LostArtifact]) -> String {
    let short = |text: &str| {
        let mut cut: String = text.chars().take(200).collect();
        if cut.len() < text.len() {
            cut.push('…');
        }
        cut
    };
    let mut text = "Not kept, or not as the run left it:\n".to_owned();
    for LostArtifact { path, reason } in lost.iter().take(NAMED) {
        text.push_str(&["- `", &short(path), "`: ", &short(reason), "\n"].concat());
    }
    if let Some(more) = lost.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&["and ", &more.to_string(), " more: see the events `artifact_lost`\n"].concat());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits;
    use crate::testing::{Bench, alice, digest, titled};
    use crate::{EventFilter, Handoff, NewTask, Quotas, SharedQuotas, Status, TaskId, WriterOptions};

    fn file(name: &str) -> NewAttachment {
        NewAttachment {
            filename: name.to_owned(),
            content_type: None,
            sha256: digest(),
            size: 3,
            author: None,
        }
    }

    fn ended(bench: &Bench, task: &TaskId, handed: Handed) -> Finished {
        let run = bench.start(task);
        let id = task.clone();
        bench
            .call(move |board| {
                board.complete(&id, Handoff::default(), None, &alice())?;
                board.end_run(run, &Ending::new(EndCause::Exited { code: 0 }), &handed)
            })
            .unwrap()
    }

    fn lost(bench: &Bench, task: &TaskId) -> Vec<crate::Event> {
        let kinds = vec!["artifact_lost".to_owned()];
        let filter = EventFilter { task: Some(task.clone()), kinds, limit: 1000, ..EventFilter::default() };
        bench.readers.with(|view| view.events(&filter)).unwrap()
    }

    #[test]
    fn a_hundred_long_artifacts_that_are_lost_do_not_keep_a_run_from_its_end() {
        let bench = Bench::new();
        let task = bench.ready();
        let one = |n: usize| LostArtifact {
            path: format!("{n}{}", "x".repeat(limits::WORD - 10)),
            reason: "it does not exist".to_owned(),
        };
        let handed = Handed { kept: Vec::new(), lost: (0..100).map(one).collect() };
        assert_eq!(ended(&bench, &task, handed).status, Status::Done);
        assert_eq!(lost(&bench, &task).len(), 100);
        let comments = bench.readers.with(|view| view.comments(&task)).unwrap();
        assert!(comments[0].body.ends_with("and 80 more: see the events `artifact_lost`\n"));
        bench.check();
    }

    #[test]
    fn an_artifact_beyond_the_limit_of_a_task_is_lost_and_said_and_the_run_ends() {
        let bench = Bench::new();
        let task = bench.ready();
        let id = task.clone();
        bench
            .call(move |board| {
                (0..limits::ATTACHMENTS)
                    .try_for_each(|n| board.attach(&id, &file(&format!("f{n}")), &alice()).map(drop))
            })
            .unwrap();
        let handed = Handed { kept: vec![("out.md".to_owned(), file("out.md"))], lost: Vec::new() };
        assert_eq!(ended(&bench, &task, handed).outcome, Outcome::Completed);
        let events = lost(&bench, &task);
        let payload = events[0].payload.as_ref().unwrap();
        assert_eq!(payload["artifact"], "out.md");
        assert!(payload["reason"].as_str().unwrap().contains("the limit of a task"), "{payload}");
        bench.check();
    }

    /// Files that a run hands over are charged like attachments, to the run and to its tenant.
    #[test]
    fn artifacts_are_charged_and_those_beyond_a_bound_are_lost_and_said_and_the_run_ends() {
        for (bound, limit) in [
            (Bound::Attachments, 2),
            (Bound::AttachmentBytes, 7),
            // The task is an entry of its tenant, and has a title of one byte.
            (Bound::TenantEntries, 3),
            (Bound::TenantBytes, 10),
        ] {
            let quotas = SharedQuotas::new(Quotas::default().with(bound, limit));
            let bench = Bench::with(|options| WriterOptions { quotas: quotas.clone(), ..options });
            let tenant = Some("acme".parse().unwrap());
            let task = bench.create(NewTask { tenant, ..titled("t") }).id;
            let one = |name: &str| (name.to_owned(), file(name));
            let handed = Handed { kept: vec![one("a"), one("b"), one("c")], lost: Vec::new() };

            assert_eq!(ended(&bench, &task, handed).status, Status::Done, "{bound}");

            let events = lost(&bench, &task);
            assert_eq!(events.len(), 1, "{bound}: {events:?}");
            let payload = events[0].payload.as_ref().unwrap();
            assert_eq!(payload["artifact"], "c", "{bound}");
            assert!(payload["reason"].as_str().unwrap().starts_with(bound.as_str()), "{payload}");
            bench.check();
        }
    }

    #[test]
    fn an_artifact_whose_name_is_none_is_lost_and_the_run_ends() {
        let bench = Bench::new();
        let task = bench.ready();
        let handed = Handed { kept: vec![("a".to_owned(), file("a\u{1}b"))], lost: Vec::new() };
        assert_eq!(ended(&bench, &task, handed).status, Status::Done);
        assert_eq!(lost(&bench, &task).len(), 1);
    }
}
