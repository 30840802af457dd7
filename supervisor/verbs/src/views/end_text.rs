//! Text of the end of a run's process and of its resources.

use std::time::Duration;

use kernel::{Run, RunId};
use nix::sys::signal::Signal;
use shim::rundir::Usage;

use super::usage_text::bytes_brief;
use base::time::duration::processor;

/// Returns the end of the worker's process: `exit 3`, or `signal 11 (SIGSEGV, core dumped)`. None if no process is known.
pub(crate) fn code(run: &Run) -> Option<String> {
    let Some(signal) = run.signal else { return run.exit_code.map(|code| format!("exit {code}")) };
    let name = Signal::try_from(signal).map(Signal::as_str).ok();
    let core = (run.measured.core_dumped == Some(true)).then_some("core dumped");
    let words: Vec<&str> = [name, core].into_iter().flatten().collect();
    let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
    Some(format!("signal {signal}{words}"))
}

/// Returns the resources of its processes: `1.2s CPU, peak 34 MiB, read 3.0 MiB, wrote 1.0 MiB`. Unknown values are left out.
pub(crate) fn used(run: &Run) -> Option<String> {
    let usage: Usage = serde_json::from_value(run.usage.clone()?).ok()?;
    let cpu = Duration::from_micros(usage.user_us.saturating_add(usage.system_us));
    let largest = (usage.max_rss_kib > 0).then(|| usage.max_rss_kib.saturating_mul(1024));
    let peak = match (usage.memory_peak_bytes, largest) {
        (Some(all), _) => Some(format!("peak {}", bytes_brief(all))),
        (None, Some(one)) => Some(format!("largest process {}", bytes_brief(one))),
        (None, None) => None,
    };
    let moved = |word: &str, bytes: Option<u64>| bytes.map(|bytes| format!("{word} {}", bytes_brief(bytes)));
    let parts = [
        Some(format!("{} CPU", processor(cpu))),
        peak,
        moved("read", usage.read_bytes),
        moved("wrote", usage.written_bytes),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Returns the run's id with its exit and resources in one line; none if no resources were measured.
pub(crate) fn line(run: &Run) -> Option<(RunId, String)> {
    let parts = [code(run), Some(used(run)?)];
    Some((run.id, parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(change: &serde_json::Value) -> Run {
        let mut run = json!({
            "id": 1, "task_id": "t_00000001", "status": "crashed", "outcome": "crashed", "started_at": 1, "hand": "supervisor",
        });
        for (key, value) in change.as_object().unwrap() {
            run[key] = value.clone();
        }
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn an_end_is_an_exit_code_or_a_signal_with_its_name_and_what_it_left() {
        for (fields, expected) in [
            (json!({"exit_code": 3}), Some("exit 3")),
            (json!({"signal": 11, "core_dumped": true}), Some("signal 11 (SIGSEGV, core dumped)")),
            (json!({"signal": 9, "core_dumped": false}), Some("signal 9 (SIGKILL)")),
            (json!({"signal": 11}), Some("signal 11 (SIGSEGV)")),
            (json!({"signal": 40}), Some("signal 40")),
            (json!({}), None),
        ] {
            assert_eq!(code(&run(&fields)).as_deref(), expected, "{fields}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_count_is_left_out_and_never_zero() {
        let old = json!({"user_us": 1_000_000, "system_us": 230_000, "max_rss_kib": 34816});
        let mut usage = old.clone();
        assert_eq!(used(&run(&json!({"usage": old}))).unwrap(), "1.2s CPU, largest process 34 MiB");
        usage["read_bytes"] = json!(3 << 20);
        usage["written_bytes"] = json!(0);
        usage["memory_peak_bytes"] = json!(64 << 20);
        usage["novelty"] = json!("of a later release");
        assert_eq!(
            used(&run(&json!({"usage": usage}))).unwrap(),
            "1.2s CPU, peak 64 MiB, read 3.0 MiB, wrote 0 B"
        );
        assert_eq!(used(&run(&json!({}))), None);
        assert_eq!(used(&run(&json!({"usage": {"by": "another board"}}))), None);
    }
}
