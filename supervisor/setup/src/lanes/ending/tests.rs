//! Tests of reading the endings of runs.

use super::*;
use shim::rundir::{Concern, FailedStart, RunDir, Step};

const END: Timestamp = Timestamp::from_secs(1_000);

fn rules(text: &str) -> EndingRules {
    let text = format!("argv = [\"x\"]\n{text}");
    EndingRules::of_run(
        &Lane::parse("l", &text, std::path::Path::new("/l.toml")).unwrap(),
        Purpose::Work,
        None,
    )
}

fn ended_by(cause: Cause) -> ExitRecord {
    ExitRecord { cause, ..exited(75) }
}

fn exited(code: i32) -> ExitRecord {
    let (code, stdout_tail) = (Some(code), "\n42 \n".to_owned());
    ExitRecord { code, stdout_tail, ..ExitRecord::with_cause(Cause::Exited, 1) }
}

fn read(record: &ExitRecord, rules: &EndingRules) -> Ending {
    read_with(record, rules, "")
}

fn read_with(record: &ExitRecord, rules: &EndingRules, stdout: &str) -> Ending {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("stdout"), stdout).unwrap();
    let stdout = RunDir::open(place.path()).unwrap().stdout(record).unwrap();
    read_ending(record, &stdout, rules, &Contact::default(), END)
}

#[test]
fn exit_0_means_what_the_lane_says() {
    let ending = read(&exited(0), &rules("on_clean_exit = \"complete\""));
    assert_eq!((ending.cause, ending.exit_code), (EndCause::Exited { code: 0 }, Some(0)));
    assert_eq!(ending.result_policy, OnCleanExit::Complete { summary: Some("42".to_owned()) });
    assert_eq!(ending.ended_at, Some(END));
    let summary = Some("42".to_owned());
    assert_eq!(read(&exited(0), &rules("")).result_policy, OnCleanExit::TurnEnded { summary });
}

#[test]
fn exit_75_is_a_rate_limit_for_as_long_and_for_whom_the_lane_says() {
    let ending = read(&exited(75), &rules("rate_limit = \"task\"\nrate_limit_pause = \"1m\""));
    let until = END.after(Duration::from_mins(1));
    assert_eq!((ending.cause, ending.siblings), (EndCause::RateLimited { until }, Siblings::Spare));
    let ending = read(&exited(75), &rules(""));
    let until = END.after(Duration::from_mins(5));
    assert_eq!((ending.cause, ending.siblings), (EndCause::RateLimited { until }, Siblings::Hold));
}

