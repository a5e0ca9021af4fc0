export const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const SESSION_MS = 5 * DAY_MS
const WEEKEND_MS = WEEK_MS - SESSION_MS
/** The first Monday of Unix time. */
const MONDAY_MS = 4 * DAY_MS

/** The last time when the market was open: Monday to Friday in UTC, which stands for the 24/5 session. */
export const lastOpenMs = (atMs: number): number => {
  const sinceMondayMs = (atMs - MONDAY_MS) % WEEK_MS
  return sinceMondayMs < SESSION_MS ? atMs : atMs - (sinceMondayMs - SESSION_MS)
}

/** The share of a weekend that has passed, 0 while the market is open, and the end of the weekend. */
export const weekendAt = (atMs: number): { elapsed: number; endMs: number } => {
  const startMs = lastOpenMs(atMs)
  return { elapsed: (atMs - startMs) / WEEKEND_MS, endMs: startMs + WEEKEND_MS }
}
