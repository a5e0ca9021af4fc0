/** First second of the year 10000, which RFC 3339 cannot write. */
export const NEVER_SECONDS = Date.UTC(10_000, 0) / 1_000

export const isoFromSecondsOrNull = (second: number | null): string | null =>
  second === null || second >= NEVER_SECONDS ? null : new Date(second * 1_000).toISOString()

/** Chain time in seconds. All times after the year 9999 become one number, which means never. */
export const clampSeconds = (second: bigint): number => (second < BigInt(NEVER_SECONDS) ? Number(second) : NEVER_SECONDS)