/// Checks the order of the module's list, from its second item on; the first is the board's.
#[test]
fn what_comes_first_in_the_order_counts() {
    let failed = FailedStart { step: Step::Exec, error: String::new(), errno: None, concern: Concern::Lane };
    let oom = ExitRecord { oom: Some(true), ..exited(75) };
    let signaled = ExitRecord { code: None, signal: Some(15), ..exited(0) };
    let status = |status: u16| {
        format!(r#"{{"type":"result","is_error":true,"result":"no","api_error_status":{status}}}"#)
    };
    let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#.to_owned();
    let cost = r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true}"#.to_owned();
    let well = r#"{"type":"result","is_error":false,"result":"done"}"#.to_owned();
    let after = |secs| END.after(Duration::from_secs(secs));
    let limited = |secs| EndCause::RateLimited { until: after(secs) };
    let login = EndCause::NotLoggedIn { until: after(600) };
    let exit = |code| EndCause::Exited { code };
    let (limit, bad_login, outage) = (status(429), status(401), status(503));
    let table = [
        (2, oom, &limit, EndCause::OutOfMemory),
        (2, ended_by(Cause::Deadline), &limit, EndCause::TimedOut),
        (
            2,
            ended_by(Cause::Stopped { reason: StopReason::Verdict }),
            &limit,
            EndCause::Stopped(kernel::StopReason::Verdict),
        ),
        (4, ended_by(Cause::Stopped { reason: StopReason::Refused }), &well, limited(300)),
        (3, ended_by(Cause::SpawnFailed(failed)), &limit, EndCause::NeverStarted),
        (4, exited(75), &bad_login, limited(300)),
        (4, exited(41), &limit, limited(300)),
        (4, exited(0), &limit, limited(300)),
        (4, signaled.clone(), &limit, limited(300)),
        (4, exited(173), &well, limited(300)),
        (5, exited(1), &bad_login, login.clone()),
        (5, exited(41), &turns, login),
        (6, exited(1), &turns, EndCause::OwnLimit(kernel::OwnLimit::Turns)),
        (6, exited(0), &cost, EndCause::OwnLimit(kernel::OwnLimit::Cost)),
        (6, exited(53), &outage, EndCause::OwnLimit(kernel::OwnLimit::Turns)),
        (7, exited(1), &outage, limited(60)),
        (8, exited(0), &well, exit(0)),
        (9, exited(1), &well, exit(1)),
        (9, signaled, &well, EndCause::Signaled { signal: 15 }),
    ];
    let rules = rules(
        "stdout = \"claude-stream-json\"\n[exit_codes]\nrate_limit = [173]\nlogin = [41]\nturn_limit = [53]",
    );
    for (place, record, stdout, expected) in table {
        let cause = read_with(&record, &rules, stdout).cause;
        assert_eq!(cause, expected, "{place}: {record:?} {stdout}");
    }
}

#[test]
fn a_clean_exit_is_a_review_where_the_lane_says_so_and_no_end_where_a_tool_was_denied() {
    let claude =
        |policy: &str| rules(&format!("stdout = \"claude-stream-json\"\non_clean_exit = \"{policy}\""));
    let well = r#"{"type":"result","is_error":false,"result":"done"}"#;
    let denied = r#"{"type":"result","is_error":false,"result":"done","permission_denials":[{},{}]}"#;
    let summary = Some("done".to_owned());
    let policy = |policy: &str, stdout| read_with(&exited(0), &claude(policy), stdout).result_policy;
    assert_eq!(policy("review", well), OnCleanExit::Review { summary: summary.clone() });
    assert_eq!(policy("review", denied), OnCleanExit::Review { summary: summary.clone() });
    assert_eq!(policy("complete", well), OnCleanExit::Complete { summary: summary.clone() });
    assert_eq!(policy("complete", denied), OnCleanExit::ToolsRefused { summary: summary.clone() });
    assert_eq!(policy("protocol_violation", well), OnCleanExit::TurnEnded { summary });
    assert_eq!(policy("protocol_violation", ""), OnCleanExit::Unreported, "it came to no end of a turn");
    let trouble = read_with(&exited(0), &claude("complete"), denied).trouble.unwrap();
    assert!(trouble.ends_with("(2); it said last: done"), "{trouble}");
}

#[test]
fn a_question_of_an_agent_whose_tool_calls_were_denied_is_in_the_error() {
    for policy in ["complete", "protocol_violation"] {
        let claude = rules(&format!("stdout = \"claude-stream-json\"\non_clean_exit = \"{policy}\""));
        let asked = |text: &str| {
            let result = serde_json::json!({
                "type": "result", "is_error": false, "result": text, "permission_denials": [{}],
            });
            read_with(&exited(0), &claude, &result.to_string()).trouble.unwrap()
        };
        let short = asked("npm was denied.\n\nWhich registry, A or B?");
        assert!(short.ends_with("(1); it said last: npm was denied. Which registry, A or B?"), "{short}");
        let long = asked(&format!("{} Which registry, Ä or B?", "ö".repeat(400)));
        assert!(long.contains("(1); it said last: …ö"), "{long}");
        assert!(long.ends_with("ö Which registry, Ä or B?"), "{long}");
        assert!(asked(" ").ends_with("(1)"));
    }
}

