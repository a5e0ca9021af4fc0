import type { RelayClient } from '../client/index.ts'
import { TabGroup } from './tab-group.ts'
import { TapeMemory, type TapeState } from './tape-memory.ts'
import { type TapeUnion, unite } from './tape-union.ts'

/** The connection stays this long without a component: one that mounts again, or the next page, finds it open. */
const RELEASE_GRACE_MS = 2_000
/** Changes within this time are one rendering. */
const RENDER_INTERVAL_MS = 16

/** The tape of one relay, for everything on a page that shows a part of it. It is connected while something does. */
export class SharedTape {
  readonly #name: string
  readonly #relay: Pick<RelayClient, 'updates'>
  readonly #interests = new Map<() => void, TapeUnion | null>()
  #memory = this.#newMemory()
  #group: TabGroup | null = null
  #releaseTimer: ReturnType<typeof setTimeout> | undefined
  #renderTimer: ReturnType<typeof setTimeout> | undefined
  /** The same object until something changes. */
  #state: TapeState | null = null

  /** Tabs with a tape of the same name share the stream. */
  constructor(name: string, relay: Pick<RelayClient, 'updates'>) {
    this.#name = name
    this.#relay = relay
  }

  get state(): TapeState {
    this.#state ??= this.#memory.state
    return this.#state
  }

  /** Calls back after changes. Without a union it only listens. Returns what ends it. */
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
    if (unions.length > 0) this.#group ??= new TabGroup(this.#name, this.#memory, this.#relay)
    else this.#releaseTimer = setTimeout(() => this.close(), RELEASE_GRACE_MS)
    if (unions.length > 0) this.#group?.want(unite(unions))
  }

  /** Disconnects now. The next one who watches connects again. */
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
