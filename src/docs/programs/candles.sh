curl -s 'http://127.0.0.1:8080/v1/bars/AAPLc?interval=5m&since=24h' |
  jq -r '["timestamp", "open", "high", "low", "close", "volume", "quote_asset_volume", "n_trades",
      "taker_buy_base_volume", "taker_buy_quote_volume"],
    (.bars[] | select(.open != null) | [(.start[:19] + "Z" | fromdateiso8601), .open, .high, .low, .close, .volume,
      .currency_volume, .trades, .buy_volume, .buy_currency_volume]) | join(",")'
