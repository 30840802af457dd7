total=$(awk -F , '{ sum += $2 } END { printf "%d", sum }' ledger.csv)
supervisor complete --summary "the ledger adds up to $total" --metadata "{\"total\": $total}"
