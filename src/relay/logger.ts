import { type Logger as PinoLogger, pino } from 'pino'

export type Logger = PinoLogger

/** Interval in which each kind of warning is logged at most once. */
const WARN_INTERVAL_MS = 60_000

/** Limit of the text that waits for a reader of standard error. Lines beyond it are dropped. */
const UNREAD_BOUND_BYTES = 2 ** 20

type LogOptions = { readonly isTerminal?: boolean; readonly onLine?: (level: string) => void }

export function openLog(level: string, { isTerminal = process.stderr.isTTY, onLine = ignore }: LogOptions = {}): Logger {
  // If nobody reads standard error any more, the relay continues without a log.
  if (process.stderr.listenerCount('error', ignore) === 0) process.stderr.on('error', ignore)
  const destination = isTerminal ? { write: (line: string) => standardError.write(readableLine(line)) } : standardError
  const hooks = {
    logMethod(this: Logger, args: Parameters<pino.LogFn>, method: pino.LogFn, at: number) {
      onLine(pino.levels.labels[at] ?? '')
      method.apply(this, args)
    },
  }
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, hooks }, destination)
}

const ignore = (): void => {}

/** Writes to Node's stream, which never waits for the reader of a pipe. A write to the file descriptor may wait. */
const standardError = {
  write: (line: string): void => {
    if (process.stderr.writableLength < UNREAD_BOUND_BYTES) process.stderr.write(line)
  },
}

/** `12:53:19.203 WARN  the list is unreadable {"reason":"…"}` */
export function readableLine(json: string): string {
  const { level, time, msg, kind: _, detail, more_since_last: more, ...rest } = JSON.parse(json)
  const details = { ...detail, ...rest, ...(more > 0 && { more_since_last: more }) }
  const text = Object.keys(details).length > 0 ? ` ${escapeUnsafe(JSON.stringify(details))}` : ''
  return `${String(time).slice(11, 23)} ${(pino.levels.labels[level] ?? '').toUpperCase().padEnd(5)} ${msg}${text}\n`
}

/** JSON does not escape these characters, which move the cursor or change the direction of a text. */
const escapeUnsafe = (json: string): string =>
  json.replace(/[\x7f-\x9f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (unsafe) => `\\u${unsafe.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Logs each kind of warning at most once per interval. Kinds are fixed strings of the code, so the map of them stays small. */
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
