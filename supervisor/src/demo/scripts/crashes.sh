if [ ! -e crashed ]; then
  : > crashed
  echo 'ledger.csv: cannot be locked' >&2
  exit 1
fi
total=$(awk -F , '{ sum += $2 } END { printf "%d", sum }' ledger.csv)
supervisor complete --summary "the ledger adds up to $total" --metadata "{\"total\": $total}"
