# How many lines there are, by the ending of the file's name.
set -eu
export LC_ALL=C
files=$(find . -name .git -prune -o -type f -exec printf '%.0s.' {} + | wc -c | tr -d ' ')
find . -name .git -prune -o -type f -exec wc -l {} + | awk -v files="$files" '
  {
    n = $1; path = $0; sub(/^ *[0-9]+ /, "", path)
    if (path !~ /^\.\//) next            # the totals of wc
    name = path; sub(/.*\//, "", name)
    ending = "other"
    if (name ~ /.\.[A-Za-z0-9_+-]+$/) { ending = name; sub(/.*\./, "", ending) }
    lines[ending] += n; total += n
  }
  END {
    for (rank = 1; rank <= 5; rank++) {
      best = ""
      for (ending in lines) if (best == "" || lines[ending] > lines[best]) best = ending
      if (best == "") break
      text = text (rank > 1 ? ", " : "") best " " lines[best]
      json = json (rank > 1 ? ", " : "") "\"" best "\": " lines[best]
      delete lines[best]
    }
    printf "lines: %d in %d files (%s)\n", total, files, text
    printf "{\"finding\": \"lines\", \"files\": %d, \"lines\": %d, \"by_ending\": {%s}}\n", files, total, json
  }' > "$TMPDIR/found"
supervisor complete --summary "$(sed -n 1p "$TMPDIR/found")" --metadata "$(sed -n 2p "$TMPDIR/found")"
