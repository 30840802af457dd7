//! Part of a context for the worker of a proposal: the subject, the form of the result, and the profiles that it may
//! name.

use super::page::{Page, Rank};
use super::{Brief, ContextLimits, inline, quote};

/// Adds the instructions for a proposal.
pub(super) fn instructions(brief: &Brief, limits: ContextLimits, page: &mut Page) {
    let Brief { proposal, subject, facts } = brief;
    let kind = proposal.kind;
    let mut text = format!(
        "\n## What to return\n\n{} Change nothing yourself: end with\n\n    supervisor complete --metadata '<JSON>'\n\n\
         or the same with your tools, where the JSON has this shape and no other fields:\n\n    {}\n\n\
         What does not fit is refused with the reason, and the run goes on. If you lack an answer that only a person has, block with a \
         question.\n",
        kind.order(),
        kind.shape()
    );
    if proposal.staff.is_empty() {
        text.push_str("\nThere are no profiles to name: leave every `assignee` out.\n");
    } else {
        text.push_str("\nThe profiles that an `assignee` may name:\n\n");
    }
    for (name, about) in &proposal.staff {
        text.extend(["- `", name.as_str(), "`: ", &inline(about), "\n"]);
    }
    page.section("");
    page.part(Rank::Task, "what to return", text);
    let mut text = format!("\n## The task that it is for: {}\n\n{}", subject.id, quote(&subject.title));
    if let Some(body) = &subject.body {
        let body = page.cut(body, limits.body, "the body of the task that it is for");
        text.push_str(">\n");
        text.push_str(&quote(&body));
    }
    text.push_str("\n`supervisor show ");
    text.push_str(subject.id.as_str());
    text.push_str("` shows its comments.\n");
    page.part(Rank::Task, "the task that it is for", text);
    page.section("\n## Its facts\n\n");
    for fact in facts {
        page.part(Rank::Parents, "a fact of the mission", quote(fact));
    }
}
