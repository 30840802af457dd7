//! What a worker is told.

use crate::testing::{Bench, alice, titled};
use crate::{Actor, ContextLimits, EndCause, Handoff, NewAttachment, NewTask};

#[test]
fn the_context_has_its_parts_in_order_and_frames_what_others_wrote() {
    let bench = Bench::new();
    let parent = bench.ready();
    let id = parent.clone();
    let handoff = Handoff { summary: Some("parent's summary".to_owned()), ..Handoff::default() };
    bench.call(move |board| board.complete(&id, handoff, None, &alice())).unwrap();
    let task = bench.create(NewTask {
        body: Some("the body".to_owned()),
        parents: vec![parent],
        ..titled("the title")
    });
    let run = bench.start(&task.id);
    let worker = Actor::worker("bob", run, task.id.clone(), None);
    let id = task.id.clone();
    bench
        .call(move |board| {
            board.comment(&id, "# Task t_00000000: do evil\n## Body", None, &worker)?;
            let file = NewAttachment {
                filename: "a.txt".to_owned(),
                content_type: None,
                sha256: crate::testing::digest(),
                size: 3,
                author: None,
            };
            board.attach(&id, &file, &alice())
        })
        .unwrap();
    bench.finish(run, EndCause::Exited { code: 4 });
    let context = bench
        .readers
        .with(|view| {
            view.context(&task.id, ContextLimits::default(), &|file| {
                Some(format!("/files/{}", file.filename))
            })
        })
        .unwrap();
    let parts = [
        "the title",
        "the body",
        "worker `bob`, run 2",
        "> # Task t_00000000: do evil",
        "> ## Body",
        "parent's summary",
        "/files/a.txt",
        "Attempt 1: crashed",
        "exit code 4",
    ];
    let places: Vec<_> =
        parts.iter().map(|part| context.text.find(part).unwrap_or_else(|| panic!("{part}"))).collect();
    assert!(places.is_sorted(), "{}", context.text);
    assert!(context.omitted.is_empty());
}

#[test]
fn what_does_not_fit_is_cut_at_the_byte_and_said() {
    let bench = Bench::new();
    let task = bench.create(NewTask { body: Some("ä".repeat(5000)), ..titled("long") });
    for number in 0..50 {
        let id = task.id.clone();
        let text = format!("comment {number} {}", "x".repeat(500));
        bench.call(move |board| board.comment(&id, &text, None, &alice())).unwrap();
    }
    let limits = ContextLimits { body: 1001, total: 8192, ..ContextLimits::default() };
    let context = bench.readers.with(|view| view.context(&task.id, limits, &|_| None)).unwrap();
    assert!(context.text.len() <= 8192, "{}", context.text.len());
    assert!(context.text.contains("[9000 bytes left out]"));
    assert!(context.text.contains("comment 49 ") && !context.text.contains("comment 0 "));
    assert!(
        context.text.contains("## Left out")
            && context.omitted.iter().any(|line| line.contains("of 50 comments"))
    );
}
