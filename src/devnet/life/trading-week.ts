import { memoized } from '../../lib/bounded-map.ts'

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

/** The share of the weekend that has passed, and the end of the weekend. Undefined while the market is open. */
export const weekendAt = (atMs: number): { elapsed: number; endMs: number } | undefined => {
  if ((atMs - MONDAY_MS) % WEEK_MS < SESSION_MS) return undefined
  const startMs = lastOpenMs(atMs)
  return { elapsed: (atMs - startMs) / WEEKEND_MS, endMs: startMs + WEEKEND_MS }
}

// Minutes of the day in New York.
const [PRE, OPEN, CLOSE, POST_END] = [4 * 60, 9.5 * 60, 16 * 60, 20 * 60]
/** Activity at noon, before and after the session, and at night. */
const [NOON_ACTIVITY, EXTENDED_ACTIVITY, NIGHT_ACTIVITY] = [0.3, 0.15, 0.08]
/** Time in which the rush at the open and at the close becomes e times less. */
const RUSH_MINUTES = 35

const newYorkClock = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/New_York',
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})

/** Returns how much is traded at a time, as a part of the most. */
export type ReadActivity = (atMs: number) => number

/** Most is traded at the open and the close of the session in New York, least at night and on a weekend. */
export const activityAt: ReadActivity = (atMs) => activityInMinute(Math.floor(atMs / MINUTE_MS))

const MINUTE_MS = 60_000
const MINUTES_BOUND = 1_000

const activityInMinute = memoized(MINUTES_BOUND, (minuteOfUnixTime: number): number => {
  const [weekday = '', hours, minutes] = newYorkClock.format(minuteOfUnixTime * MINUTE_MS).split(/\W+/)
  const minute = Number(hours) * 60 + Number(minutes)
  if (weekday.startsWith('S') || minute < PRE || minute >= POST_END) return NIGHT_ACTIVITY
  if (minute < OPEN || minute >= CLOSE) return EXTENDED_ACTIVITY
  const fromEdge = Math.min(minute - OPEN, CLOSE - minute)
  return NOON_ACTIVITY + (1 - NOON_ACTIVITY) * Math.exp(-fromEdge / RUSH_MINUTES)
})
