//! News for a worker whose session continues: the changes of its task since its last run.

use super::page::{Page, Rank};
use super::{
    Context, ContextLimits, Material, PlaceOf, age, attempts, goal, inline, notes, parents, review, thread,
};
use crate::model::outcome::Outcome;
use crate::model::run::Run;

/// Builds the news since the run `last` began. The material has a body only if the body was changed.
pub(crate) fn news(
    mut material: Material,
    last: &Run,
    limits: ContextLimits,
    place: &PlaceOf<'_>,
) -> Context {
    material.comments.retain(|comment| {
        comment.created_at >= last.started_at && comment.run_id.is_none_or(|run| run != last.id)
    });
    material.parents.retain(|parent| {
        let ended = parent.completed.as_ref().and_then(|run| run.ended_at);
        ended.is_some_and(|ended| ended >= last.started_at)
    });
    let task = &material.task;
    let mut page = Page::default();
    let outcome = last.outcome.map_or("open", Outcome::as_str);
    let when = age(material.now, last.ended_at.unwrap_or(last.started_at));
    let head = format!(
        "# Task {} goes on: {}\n\nYou have worked on it in this session. Your last run on it ended {when}: {outcome}. This is a new run, \
         in the same workspace. Look at what is there, and go on. What is new follows.\n",
        task.id,
        inline(&task.title),
    );
    page.section("");
    page.part(Rank::Task, "the head", head);
    review(task, material.purpose, &mut page);
    goal(task, material.purpose, &mut page);
    if let Some(body) = &task.body {
        let body = page.cut(body, limits.body, "the body");
        page.section("\n## The task was changed\n\n");
        page.part(Rank::Task, "the body", body + "\n");
    }
    // A worker writes notes when it blocks its task.
    if material.runs.iter().any(|run| run.id >= last.id && run.outcome == Some(Outcome::Blocked)) {
        notes(task, limits, &mut page);
    }
    thread(&material, limits, &mut page);
    parents(&material, limits, place, &mut page);
    // The last run, and later findings about its work: a failed check, a review.
    attempts(&material, last.id, limits, &mut page);
    page.finish(limits.total)
}
