import { type Logger, pino } from 'pino'

export type Log = Logger

/** What may be said of one recurring trouble, once; the rest is counted and said with the next. */
const QUIET_MS = 60_000

/** The log of the process: one JSON line per thing worth knowing, on standard error, so that stdout stays for people. */
export const openLog = (level: string): Log =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true }))

/**
 * Says each kind of trouble at most once a minute, with how often it came since. Kinds are words of ours, never outside
 * text, so there are few of them.
 */
export function seldom(log: Log, now: () => number): (kind: string, detail: unknown) => void {
  const said = new Map<string, { at: number; since: number }>()
  return (kind, detail) => {
    const before = said.get(kind)
    if (before && now() - before.at < QUIET_MS) {
      before.since += 1
      return
    }
    said.set(kind, { at: now(), since: 0 })
    log.warn({ kind, detail, more_since_last: before?.since ?? 0 }, kind)
  }
}
