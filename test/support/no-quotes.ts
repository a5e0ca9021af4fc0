/** Settings of an ingest without pools, registry and calendar. */
export const noQuotes = {
  stocksRefreshMs: 15_000,
  pools: [],
  mainCurrency: null,
  poolMinDepth: 1_000,
  oracleRegistry: null,
  sessionAt: null,
} as const
