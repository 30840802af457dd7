#!/usr/bin/env python3
"""One call: a JSON object comes on standard input, and a JSON object goes to standard output."""

import json
import os
import sys


def event(call):
    """Keeps what happened: the directory PLUGIN_STATE is there at the next call, too."""
    what = call["event"]
    with open(os.path.join(os.environ["PLUGIN_STATE"], "events.jsonl"), "a") as kept:
        kept.write(json.dumps({"id": what["id"], "kind": what["kind"], "task": what["task_id"]}) + "\n")
    return {}


CALLS = {"event": event}

if __name__ == "__main__":
    call = json.load(sys.stdin)
    if call["call"] not in CALLS:
        sys.exit(f"this plugin does not know the call {call['call']}")
    json.dump(CALLS[call["call"]](call), sys.stdout)
