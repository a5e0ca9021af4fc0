-- curl -s 'http://127.0.0.1:8080/v1/bars/AAPLc?since=24h&format=csv' -o bars.csv
CREATE TABLE bars AS
SELECT symbol, start::TIMESTAMPTZ AS start, revision::BIGINT AS revision, trades::BIGINT AS trades,
  open::DECIMAL(38, 8) AS open, high::DECIMAL(38, 8) AS high, low::DECIMAL(38, 8) AS low, close::DECIMAL(38, 8) AS close,
  volume::DECIMAL(38, 18) AS volume, currency_volume::DECIMAL(38, 18) AS currency_volume, basis_bps::DECIMAL(38, 2) AS basis_bps
FROM read_csv('bars.csv', header = true, all_varchar = true);

SELECT symbol, date_trunc('hour', start) AS hour, arg_min(open, start) AS open, max(high) AS high, min(low) AS low,
  arg_max(close, start) AS close, sum(trades) AS trades, sum(volume) AS volume
FROM bars WHERE trades > 0 GROUP BY symbol, hour ORDER BY symbol, hour;
