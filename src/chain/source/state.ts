import type { SourceName, SourceReason } from '../../protocol/fields.ts'

/** `none`: no link is configured. `refused`: the node refuses to push pre-confirmed logs. */
type LinkState = 'none' | 'opening' | 'down' | 'pushing' | 'refused'

/** A poll of the pending block: one being built, one far behind the head, the latest one again, or none. */
export type PendingStatus = 'preconfirmed' | 'behind' | 'latest' | 'null'

type SourceStatus = { readonly source: SourceName; readonly reason: SourceReason }

type Options = { readonly hasLink: boolean; readonly silenceMs: number; readonly now: () => number }

/** Between two flashblocks a node may show no pending block. Only this long and this often does it count. */
const NO_PENDING_MIN_MS = 2_000
const NO_PENDING_MIN_POLLS = 3
/** Without a new head for this long, the chain or the node has stopped. */
const STALE_HEAD_MS = 30_000

/** Decides which source is in use, by evidence. Silence alone is no evidence. */
export class SourceState {
  readonly #options: Options
  #link: LinkState
  /** Why the pushed logs are not trusted; only a log that is pushed in time clears it. */
  #pushFault: 'silent' | 'behind' | 'no_pending' | null = null
  /** Whether this link has pushed a log in time, or its node has shown a pre-confirmed block. */
  #isProven = false
  #pendingStatus: PendingStatus | null = null
  #hasPreconfirmed: boolean | null = null
  #noPendingSince: number | null = null
  #noPendingPolls = 0
  /** When the oldest unanswered request was sent. */
  #requestedAt: number | null = null
  #headAt: number
  #lastReported = ''

  constructor(options: Options) {
    this.#options = options
    this.#link = options.hasLink ? 'opening' : 'none'
    this.#headAt = options.now()
  }

  /** Whether the pushed logs are trusted to be complete. */
  get isPushing(): boolean {
    return this.#link === 'pushing' && this.#pushFault === null
  }

  get isProven(): boolean {
    return this.#isProven
  }

  /** Whether to retry the subscription: the link is up, but does not push as it should. */
  get shouldProbe(): boolean {
    return this.#link === 'refused' || (this.#link === 'pushing' && this.#pushFault !== null)
  }

  /** Whether the node pre-confirms nothing now. */
  get isSealedOnly(): boolean {
    return this.#hasPreconfirmed === false
  }

  setLink(state: 'pushing' | 'refused' | 'down'): void {
    if (state === 'down') this.#isProven = false
    // Sealed logs beside pre-confirmed ones are a probe, not a refusal.
    if (state === 'refused' && this.#link === 'pushing') return
    this.#link = state
  }

  /** A log was pushed in time. */
  markDelivered(): void {
    this.#isProven = true
    this.#pushFault = null
  }

  markDoubted(reason: 'silent' | 'behind'): void {
    if (this.#link !== 'pushing') return
    this.#pushFault = reason
    this.#isProven = false
  }

  requestSent(): void {
    this.#requestedAt ??= this.#options.now()
  }

  responseReceived(): void {
    this.#requestedAt = null
  }

  headReceived(): void {
    this.#headAt = this.#options.now()
  }

  pendingPolled(status: PendingStatus): void {
    const now = this.#options.now()
    this.#pendingStatus = status
    if (status === 'preconfirmed') {
      this.#noPendingSince = null
      this.#noPendingPolls = 0
      this.#hasPreconfirmed = true
      if (this.#link === 'pushing' && this.#pushFault === null) this.#isProven = true
      return
    }
    this.#noPendingSince ??= now
    this.#noPendingPolls += 1
    const isLasting = this.#noPendingPolls >= NO_PENDING_MIN_POLLS && now - this.#noPendingSince >= NO_PENDING_MIN_MS
    if (isLasting || this.#hasPreconfirmed === null) this.#hasPreconfirmed = false
    // A node without a pending block may still push. One that shows the latest block instead does not pre-confirm.
    if (isLasting && status !== 'null' && this.isPushing && !this.#isProven) this.#pushFault = 'no_pending'
  }

  /** The status if it changed since the last call. `isStarted`: whether the first head is known. */
  takeStatusChange(isStarted: boolean): SourceStatus | null {
    const status = this.#currentStatus(isStarted)
    const description = `${status?.source} ${status?.reason}`
    if (!status || description === this.#lastReported) return null
    this.#lastReported = description
    return status
  }

  #currentStatus(isStarted: boolean): SourceStatus | null {
    const { now, silenceMs } = this.#options
    const isUnanswered = this.#requestedAt !== null && now() - this.#requestedAt > silenceMs
    const isPushing = this.isPushing && isStarted
    if (isUnanswered) return { source: isPushing ? 'pendingLogs' : 'down', reason: 'unreachable' }
    const isStale = now() - this.#headAt > STALE_HEAD_MS
    if (this.isPushing) return isStarted ? { source: 'pendingLogs', reason: isStale ? 'stale_head' : 'ok' } : null
    if (this.#link === 'opening' || this.#hasPreconfirmed === null || !isStarted) return null
    const source = this.#hasPreconfirmed ? 'poll' : 'sealed'
    return { source, reason: isStale ? 'stale_head' : this.#reason() }
  }

  #reason(): SourceReason {
    if (!this.#hasPreconfirmed) return this.#pendingStatus === 'behind' ? 'behind' : 'no_pending'
    if (this.#link === 'none') return 'ok'
    if (this.#link === 'pushing') return this.#pushFault === 'behind' ? 'behind' : 'silent'
    return this.#link === 'refused' ? 'refused' : 'unreachable'
  }
}
