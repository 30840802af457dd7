//! Payloads of the events about attached files and artifacts, a snapshot for each kind of event.

use super::done;
use crate::testing::{alice, start};
use crate::{EndCause, Ending, Handed, TaskId};

fn attach(board: &mut crate::Board<'_>, id: &TaskId) -> Result<crate::Attachment, crate::Error> {
    board.attach(id, &file(), &alice())
}

fn file() -> crate::NewAttachment {
    crate::NewAttachment {
        filename: "a.txt".to_owned(),
        content_type: Some("text/plain".to_owned()),
        sha256: crate::testing::digest(),
        size: 3,
        author: None,
    }
}

#[test]
fn attached_tells_of_a_file() {
    let rendered = done("attached", |board, id| attach(board, id).map(drop));
    insta::assert_snapshot!(rendered, @r#"no run: {"attachment":1,"by":"alice","filename":"a.txt","size":3}"#);
}

#[test]
fn attached_tells_of_what_a_run_hands_over() {
    let rendered = done("attached", |board, id| {
        let run = board.start_run(id, start(board.clock))?.id;
        let handed = Handed { kept: vec![("out/a.txt".to_owned(), file())], lost: Vec::new() };
        board.end_run(run, &Ending::new(EndCause::TimedOut), &handed).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"its run: {"artifact":"out/a.txt","attachment":1,"by":"bob","filename":"a.txt","size":3}"#);
}

#[test]
fn artifact_lost_tells_of_the_file_and_the_reason() {
    let rendered = done("artifact_lost", |board, id| {
        let run = board.start_run(id, start(board.clock))?.id;
        let lost = crate::LostArtifact { path: "out.md".to_owned(), reason: "no such file".to_owned() };
        let handed = Handed { kept: Vec::new(), lost: vec![lost] };
        board.end_run(run, &Ending::new(EndCause::TimedOut), &handed).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"its run: {"artifact":"out.md","reason":"no such file"}"#);
}

#[test]
fn attachment_removed_tells_of_a_file() {
    let rendered = done("attachment_removed", |board, id| {
        let file = attach(board, id)?;
        board.detach_file(file.id, &alice()).map(drop)
    });
    insta::assert_snapshot!(rendered, @r#"no run: {"attachment":1,"filename":"a.txt"}"#);
}
