import type { Gap } from './options.ts'

/** The relay refuses a request, and would refuse it again. */
export class RelayError extends Error {
  override readonly name = 'RelayError'
  /** The HTTP status, or the code with which a WebSocket was closed. */
  readonly code: number
  /** A word for programs, such as `unknown_symbol`. */
  readonly reason: string
  /** Known names near to the one that was given. */
  readonly suggest: readonly string[]

  constructor(code: number, reason: string, message: string, suggest: readonly string[] = []) {
    super(message)
    this.code = code
    this.reason = reason
    this.suggest = suggest
  }
}

/** Messages are missing, and the stream is strict. */
export class GapError extends Error {
  override readonly name = 'GapError'
  readonly gap: Gap

  constructor(gap: Gap) {
    super(`messages are missing after ${gap.after}: ${gap.reason}`)
    this.gap = gap
  }
}
