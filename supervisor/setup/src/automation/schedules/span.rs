//! Formats durations in schedule files.

use serde::{Serialize as _, Serializer};

use base::time::duration::WrittenDuration;

/// Serialises a duration as people write it.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
pub(super) fn span<S: Serializer>(span: &Option<WrittenDuration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(written).serialize(serializer)
}

/// Formats a duration in the largest unit that divides it.
fn written(span: WrittenDuration) -> String {
    let seconds = span.duration().as_secs();
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] {
        if seconds > 0 && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    format!("{seconds}s")
}
