# Where somebody left a TODO or a FIXME.
set -eu
export LC_ALL=C
files=$(find . -name .git -prune -o -type f -exec printf '%.0s.' {} + | wc -c | tr -d ' ')
{ find . -name .git -prune -o -type f -exec grep -n -e TODO -e FIXME /dev/null {} + 2> /dev/null || :; } |
  awk -F : -v files="$files" '
    $2 !~ /^[0-9]+$/ { next }            # what grep says of binary files
    /TODO/ { todo++ }
    /FIXME/ { fixme++ }
    !($1 in seen) { seen[$1] = 1; places++ }
    END {
      printf "markers: %d TODO and %d FIXME, in %d of %d files\n", todo, fixme, places, files
      printf "{\"finding\": \"markers\", \"files\": %d, \"todo\": %d, \"fixme\": %d}\n", files, todo, fixme
    }' > "$TMPDIR/found"
supervisor complete --summary "$(sed -n 1p "$TMPDIR/found")" --metadata "$(sed -n 2p "$TMPDIR/found")"
