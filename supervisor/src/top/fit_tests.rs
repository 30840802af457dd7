//! Tests of narrow screens and of the duration of notices.

use std::time::Duration;

use super::message::TopMessage;
use super::model::TopModel;
use super::picture::{TaskKind, TaskRow, Total};
use super::tests::{group, model, picture, press, row, text};

const TITLE: &str = "Port the parser to the new grammar";

/// Returns the line of the worker, and the heading above it.
fn running(width: u16) -> (String, String) {
    let shown = text(&model(), width, 24);
    let line = |with: &str| shown.lines().find(|line| line.contains(with)).unwrap_or_default().to_owned();
    (line("RUNNING ("), line("t_00000003"))
}

#[test]
fn a_title_keeps_twenty_characters_and_columns_go_one_after_the_other() {
    for (width, columns) in [
        (200, ["SINCE", "PRIO", "CPU", "MEM", "TOKENS"].as_slice()),
        (120, &["SINCE", "PRIO", "CPU", "MEM", "TOKENS"]),
        (82, &["SINCE", "CPU", "MEM", "TOKENS"]),
        (80, &["SINCE", "CPU", "MEM"]),
        (74, &["SINCE", "CPU"]),
        (66, &["SINCE"]),
        (60, &["SINCE"]),
        (48, &[]),
    ] {
        let (heading, line) = running(width);
        let (before, _) = heading.split_once("TITLE").unwrap();
        let names: Vec<&str> = before.split_whitespace().skip(2).collect();
        assert_eq!(names, columns, "{width}: {heading}");
        assert!(line.contains(&TITLE[..19]), "{width}: {line}");
        assert_eq!(line.contains("shell"), width > 60, "{width}: {line}");
        let title = heading.find("TITLE").unwrap();
        assert!(line[title..].starts_with("Port"), "the heading stands above its column\n{heading}\n{line}");
    }
}

#[test]
fn a_long_reason_leaves_a_title_its_twenty_characters() {
    let mut picture = picture();
    let waits = TaskRow { says: "waits for ".repeat(20), ..row(7, TaskKind::Ready, TITLE) };
    picture.groups.push(group(vec![waits], Total::Exactly(1)));
    let mut model = TopModel::default();
    model.update(TopMessage::Picture(Box::new(picture)));
    let shown = text(&model, 80, 30);
    let line = shown.lines().find(|line| line.contains("t_00000007")).unwrap();
    assert!(line.contains(&TITLE[..19]) && line.contains("  waits for"), "{line}");
}

#[test]
fn a_notice_stands_for_some_seconds_and_a_refusal_for_longer() {
    let at = |seconds| TopMessage::Time(Duration::from_secs(seconds));
    for (acted, expected, stands, gone) in [
        (Ok("retried t_1".to_owned()), "retried t_1", 105, 106),
        (Err("it is running".to_owned()), "refused: it is running", 111, 112),
    ] {
        let mut model = model();
        model.update(at(100));
        model.update(TopMessage::Acted(acted));
        assert_eq!(model.notice_ends(), Some(Duration::from_secs(gone)));
        model.update(at(stands));
        assert!(text(&model, 80, 24).contains(expected));
        model.update(at(gone));
        assert!(!text(&model, 80, 24).contains(expected));
        assert_eq!(model.notice_ends(), None, "nothing is waited for");
    }
    // A key ends it at once, and a later one has its own duration.
    let mut model = model();
    model.update(TopMessage::Acted(Ok("first".to_owned())));
    press(&mut model, "j");
    assert!(!text(&model, 80, 24).contains("first"));
    model.update(at(50));
    model.update(TopMessage::Acted(Ok("second".to_owned())));
    model.update(at(55));
    assert!(text(&model, 80, 24).contains("second"));
}
