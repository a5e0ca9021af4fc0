import type { SourceName, SourceReason } from '../protocol/parts.ts'

/** No link is configured; it has not opened or failed yet; it is lost; it pushes; it cannot push what is pre-confirmed. */
type LinkState = 'none' | 'opening' | 'down' | 'pushing' | 'refused'

type Standing = { readonly source: SourceName; readonly reason: SourceReason }

type Options = { readonly hasLink: boolean; readonly silenceMs: number; readonly now: () => number }

/** What the source is, by the evidence so far: silence alone is none. */
export class Verdict {
  readonly #options: Options
  #link: LinkState
  #answeredAt: number
  /** Whether the pending state showed anything; null until it was looked at. */
  #preconfirmed: boolean | null = null
  #said = ''

  constructor(options: Options) {
    this.#options = options
    this.#link = options.hasLink ? 'opening' : 'none'
    this.#answeredAt = options.now()
  }

  get pushing(): boolean {
    return this.#link === 'pushing'
  }

  linked(state: 'pushing' | 'refused' | 'down'): void {
    // Nothing was asked while it pushed: only from now on can silence count.
    if (this.pushing) this.answered()
    this.#link = state
  }

  /** The node answered a question. */
  answered(): void {
    this.#answeredAt = this.#options.now()
  }

  /** What a look at the pending state showed; null where it has yet to be looked at. */
  looked(preconfirmed: boolean | null): void {
    this.#preconfirmed = preconfirmed
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
    if (this.pushing) return begun ? { source: 'pendingLogs', reason: 'ok' } : null
    if (now() - this.#answeredAt > silenceMs) return { source: 'down', reason: 'unreachable' }
    if (this.#link === 'opening' || this.#preconfirmed === null || !begun) return null
    if (!this.#preconfirmed) return { source: 'sealed', reason: 'no_pending' }
    if (this.#link === 'none') return { source: 'poll', reason: 'ok' }
    return { source: 'poll', reason: this.#link === 'refused' ? 'refused' : 'unreachable' }
  }
}
