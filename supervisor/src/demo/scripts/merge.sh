# Puts the results of the tasks before this one together.
set -eu
supervisor context > "$TMPDIR/context"
found=$(sed -n -e 's/^> \(lines: .*\)/\1/p' -e 's/^> \(markers: .*\)/\1/p' -e 's/^> \(largest: .*\)/\1/p' "$TMPDIR/context")
count=$(printf '%s\n' "$found" | grep -c .)
supervisor complete --summary "$found" --metadata "{\"findings\": $count}"
