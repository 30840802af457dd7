//! Faults that are planted are found, kept and made short.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::*;

/// A bound that no input meets which is only read.
const SHORT_TIME: Duration = Duration::from_millis(100);

/// Returns the report of a target that finds a failure.
fn found(name: &'static str, corpus: &Path, seed: &str, property: impl FnMut(&[u8]) -> String) -> String {
    let target = Target::new(name, Shape::Json).corpus_in(corpus.to_owned()).seed(seed);
    let target = target.time(SHORT_TIME);
    let fault =
        catch_unwind(AssertUnwindSafe(|| target.check(property))).expect_err("the fault is not found");
    fault.downcast_ref::<String>().cloned().unwrap_or_default()
}

fn kept(corpus: &Path) -> Vec<Vec<u8>> {
    fs::read_dir(corpus).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn a_panic_is_found_and_its_input_is_kept_short_and_read_first_the_next_time() {
    let corpus = tempfile::tempdir().unwrap();
    let property = |input: &[u8]| {
        let value = serde_json::from_slice::<serde_json::Value>(input).unwrap_or_default();
        assert!(value["count"] != i64::MAX, "planted");
        "read".to_owned()
    };
    let finding =
        found("planted-panic", corpus.path(), r#"{"count":1,"name":"long and of no account"}"#, property);
    assert!(finding.contains("planted at ") && finding.contains("found-"), "{finding}");
    let inputs = kept(corpus.path());
    let [input] = inputs.as_slice() else { panic!("{inputs:?}") };
    // As short as can be, but for white space.
    assert!(input.len() < 40 && String::from_utf8_lossy(input).contains("9223372036854775807"), "{inputs:?}");
    let again = found("planted-panic", corpus.path(), "{}", property);
    assert!(again.contains("planted at "), "{again}");
    assert_eq!(kept(corpus.path()), inputs);
}

#[test]
fn memory_beyond_a_multiple_of_the_input_is_found() {
    let corpus = tempfile::tempdir().unwrap();
    let finding = found("planted-memory", corpus.path(), r#"{"size":10}"#, |input| {
        let value = serde_json::from_slice::<serde_json::Value>(input).unwrap_or_default();
        let size = value["size"].as_u64().unwrap_or_default().min(64 << 20);
        format!("{}", Vec::<u8>::with_capacity(usize::try_from(size).unwrap()).len())
    });
    assert!(finding.contains("bytes of memory"), "{finding}");
}

#[test]
fn processor_time_beyond_the_limit_is_found() {
    let corpus = tempfile::tempdir().unwrap();
    let finding = found("planted-time", corpus.path(), r#"{"word":"abc"}"#, |input| {
        let started = judge::processor_time();
        while input.len() > 20_000 && judge::processor_time().saturating_sub(started) < SHORT_TIME * 2 {}
        "read".to_owned()
    });
    assert!(finding.contains("of processor time"), "{finding}");
}

#[test]
fn an_input_that_has_ended_the_process_is_in_the_corpus_until_it_is_read() {
    let corpus = tempfile::tempdir().unwrap();
    let first = Corpus::open("planted-end", corpus.path().to_owned());
    first.running().begin(b"deadly");
    drop(first);
    let second = Corpus::open("planted-end", corpus.path().to_owned());
    assert_eq!(second.inputs(), [b"deadly".to_vec()]);
    second.close();
    assert_eq!(kept(corpus.path()), Vec::<Vec<u8>>::new());
}

/// The Rust files beneath a directory, but for what was built.
fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, into);
        } else if path.ends_with("fuzz_tests.rs") {
            into.push(path);
        }
    }
}

#[test]
fn each_target_has_a_corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&fuzz.join("../.."), &mut files);
    let mut targets = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        let named = text.split("fuzz::Target::new(\"").skip(1);
        targets.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    assert!(targets.len() > 15, "{targets:?}");
    let has_inputs = |target: &String| {
        fs::read_dir(fuzz.join("corpus").join(target)).is_ok_and(|mut inputs| inputs.next().is_some())
    };
    targets.retain(|target| !has_inputs(target));
    assert_eq!(targets, Vec::<String>::new(), "commit an input of each to tests/fuzz/corpus");
}
