import type { RelayClient, StreamItem, StreamState } from '../client/index.ts'
import { type TapeUnion, unite } from './tape-selection.ts'
import type { TapeMemory, TapeState } from './tape-state.ts'
import { UnionStream } from './union-stream.ts'

type TabMessage =
  | { readonly kind: 'want'; readonly tab: string; readonly union: TapeUnion; readonly isNew: boolean }
  | { readonly kind: 'state'; readonly leader: string; readonly to: string | null; readonly state: TapeState }
  | { readonly kind: 'item'; readonly leader: string; readonly item: StreamItem }
  | { readonly kind: 'feed'; readonly leader: string; readonly feed: StreamState }

/**
 * The tabs of one origin that show one relay share one stream. The tab that holds the lock leads: it reads the stream and
 * posts each item to the others. When it closes, the next tab gets the lock, and continues after its last item.
 *
 * Each tab also holds its own lock. When the leader is granted the lock of a tab, that tab is gone.
 */
export class TabGroup {
  readonly #name: string
  readonly #memory: TapeMemory
  readonly #relay: Pick<RelayClient, 'updates'>
  readonly #id = Math.random().toString(36).slice(2)
  readonly #end = new AbortController()
  readonly #others = new Map<string, TapeUnion>()
  #channel: InstanceType<typeof BroadcastChannel> | null = null
  #union: TapeUnion = unite([])
  #leader: string | null = null
  #stream: UnionStream | null = null

  constructor(name: string, memory: TapeMemory, relay: Pick<RelayClient, 'updates'>) {
    this.#name = name
    this.#memory = memory
    this.#relay = relay
    // Without a secure context a page has no locks, and opens a stream of its own.
    if (globalThis.navigator?.locks && globalThis.BroadcastChannel) this.#join()
    else this.#lead()
  }

  want(union: TapeUnion): void {
    this.#union = union
    if (this.#stream) this.#wantAll()
    else this.#sayWanted(false)
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
    this.#hold(this.#lockOf(this.#id), () => this.#sayWanted(true))
    this.#hold(this.#name, () => this.#lead())
  }

  #lead(): void {
    this.#leader = this.#id
    this.#stream = new UnionStream(this.#relay, this.#memory, {
      onItem: (item) => this.#post({ kind: 'item', leader: this.#id, item }),
      onFeed: (feed) => this.#post({ kind: 'feed', leader: this.#id, feed }),
      onUnion: () => this.#passState(null),
    })
    // Each other tab answers this message with the union that it wants.
    this.#passState(null)
    this.#wantAll()
  }

  #receive(message: TabMessage): void {
    if (message.kind === 'want') return this.#receiveWanted(message)
    // A message of a former leader may be late, and is dropped.
    const isForMe = message.kind === 'state' ? [null, this.#id].includes(message.to) : message.leader === this.#leader
    if (this.#stream || !isForMe) return
    switch (message.kind) {
      case 'item':
        return this.#memory.take(message.item)
      case 'feed':
        return this.#memory.takeFeed(message.feed)
      case 'state': {
        const isNewLeader = this.#leader !== message.leader
        this.#leader = message.leader
        this.#memory.load(message.state)
        if (isNewLeader && message.to === null) this.#sayWanted(false)
      }
    }
  }

  #receiveWanted({ tab, union, isNew }: Extract<TabMessage, { kind: 'want' }>): void {
    if (!this.#stream) return
    if (!this.#others.has(tab)) this.#removeWhenClosed(tab)
    this.#others.set(tab, union)
    if (isNew) this.#passState(tab)
    this.#wantAll()
  }

  #removeWhenClosed(tab: string): void {
    const leave = () => {
      this.#others.delete(tab)
      this.#wantAll()
    }
    navigator.locks.request(this.#lockOf(tab), { signal: this.#end.signal }, leave).catch(() => {})
  }

  #wantAll(): void {
    this.#stream?.want(unite([this.#union, ...this.#others.values()]))
  }

  #sayWanted(isNew: boolean): void {
    this.#post({ kind: 'want', tab: this.#id, union: this.#union, isNew })
  }

  #passState(to: string | null): void {
    this.#post({ kind: 'state', leader: this.#id, to, state: this.#memory.state })
  }

  #post(message: TabMessage): void {
    this.#channel?.postMessage(message)
  }

  #lockOf(tab: string): string {
    return `${this.#name} ${tab}`
  }

  /** Calls back once the lock is granted, and keeps it until this tab leaves the group. */
  #hold(lock: string, onGranted: () => void): void {
    const { signal } = this.#end
    const keep = () =>
      new Promise<void>((resolve) => {
        if (signal.aborted) return resolve()
        signal.addEventListener('abort', () => resolve())
        onGranted()
      })
    navigator.locks.request(lock, { signal }, keep).catch(() => {
      // A page may be forbidden to use locks: then it reads a stream of its own.
      if (!signal.aborted && !this.#stream) this.#lead()
    })
  }
}
