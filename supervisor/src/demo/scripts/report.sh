# Writes the report from the result of the task before this one, and commits it.
set -eu
{
  echo '# Report'
  echo
  echo "Written by $SUPERVISOR_PROFILE for task $SUPERVISOR_TASK."
  echo
  supervisor context | sed -n -e 's/^> \(lines: .*\)/* \1/p' -e 's/^> \(markers: .*\)/* \1/p' -e 's/^> \(largest: .*\)/* \1/p'
} > REPORT.md
if command -v git > /dev/null; then
  git add -f REPORT.md
  git -c commit.gpgSign=false -c core.hooksPath=/dev/null commit -q -m 'Report on the repository' -- REPORT.md
  commit=$(git rev-parse HEAD)
else
  commit=$(supervisor __probe commit REPORT.md 'Report on the repository')
fi
supervisor complete --summary "REPORT.md is committed as $commit" --metadata "{\"commit\": \"$commit\"}"
