# Puts the results of the tasks before this one together.
set -eu
supervisor context > "$TMPDIR/context"
found=$(for kind in lines markers largest; do sed -n "s/^> \($kind: .*\)/\1/p" "$TMPDIR/context"; done)
count=$(printf '%s\n' "$found" | grep -c .)
supervisor complete --summary "$found" --metadata "{\"findings\": $count}"
