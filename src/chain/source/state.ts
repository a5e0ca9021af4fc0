import type { SourceName, SourceReason } from '../../protocol/fields.ts'

/** No link is configured; it has not opened or failed yet; it is lost; it pushes; it cannot push what is pre-confirmed. */
type LinkState = 'none' | 'opening' | 'down' | 'pushing' | 'refused'

/** What a look at the pending state showed: a block being built, one that is far behind, the latest again, or nothing. */
export type Look = 'preconfirmed' | 'behind' | 'latest' | 'null'

type Standing = { readonly source: SourceName; readonly reason: SourceReason }

type Options = { readonly hasLink: boolean; readonly silenceMs: number; readonly now: () => number }

/** Between two flashblocks a node may show nothing: it must go on for this long, and be seen this often. */
const NO_PENDING_MS = 2_000
const NO_PENDING_LOOKS = 3
/** A chain whose head rests for this long has stopped, or whoever tells of it has. */
const STALE_HEAD_MS = 30_000

/** What the source is, by the evidence so far: silence alone is none. */
export class Verdict {
  readonly #options: Options
  #link: LinkState
  /** What speaks against what is pushed; only something pushed in time clears it. */
  #against: 'silent' | 'behind' | 'no_pending' | null = null
  /** Whether this link has pushed something in time, or its node has shown that it pre-confirms. */
  #proven = false
  #look: Look | null = null
  #shown: boolean | null = null
  #emptySince: number | null = null
  #emptyLooks = 0
  /** When the question was asked that has waited longest for an answer. */
  #askedAt: number | null = null
  #headAt: number
  #said = ''

  constructor(options: Options) {
    this.#options = options
    this.#link = options.hasLink ? 'opening' : 'none'
    this.#headAt = options.now()
  }

  /** Whether what is pushed is trusted to be all there is. */
  get pushing(): boolean {
    return this.#link === 'pushing' && this.#against === null
  }

  get proven(): boolean {
    return this.#proven
  }

  /** Whether a subscription may be tried again: there is a link, and it does not push as it should. */
  get wantsProbe(): boolean {
    return this.#link === 'refused' || (this.#link === 'pushing' && this.#against !== null)
  }

  /** Whether nothing is pre-confirmed now, as far as is known. */
  get sealedOnly(): boolean {
    return this.#shown === false
  }

  linked(state: 'pushing' | 'refused' | 'down'): void {
    if (state === 'down') this.#proven = false
    // Beside what is pre-confirmed, sealed logs may be subscribed to: that refuses nothing.
    if (state === 'refused' && this.#link === 'pushing') return
    this.#link = state
  }

  /** Something was pushed in time. */
  delivered(): void {
    this.#proven = true
    this.#against = null
  }

  /** Evidence speaks against what is pushed. */
  doubted(reason: 'silent' | 'behind'): void {
    if (this.#link !== 'pushing') return
    this.#against = reason
    this.#proven = false
  }

  asked(): void {
    this.#askedAt ??= this.#options.now()
  }

  answered(): void {
    this.#askedAt = null
  }

  headed(): void {
    this.#headAt = this.#options.now()
  }

  looked(look: Look): void {
    const now = this.#options.now()
    this.#look = look
    if (look === 'preconfirmed') {
      this.#emptySince = null
      this.#emptyLooks = 0
      this.#shown = true
      if (this.#link === 'pushing' && this.#against === null) this.#proven = true
      return
    }
    this.#emptySince ??= now
    this.#emptyLooks += 1
    const lasting = this.#emptyLooks >= NO_PENDING_LOOKS && now - this.#emptySince >= NO_PENDING_MS
    if (lasting || this.#shown === null) this.#shown = false
    // A node that answers nothing may push all the same; one that shows the latest block again pre-confirms nothing.
    if (lasting && look !== 'null' && this.pushing && !this.#proven) this.#against = 'no_pending'
  }

  /** The standing if it is another than was said last. `begun`: whether it is known from where on all is told. */
  news(begun: boolean): Standing | null {
    const standing = this.#judge(begun)
    const said = `${standing?.source} ${standing?.reason}`
    if (!standing || said === this.#said) return null
    this.#said = said
    return standing
  }

  #judge(begun: boolean): Standing | null {
    const { now, silenceMs } = this.#options
    const unanswered = this.#askedAt !== null && now() - this.#askedAt > silenceMs
    const pushing = this.pushing && begun
    if (unanswered) return { source: pushing ? 'pendingLogs' : 'down', reason: 'unreachable' }
    const stale = now() - this.#headAt > STALE_HEAD_MS
    if (this.pushing) return begun ? { source: 'pendingLogs', reason: stale ? 'stale_head' : 'ok' } : null
    if (this.#link === 'opening' || this.#shown === null || !begun) return null
    const source = this.#shown ? 'poll' : 'sealed'
    return { source, reason: stale ? 'stale_head' : this.#reason() }
  }

  #reason(): SourceReason {
    if (!this.#shown) return this.#look === 'behind' ? 'behind' : 'no_pending'
    if (this.#link === 'none') return 'ok'
    if (this.#link === 'pushing') return this.#against === 'behind' ? 'behind' : 'silent'
    return this.#link === 'refused' ? 'refused' : 'unreachable'
  }
}
