//! Scripts of the workers: each writes a durable trace outside of the root, and behaves in one of several ways.

use crate::crash::Chance;

/// Behaviours of a worker between its beginning and its end.
const WAYS: [&str; 5] = [
    "sleep 0.0$(($$ % 9))",
    "sleep $(($$ % 2)).$(($$ % 10))",
    // It leaves the session and its parent, ignores TERM, and has the lock and the output open.
    "(setsid sh -c 'trap \"\" TERM; exec sleep 600' &)\nsleep 0.$(($$ % 10))",
    // The first attempt that comes so far fails with a code of its own.
    "[ -e \"$PLACE/failed.$SUPERVISOR_TASK\" ] || { : > \"$PLACE/failed.$SUPERVISOR_TASK\"; say code7; exit 7; }",
    // What the board acknowledges to a worker is there once.
    "timeout 20 supervisor comment \"$SUPERVISOR_TASK\" \"kept by $SUPERVISOR_RUN_ID\" >/dev/null 2>&1 && say kept",
];

/// The script of a task. A line of its trace is on the disk before it goes on; the lock of the task is held by all that it starts, so that
/// another run of the task that still lives is seen as an overlap.
pub(super) fn script(chance: &mut Chance) -> String {
    let way = WAYS[usize::try_from(chance.below(WAYS.len() as u64)).unwrap()];
    format!(
        "PLACE=${{JOURNAL%/*}}/tasks\n\
         say() {{ echo \"$1 $SUPERVISOR_TASK $SUPERVISOR_RUN_ID\" >> \"$JOURNAL\" && sync \"$JOURNAL\"; }}\n\
         exec 9>> \"$PLACE/lock.$SUPERVISOR_TASK\"\n\
         flock -n 9 || say overlap\n\
         say start\n{way}\nsay end\necho done\n"
    )
}
