import { z } from 'zod'
import { durationMs } from '../../lib/units.ts'
import { POSITION_BOUND_BYTES, type Position, parsePosition } from '../position.ts'

/** Longer durations count as this one: no tape keeps messages longer. */
const DURATION_BOUND_MS = 366 * 86_400_000

export type StartPoint =
  | { readonly from: 'now' }
  | { readonly from: 'start' }
  | { readonly from: 'time'; readonly time: number }
  | { readonly from: 'duration'; readonly ms: number }
  | { readonly from: 'position'; readonly text: string; readonly position: Position | null }

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

function parseStartPoint(text: string): StartPoint | null {
  if (text === 'now' || text === 'start') return { from: text }
  const ms = /^\d{1,12}[a-z]+$/.test(text) ? durationMs(text) : Number.NaN
  if (!Number.isNaN(ms)) return { from: 'duration', ms: Math.min(ms, DURATION_BOUND_MS) }
  // A query string turns the plus of an offset into a space.
  const timestamp = text.replace(/ (\d\d:\d\d)$/, '+$1')
  if (rfc3339.test(timestamp)) {
    const time = parseTimestamp(timestamp)
    return time === null ? null : { from: 'time', time }
  }
  const position = parsePosition(text)
  return position && { from: 'position', text, position }
}

/** Rounds up to whole milliseconds, the unit of times on the tape. */
function parseTimestamp(timestamp: string): number | null {
  // `Date` has no leap second 60: it counts as the second after the 59th.
  const leapSecond = /^(.{17})60/.exec(timestamp)
  const time = Date.parse(leapSecond ? `${leapSecond[1]}59${timestamp.slice(19)}` : timestamp)
  if (Number.isNaN(time) || !isInCalendar(timestamp)) return null
  return time + (leapSecond ? 1_000 : 0) + (/\.\d{3}0*[1-9]/.test(timestamp) ? 1 : 0)
}

/** False for days such as February 30, which `Date` reads as March 2. */
function isInCalendar(timestamp: string): boolean {
  const day = timestamp.slice(0, 10)
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

/** A browser sends `Last-Event-ID` when it reconnects. If it is unreadable, the client receives a `gap`. */
export const startPointFromLastEventId = (header: string): StartPoint => ({
  from: 'position',
  text: header.slice(0, POSITION_BOUND_BYTES),
  position: new TextEncoder().encode(header).length > POSITION_BOUND_BYTES ? null : parsePosition(header),
})

export const StartPointText = z.string().transform((text, context): StartPoint => {
  const startPoint = parseStartPoint(text)
  if (startPoint) return startPoint
  context.addIssue('must be now, start, a position, a duration such as 90s, 5m or 2h, or an RFC 3339 time')
  return z.NEVER
})