#[test]
fn what_a_worker_has_used_is_known_whatever_ended_it() {
    let claude = rules("stdout = \"claude-stream-json\"");
    let init = r#"{"type":"system","subtype":"init","session_id":"7f9c"}"#;
    let ending = read_with(&ExitRecord { cause: Cause::Deadline, ..exited(1) }, &claude, init);
    assert_eq!(ending.spent.unwrap().session.as_deref(), Some("7f9c"));
    assert_eq!(read(&exited(0), &rules("")).spent, None, "text says nothing of it");
}

#[test]
fn a_session_that_is_gone_is_no_failure_of_a_run_that_was_to_go_on_in_it() {
    let fresh = rules("stdout = \"claude-stream-json\"\nsession_gone = [\"No conversation\"]");
    let resumed = EndingRules { resumed: Some("s-1".to_owned()), ..fresh.clone() };
    let gone = ExitRecord { stderr_tail: "No conversation found: s-1".to_owned(), ..exited(1) };
    let ending = read(&gone, &resumed);
    assert_eq!((ending.cause, ending.spent), (EndCause::SessionGone, None));
    assert_eq!(read(&gone, &fresh).cause, EndCause::Exited { code: 1 }, "it was in none");
    let well = ExitRecord { code: Some(0), ..gone };
    assert_eq!(read(&well, &resumed).cause, EndCause::Exited { code: 0 });
    let cut_short = read(&exited(1), &resumed);
    assert_eq!(cut_short.cause, EndCause::Exited { code: 1 });
    assert_eq!(
        cut_short.spent.unwrap().session.as_deref(),
        Some("s-1"),
        "it was in the session all the same"
    );
}

#[test]
fn a_worker_that_says_how_it_ended_is_believed_in_the_format_of_its_lane() {
    let claude = rules("stdout = \"claude-stream-json\"\non_clean_exit = \"complete\"");
    let result = r#"{"type":"result","is_error":false,"result":"fixed"}"#;
    let well = read_with(&exited(0), &claude, result);
    assert_eq!(well.result_policy, OnCleanExit::Complete { summary: Some("fixed".to_owned()) });
    assert_eq!(read(&exited(0), &claude).result_policy, OnCleanExit::Unreported, "it has said nothing");
    let refused = r#"{"type":"result","is_error":true,"api_error_status":429}"#;
    let until = END.after(Duration::from_mins(5));
    assert_eq!(read_with(&exited(1), &claude, refused).cause, EndCause::RateLimited { until });
    let plain = rules("on_clean_exit = \"complete\"");
    assert_eq!(read_with(&exited(1), &plain, refused).cause, EndCause::Exited { code: 1 });
    let deadline = ExitRecord { cause: Cause::Deadline, ..exited(1) };
    assert_eq!(read_with(&deadline, &claude, refused).cause, EndCause::TimedOut);
}

#[test]
fn an_agent_that_is_silent_because_its_service_refuses_it_has_not_stalled() {
    let stalled = ended_by(Cause::Stopped { reason: StopReason::Stalled });
    let codex = rules("stdout = \"codex-jsonl\"");
    let turn = r#"{"type":"turn.started"}"#;
    let retries = r#"{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}"#;
    let until = END.after(Duration::from_mins(5));
    let read = |lines: &[&str]| read_with(&stalled, &codex, &lines.join("\n")).cause;
    assert_eq!(read(&[turn, retries]), EndCause::RateLimited { until });
    let goes_on = r#"{"type":"turn.completed","usage":{}}"#;
    assert_eq!(read(&[turn, retries, goes_on]), EndCause::Stopped(kernel::StopReason::Stalled));
    assert_eq!(read(&[turn]), EndCause::Stopped(kernel::StopReason::Stalled));
}

