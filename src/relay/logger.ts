import { pino } from 'pino'
import type { Host } from './host.ts'
import { type Level, type LogKind, logLines, type WriteLine } from './log-lines.ts'

/** Interval in which a line that repeats is logged at most once. */
const REPEAT_INTERVAL_MS = 60_000

/** Limit of the text that waits for a reader of standard error. Lines beyond it are dropped. */
const UNREAD_BOUND_BYTES = 2 ** 20

type LogOptions = Pick<Host, 'now'> & {
  readonly level: Level
  /** By default text on a terminal, and JSON elsewhere. */
  readonly format?: 'json' | 'text' | undefined
  /** Called for each line that is logged. */
  readonly onLine?: (level: Level) => void
  readonly write?: (line: string) => void
}

/** Opens the log on standard error. A kind that repeats is logged at most once per interval. */
export function openLog({ level, format, now, onLine, write = writeToStandardError }: LogOptions): WriteLine {
  const isText = (format ?? (process.stderr.isTTY ? 'text' : 'json')) === 'text'
  const levels = { level: (label: string) => ({ level: label }) }
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: levels }
  const log = pino(options, { write: isText ? (line) => write(readableLine(line)) : write })
  const mayRepeat = openRepeatLimit(now)
  return (kind, detail) => {
    const { level, sentence, ...line } = logLines[kind]
    if (!log.isLevelEnabled(level)) return
    const more = 'repeats' in line ? mayRepeat(keyOf(kind, detail)) : 0
    if (more === null) return
    const described = detail instanceof Error ? { err: detail } : detail !== undefined && { detail }
    log[level]({ kind, ...described, ...(more > 0 && { more_since_last: more }) }, sentence)
    onLine?.(level)
  }
}

/** Writes to Node's stream, which never waits for the reader of a pipe. A write to the file descriptor may wait. */
function writeToStandardError(line: string): void {
  // If nobody reads standard error any more, the relay continues without a log.
  if (process.stderr.listenerCount('error', ignore) === 0) process.stderr.on('error', ignore)
  if (process.stderr.writableLength < UNREAD_BOUND_BYTES) process.stderr.write(line)
}

const ignore = (): void => {}

/** `12:53:19.203 WARN  the socket to the node is closed, and is opened again later: 1006 {"endpoint":"…"}` */
function readableLine(json: string): string {
  const { level, time, msg, kind: _, detail, ...others } = JSON.parse(json)
  const { reason, ...rest } = { ...detail, ...others }
  const why = typeof reason === 'string' ? `: ${escapeUnsafe(JSON.stringify(reason).slice(1, -1))}` : ''
  const text = Object.keys(rest).length > 0 ? ` ${escapeUnsafe(JSON.stringify(rest))}` : ''
  return `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${msg}${why}${text}\n`
}

/** JSON does not escape these characters, which move the cursor or change the direction of a text. */
const escapeUnsafe = (json: string): string =>
  json.replace(/[\x7f-\x9f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, (unsafe) => `\\u${unsafe.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Fields of a detail that tell two conditions of a kind apart. Each has few values. */
const conditionFields = ['endpoint', 'subscription', 'stage', 'error'] as const

const keyOf = (kind: LogKind, detail: unknown): string => {
  const fields: Readonly<Record<string, unknown>> = { ...(detail as object | undefined) }
  return JSON.stringify([kind, ...conditionFields.map((name) => fields[name])])
}

/** Returns how many lines of a condition were omitted since its last one; null if this one is omitted too. */
function openRepeatLimit(now: () => number): (key: string) => number | null {
  const last = new Map<string, { at: number; omitted: number }>()
  return (key) => {
    const before = last.get(key)
    if (before && now() - before.at < REPEAT_INTERVAL_MS) {
      before.omitted += 1
      return null
    }
    last.set(key, { at: now(), omitted: 0 })
    return before?.omitted ?? 0
  }
}
