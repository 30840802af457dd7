total=$(awk -F , '{ sum += $2 } END { printf "%d", sum }' ledger.csv)
currency=$(supervisor context | sed -n 's/^> UNBLOCK: currency: //p' | tail -n 1)
if [ -z "$currency" ]; then
  supervisor block --kind needs_input 'Which currency is this ledger in?'
  exit 0
fi
supervisor complete --summary "the ledger adds up to $total $currency" --metadata "{\"total\": $total, \"currency\": \"$currency\"}"