#[test]
fn a_limit_without_an_end_is_not_believed() {
    let claude = rules("stdout = \"claude-stream-json\"");
    let rejected = |at: i64| {
        let event = format!(r#"{{"type":"rate_limit_event","status":"rejected","resetsAt":{at}}}"#);
        read_with(&exited(1), &claude, &event).cause
    };
    let limited = |secs| EndCause::RateLimited { until: END.after(Duration::from_secs(secs)) };
    assert_eq!(rejected(1_060), limited(60));
    assert_eq!(rejected(1_001), limited(15), "a worker that comes again at once would do so without end");
    assert_eq!(rejected(i64::MAX), limited(24 * 3600));
    assert_eq!(rejected(i64::MIN), limited(300), "a time that is over is none");
}

#[test]
fn a_limit_that_the_proxy_has_not_seen_holds_the_task_alone() {
    let broker = "[[broker]]\nhost = 'a.example'\nheader = 'x-key'\nsecret = 'key'\n";
    let claude = rules(&format!("stdout = \"claude-stream-json\"\n{broker}"));
    let place = tempfile::tempdir().unwrap();
    let rejected = r#"{"type":"rate_limit_event","status":"rejected","resetsAt":5000}"#;
    std::fs::write(place.path().join("stdout"), rejected).unwrap();
    let stdout = RunDir::open(place.path()).unwrap().stdout(&exited(1)).unwrap();
    let first = std::time::Instant::now();
    let answer =
        |host, status, seconds| super::super::host_replies::tests::answer(first, host, status, seconds);
    for (answers, siblings) in [
        (vec![], Siblings::Hold),
        (vec![answer("a.example:443", 200, 1)], Siblings::Spare),
        (vec![answer("a.example:443", 429, 1)], Siblings::Hold),
        (vec![answer("other.example:443", 200, 1)], Siblings::Hold),
    ] {
        let contact = Contact { replies: answers, ..Contact::default() };
        let ending = read_ending(&exited(1), &stdout, &claude, &contact, END);
        let until = END.after(Duration::from_secs(4_000));
        assert_eq!((ending.cause, ending.siblings), (EndCause::RateLimited { until }, siblings));
    }
}

#[test]
fn a_refusal_by_the_proxy_is_a_failure_of_the_run_and_holds_no_account() {
    let claude = rules("stdout = \"claude-stream-json\"\n[exit_codes]\nlogin = [41]\nunavailable = [69]");
    let status = |status: u16| {
        format!(r#"{{"type":"result","is_error":true,"result":"no","api_error_status":{status}}}"#)
    };
    let stopped = |reason| ExitRecord {
        code: None,
        signal: Some(15),
        ..ExitRecord::with_cause(Cause::Stopped { reason }, 1)
    };
    let exit = |code| EndCause::Exited { code };
    let term = || EndCause::Signaled { signal: 15 };
    let stalled = || EndCause::Stopped(kernel::StopReason::Stalled);
    let outage = || EndCause::RateLimited { until: END.after(OUTAGE_PAUSE) };
    let (any, service) = (OwnRefusal::AnyHost, OwnRefusal::Service);
    for (record, stdout, refused, expected) in [
        (exited(1), status(403), any, exit(1)),
        (exited(1), status(403), service, exit(1)),
        (exited(41), String::new(), any, exit(41)),
        (exited(1), status(503), any, outage()),
        (exited(1), status(503), service, exit(1)),
        (exited(69), String::new(), service, exit(69)),
        (stopped(StopReason::Refused), status(403), service, term()),
        (stopped(StopReason::Stalled), status(403), any, stalled()),
    ] {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("stdout"), &stdout).unwrap();
        let output = RunDir::open(place.path()).unwrap().stdout(&record).unwrap();
        let contact = Contact { refused, ..Contact::default() };
        let cause = read_ending(&record, &output, &claude, &contact, END).cause;
        assert_eq!(cause, expected, "{record:?} {stdout} {refused:?}");
    }
}
