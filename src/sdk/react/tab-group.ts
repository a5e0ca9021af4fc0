import { type TapeUnion, unite } from './tape-selection.ts'
import type { TabNews, TapeMemory } from './tape-state.ts'
import { openUnionStream, type SharedRelay, type UnionStream } from './union-stream.ts'

type TabMessage = TabNews & { readonly tab: number }

/**
 * The tabs of one origin that show one relay share one stream. The tab that holds the lock leads: it reads the stream and
 * posts each item to the others. When it closes, the next tab gets the lock, and continues after its last item.
 *
 * Each tab also holds its own lock. When the leader is granted the lock of a tab, that tab is gone.
 */
export class TabGroup {
  readonly #name: string
  readonly #tape: TapeMemory
  readonly #relay: SharedRelay
  readonly #tab = Math.random()
  readonly #end = new AbortController()
  readonly #others = new Map<number, TapeUnion>()
  #channel: InstanceType<typeof BroadcastChannel> | null = null
  #union: TapeUnion = unite([])
  #leader = 0
  #stream: UnionStream | null = null

  constructor(name: string, tape: TapeMemory, relay: SharedRelay) {
    this.#name = name
    this.#tape = tape
    this.#relay = relay
    // Without a secure context a page has no locks, and opens a stream of its own.
    if (globalThis.navigator?.locks && globalThis.BroadcastChannel) this.#join()
    else this.#lead()
  }

  want(union: TapeUnion): void {
    this.#union = union
    this.#wantAll()
    this.#post({ union })
  }

  close(): void {
    this.#end.abort()
    this.#stream?.close()
    this.#channel?.close()
    this.#channel = null
  }

  #join(): void {
    this.#channel = new BroadcastChannel(this.#name)
    this.#channel.onmessage = ({ data }: { data: TabMessage }) => this.#receive(data)
    this.#request(this.#lockOf(this.#tab), true, () => this.#post({ union: this.#union }))
    this.#request(this.#name, true, () => this.#lead())
  }

  #lead(): void {
    this.#stream = openUnionStream(this.#relay, this.#tape, (news) => this.#post(news))
    // Each other tab answers this message with the union that it wants.
    this.#post({ state: this.#tape.state })
    this.#wantAll()
  }

  #receive({ tab, union, state, item, feed }: TabMessage): void {
    if (this.#stream) return union && this.#receiveUnion(tab, union)
    if (state) {
      if (this.#leader !== tab) this.#post({ union: this.#union })
      this.#leader = tab
      this.#tape.load(state)
    }
    // A message of a former leader may be late, and is dropped.
    if (this.#leader !== tab) return
    if (item) this.#tape.take(item)
    if (feed) this.#tape.takeFeed(feed)
  }

  #receiveUnion(tab: number, union: TapeUnion): void {
    if (!this.#others.has(tab)) {
      this.#request(this.#lockOf(tab), false, () => {
        this.#others.delete(tab)
        this.#wantAll()
      })
      this.#post({ state: this.#tape.state })
    }
    this.#others.set(tab, union)
    this.#wantAll()
  }

  #wantAll(): void {
    this.#stream?.want(unite([this.#union, ...this.#others.values()]))
  }

  #post(news: TabNews): void {
    this.#channel?.postMessage({ tab: this.#tab, ...news })
  }

  #lockOf(tab: number): string {
    return `${this.#name} ${tab}`
  }

  /** `isKept`: the lock is held until this tab leaves the group. */
  #request(lock: string, isKept: boolean, onGranted: () => void): void {
    const { signal } = this.#end
    const hold = async () => {
      if (signal.aborted) return
      onGranted()
      if (isKept) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    navigator.locks.request(lock, { signal }, hold).catch(() => {
      // A page may be forbidden to use locks: then it reads a stream of its own.
      if (!signal.aborted && !this.#stream) this.#lead()
    })
  }
}
