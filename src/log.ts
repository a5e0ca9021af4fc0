import { type Logger as PinoLogger, pino } from 'pino'

export type Logger = PinoLogger

/** What may be said of one recurring trouble, once; the rest is counted and said with the next. */
const WARN_INTERVAL_MS = 60_000

/** The log of the process: one JSON line per thing worth knowing, on standard error, so that stdout stays for people. */
export const openLog = (level: string): Logger =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true }))

/**
 * Says each kind of trouble at most once a minute, with how often it came since. Kinds are words of ours, never outside
 * text, so there are few of them.
 */
export function rateLimitedWarn(log: Logger, now: () => number): (kind: string, detail: unknown) => void {
  const lastWarnings = new Map<string, { at: number; suppressed: number }>()
  return (kind, detail) => {
    const last = lastWarnings.get(kind)
    if (last && now() - last.at < WARN_INTERVAL_MS) {
      last.suppressed += 1
      return
    }
    lastWarnings.set(kind, { at: now(), suppressed: 0 })
    log.warn({ kind, detail, more_since_last: last?.suppressed ?? 0 }, kind)
  }
}
