import type { RelayClient } from '../client/index.ts'
import { TabGroup } from './tab-group.ts'
import { type TapeUnion, unite } from './tape-selection.ts'
import { TapeMemory, type TapeState } from './tape-state.ts'

/** Time that the connection stays open after the last component unmounts, since another component may mount soon. */
const RELEASE_GRACE_MS = 2_000
/** Changes within this time cause one rendering. */
const RENDER_INTERVAL_MS = 16

/** The tape of one relay, shared by all components of a page. Connected while a component shows a part of it. */
export class SharedTape {
  readonly #name: string
  readonly #relay: Pick<RelayClient, 'updates'>
  readonly #interests = new Map<() => void, TapeUnion | null>()
  #memory = this.#newMemory()
  #group: TabGroup | null = null
  #releaseTimer: ReturnType<typeof setTimeout> | undefined
  #renderTimer: ReturnType<typeof setTimeout> | undefined
  #state: TapeState | null = null

  /** Tabs whose tapes have the same `name` share one stream. */
  constructor(name: string, relay: Pick<RelayClient, 'updates'>) {
    this.#name = name
    this.#relay = relay
  }

  get state(): TapeState {
    this.#state ??= this.#memory.state
    return this.#state
  }

  /** Calls `onChange` after changes. Opens a connection unless `union` is null. Returns a function that ends the watch. */
  watch(union: TapeUnion | null, onChange: () => void): () => void {
    const listener = () => onChange()
    this.#interests.set(listener, union)
    this.#setUnion()
    return () => {
      this.#interests.delete(listener)
      this.#setUnion()
    }
  }

  #setUnion(): void {
    const unions = [...this.#interests.values()].filter((union) => union !== null)
    clearTimeout(this.#releaseTimer)
    if (unions.length > 0) {
      this.#group ??= new TabGroup(this.#name, this.#memory, this.#relay)
      this.#group.want(unite(unions))
    } else this.#releaseTimer = setTimeout(() => this.close(), RELEASE_GRACE_MS)
  }

  close(): void {
    this.#group?.close()
    this.#group = null
    this.#memory = this.#newMemory()
    this.#change()
  }

  #newMemory(): TapeMemory {
    const memory: TapeMemory = new TapeMemory(() => memory === this.#memory && this.#change())
    return memory
  }

  #change(): void {
    this.#state = null
    this.#renderTimer ??= setTimeout(() => {
      this.#renderTimer = undefined
      for (const listener of this.#interests.keys()) listener()
    }, RENDER_INTERVAL_MS)
  }
}
