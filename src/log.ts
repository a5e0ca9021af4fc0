import { type Logger as PinoLogger, pino } from 'pino'

export type Logger = PinoLogger

/** The same kind of warning is logged at most once in this time; the rest is counted. */
const WARN_INTERVAL_MS = 60_000

/** JSON lines on standard error, so that standard output stays free for people. */
export const openLog = (level: string): Logger =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true }))

/**
 * Logs each kind of warning at most once a minute, with the number of suppressed ones since. Kinds are fixed strings of
 * our code, never outside text, so the map stays small.
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
