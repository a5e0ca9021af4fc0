import { shownError } from '../client/errors.ts'
import type { Bar, BarsOptions, RelayClient } from '../client/index.ts'
import type { TapeResult } from './tape-view.ts'

/** Time that the stream stays open after the last component unmounts, since another component may mount soon. */
const RELEASE_GRACE_MS = 2_000
/** Changes within this time cause one rendering. */
const RENDER_INTERVAL_MS = 16

type ChartRequest = Omit<BarsOptions, 'signal' | 'onState' | 'onError'> & { readonly symbol: string; readonly limit: number }

type BarsResult = TapeResult<readonly Bar[]>

/** The bars of one selection, shared by all components of a page that show them. */
export class SharedBars {
  /** Remains the same object until the bars or their state change. */
  view: BarsResult
  readonly #client: Pick<RelayClient, 'bars'>
  readonly #request: ChartRequest
  readonly #onClose: () => void
  #next: BarsResult
  #areChanged = false
  readonly #bars = new Map<string, Bar>()
  readonly #listeners = new Set<() => void>()
  readonly #end = new AbortController()
  #isOpen = false
  #releaseTimer: ReturnType<typeof setTimeout> | undefined
  #renderTimer: ReturnType<typeof setTimeout> | undefined

  constructor(client: Pick<RelayClient, 'bars'>, request: ChartRequest, view: BarsResult, onClose: () => void) {
    this.#client = client
    this.#request = request
    this.view = view
    this.#next = view
    this.#onClose = onClose
  }

  /** Calls `onChange` after changes. The first watch opens the stream. Returns a function that ends the watch. */
  watch(onChange: () => void): () => void {
    clearTimeout(this.#releaseTimer)
    this.#listeners.add(onChange)
    if (!this.#isOpen) void this.#read()
    return () => {
      this.#listeners.delete(onChange)
      if (this.#listeners.size === 0) this.#releaseTimer = setTimeout(() => this.#close(), RELEASE_GRACE_MS)
    }
  }

  #close(): void {
    clearTimeout(this.#renderTimer)
    this.#end.abort()
    this.#onClose()
  }

  async #read(): Promise<void> {
    this.#isOpen = true
    const { symbol, ...options } = this.#request
    try {
      const bars = this.#client.bars(symbol, {
        ...options,
        signal: this.#end.signal,
        onState: ({ phase, error }) => this.#change({ error, ...(phase === 'live' && { status: 'ready' }) }),
      })
      for await (const bar of bars) {
        this.#bars.set(bar.start, bar)
        this.#areChanged = true
        this.#change({})
      }
    } catch (failure) {
      const error = shownError(failure as Error)
      this.#change({ error, status: error.reason === 'unknown_symbol' ? 'unknown' : 'failed' })
    }
  }

  #change(change: Partial<BarsResult>): void {
    this.#next = { ...this.#next, ...change }
    const isSame = this.#next.status === this.view.status && this.#next.error === this.view.error
    if (this.#end.signal.aborted || (isSame && !this.#areChanged)) return
    this.#renderTimer ??= setTimeout(() => this.#render(), RENDER_INTERVAL_MS)
  }

  #render(): void {
    this.#renderTimer = undefined
    const { status, error } = this.#next
    this.view = { status, error, data: this.#areChanged ? this.#newestBars() : this.view.data }
    this.#areChanged = false
    for (const listener of this.#listeners) listener()
  }

  #newestBars(): readonly Bar[] {
    const all = [...this.#bars.values()].sort((a, b) => (a.start < b.start ? -1 : 1))
    const newest = all.slice(-this.#request.limit)
    for (const { start } of all.slice(0, all.length - newest.length)) this.#bars.delete(start)
    return newest
  }
}
