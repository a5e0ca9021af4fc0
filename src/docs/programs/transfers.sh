curl -sN 'http://127.0.0.1:8080/v1/stream?symbols=*&types=transfer&format=ndjson' |
  jq --unbuffered -r 'select(.type == "transfer") | [.time, .symbol, .shares, .reference_value] | @tsv'
