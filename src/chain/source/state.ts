import type { SourceName, SourceReason } from '../../protocol/fields.ts'

/** No link is configured; it has not opened or failed yet; it is lost; it pushes; it cannot push what is pre-confirmed. */
type LinkState = 'none' | 'opening' | 'down' | 'pushing' | 'refused'

/** What a look at the pending state showed: a block being built, one that is far behind, the latest again, or nothing. */
export type PendingStatus = 'preconfirmed' | 'behind' | 'latest' | 'null'

type SourceStatus = { readonly source: SourceName; readonly reason: SourceReason }

type Options = { readonly hasLink: boolean; readonly silenceMs: number; readonly now: () => number }

/** Between two flashblocks a node may show nothing: it must go on for this long, and be seen this often. */
const NO_PENDING_MIN_MS = 2_000
const NO_PENDING_MIN_POLLS = 3
/** A chain whose head rests for this long has stopped, or whoever tells of it has. */
const STALE_HEAD_MS = 30_000

/** What the source is, by the evidence so far: silence alone is none. */
export class SourceState {
  readonly #options: Options
  #link: LinkState
  /** What speaks against what is pushed; only something pushed in time clears it. */
  #pushFault: 'silent' | 'behind' | 'no_pending' | null = null
  /** Whether this link has pushed something in time, or its node has shown that it pre-confirms. */
  #isProven = false
  #pendingStatus: PendingStatus | null = null
  #hasPreconfirmed: boolean | null = null
  #noPendingSince: number | null = null
  #noPendingPolls = 0
  /** When the question was asked that has waited longest for an answer. */
  #requestedAt: number | null = null
  #headAt: number
  #lastReported = ''

  constructor(options: Options) {
    this.#options = options
    this.#link = options.hasLink ? 'opening' : 'none'
    this.#headAt = options.now()
  }

  /** Whether what is pushed is trusted to be all there is. */
  get isPushing(): boolean {
    return this.#link === 'pushing' && this.#pushFault === null
  }

  get isProven(): boolean {
    return this.#isProven
  }

  /** Whether a subscription may be tried again: there is a link, and it does not push as it should. */
  get shouldProbe(): boolean {
    return this.#link === 'refused' || (this.#link === 'pushing' && this.#pushFault !== null)
  }

  /** Whether nothing is pre-confirmed now, as far as is known. */
  get isSealedOnly(): boolean {
    return this.#hasPreconfirmed === false
  }

  setLink(state: 'pushing' | 'refused' | 'down'): void {
    if (state === 'down') this.#isProven = false
    // Beside what is pre-confirmed, sealed logs may be subscribed to: that refuses nothing.
    if (state === 'refused' && this.#link === 'pushing') return
    this.#link = state
  }

  /** Something was pushed in time. */
  markDelivered(): void {
    this.#isProven = true
    this.#pushFault = null
  }

  /** Evidence speaks against what is pushed. */
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
    // A node that answers nothing may push all the same; one that shows the latest block again pre-confirms nothing.
    if (isLasting && status !== 'null' && this.isPushing && !this.#isProven) this.#pushFault = 'no_pending'
  }

  /** The standing if it is another than was said last. `begun`: whether it is known from where on all is told. */
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
