//! Files of tasks: `attach`, `attachments`, `attach-rm`.

use super::{TypedRoot, assert_has};

pub(super) fn walk(desk: &TypedRoot) {
    let task = desk.task("--triage");
    let path = desk.fleet.home().join("x1");
    std::fs::write(&path, "abc").unwrap();
    desk.fleet.give(&path);
    desk.ok(&format!(
        "attach {task} {} --content-type text/plain --name 'error log.txt' --author ann",
        path.display()
    ));
    let listed = desk.json(&format!("attachments {task}"));
    assert_has(
        &listed[0],
        &serde_json::json!({
            "filename": "error log.txt", "content_type": "text/plain", "size": 3, "uploaded_by": "ann",
        }),
    );
    assert_eq!(std::fs::read(listed[0]["stored_path"].as_str().unwrap()).unwrap(), b"abc");
    assert_eq!(desk.json(&format!("show {task}"))["attachments"], listed);
    let shown = desk.ok(&format!("show {task}"));
    assert!(shown.contains("Attachments") && shown.contains("error log.txt"), "{shown}");
    desk.ok(&format!("attach-rm {}", listed[0]["id"]));
    assert_eq!(desk.json(&format!("attachments {task}")), serde_json::json!([]));
}
