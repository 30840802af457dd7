//! Changed records of a run directory, which another release or a failing disk has written.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::{checksum, decode, encode};
use super::message::Received;
use super::records::UnkillableRecord;
use super::spec::ShimSpec;
use super::{
    AgentMessage, Cause, ExitRecord, FailedStart, MessagesRecord, PidRecord, ProcessStat, RunSpec,
    StartedRecord, StopRequest,
};

/// A record around a JSON text.
fn sealed(json: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:08x} {}\n", json.len(), checksum(json)).into_bytes();
    bytes.extend_from_slice(json);
    bytes.push(b'\n');
    bytes
}

#[test]
fn an_exit_record_that_is_read_is_the_same_when_it_is_stored_again() {
    let record = ExitRecord {
        code: Some(3),
        stdout_tail: "x\u{1}".to_owned(),
        ..ExitRecord::with_cause(Cause::Exited, 7)
    };
    let seed = serde_json::to_vec(&record).unwrap();
    // Its slot has 64 KiB, and what does not fit is cut by halves.
    fuzz::Target::new("exit-record", fuzz::Shape::Json).seed(seed).check(|input| {
        let Some(record) = decode(&sealed(input)) else {
            let error = serde_json::from_slice::<ExitRecord>(input).expect_err("a record is passed over");
            return error.to_string();
        };
        let again =
            decode(&encode(&record).expect("a record has a JSON form")).expect("what is stored is refused");
        let without_tails = |record: &ExitRecord| ExitRecord {
            stdout_tail: String::new(),
            stderr_tail: String::new(),
            ..record.clone()
        };
        assert_eq!(without_tails(&again), without_tails(&record));
        assert!(record.stdout_tail.ends_with(&again.stdout_tail));
        format!("{:?}", record.cause)
    });
}

#[test]
fn a_file_that_is_no_exit_record_is_none() {
    let whole = encode(&ExitRecord::with_cause(Cause::Deadline, 7)).unwrap();
    fuzz::Target::new("exit-file", fuzz::Shape::Bytes).seed(&whole).check(|input| match decode(input) {
        None => "none".to_owned(),
        Some(record) => {
            assert_eq!(
                record,
                ExitRecord::with_cause(Cause::Deadline, 7),
                "a changed record is taken for a whole one"
            );
            "a record".to_owned()
        }
    });
}

/// Reads a record, and says what it came to. What is read is the same when it is written.
fn record<T: Serialize + DeserializeOwned>(input: &[u8]) -> String {
    match serde_json::from_slice::<T>(input) {
        Err(error) => error.to_string(),
        Ok(record) => {
            let value = serde_json::to_value(&record).expect("a record has a JSON form");
            let again: T = serde_json::from_value(value.clone()).expect("what is written is refused");
            assert_eq!(serde_json::to_value(&again).unwrap(), value);
            "a record".to_owned()
        }
    }
}

#[test]
fn every_record_that_is_read_is_the_same_when_it_is_written() {
    fuzz::Target::new("records", fuzz::Shape::Json).check(|input| {
        let seen = [
            record::<PidRecord>(input),
            record::<StartedRecord>(input),
            record::<StopRequest>(input),
            record::<MessagesRecord>(input),
            record::<UnkillableRecord>(input),
            record::<FailedStart>(input),
            record::<AgentMessage>(input),
            record::<Received>(input),
        ];
        seen.join(" ")
    });
}

#[test]
fn a_spec_that_a_daemon_can_write_is_one_that_a_shim_can_read() {
    fuzz::Target::new("spec", fuzz::Shape::Json).check(|input| {
        let seen = record::<RunSpec>(input);
        let shim = serde_json::from_slice::<ShimSpec>(input);
        assert!(seen != "a record" || shim.is_ok(), "{shim:?}");
        format!("{seen} {}", shim.is_ok())
    });
}

#[test]
fn a_line_of_proc_has_the_name_of_its_process_whatever_that_is() {
    const REST: &str = ") S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3\n";
    fuzz::Target::new("stat", fuzz::Shape::Text).seed("a) (b) R 7").check(|input| {
        let name = String::from_utf8_lossy(input);
        let stat = ProcessStat::parse(&format!("42 ({name}{REST}")).expect("a process is passed over");
        assert_eq!((&*stat.name, stat.state, stat.parent, stat.start_ticks), (&*name, 'S', 17, 98_765));
        // And as a whole line.
        format!("{}", ProcessStat::parse(&name).is_some())
    });
}

/// The seeds of the records are written by this release's own types.
#[test]
fn the_corpus_has_a_record_of_each_kind() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fuzz/corpus");
    let all = |target: &str| {
        let entries = std::fs::read_dir(format!("{corpus}/{target}")).unwrap();
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect::<Vec<_>>()
    };
    let has = |read: fn(&[u8]) -> String, target| all(target).iter().any(|input| read(input) == "a record");
    assert!(has(record::<RunSpec>, "spec"));
    let kinds: [fn(&[u8]) -> String; 8] = [
        record::<PidRecord>,
        record::<StartedRecord>,
        record::<StopRequest>,
        record::<MessagesRecord>,
        record::<UnkillableRecord>,
        record::<FailedStart>,
        record::<AgentMessage>,
        record::<Received>,
    ];
    for (at, kind) in kinds.into_iter().enumerate() {
        assert!(has(kind, "records"), "kind {at}");
    }
    assert!(serde_json::from_slice::<Value>(&all("spec")[0]).is_ok());
}
