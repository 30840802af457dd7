#!/bin/sh
# Calls the plugin without a supervisor. `supervisor plugin check DIRECTORY` does the same, confined.
set -eu
cd "$(dirname "$0")"
PLUGIN_STATE=$(mktemp -d)
export PLUGIN_STATE
trap 'rm -rf "$PLUGIN_STATE"' EXIT

reply=$(./@PROGRAM@ <<'CALL'
{"version": 1, "plugin": "@NAME@", "call": "event", "board": "default",
 "event": {"id": 1, "kind": "completed", "task_id": "t_0123abcd"}}
CALL
)
[ "$reply" = '{}' ] || { echo "unexpected reply: $reply" >&2; exit 1; }
grep -q completed "$PLUGIN_STATE/events.jsonl" || { echo "the event was not kept" >&2; exit 1; }
echo ok
