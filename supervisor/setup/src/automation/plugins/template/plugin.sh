#!/bin/sh
# One call: a JSON object comes on standard input, and a JSON object goes to standard output.
# Whatever goes to standard error is the reason where the exit code is not 0.
set -eu

# What has to be there at the next call goes to this directory. All else is read-only.
cat >> "$PLUGIN_STATE/events.jsonl"
echo >> "$PLUGIN_STATE/events.jsonl"

echo '{}'
