import type { Hex } from '../../../lib/hex.ts'
import type { SelectionOptions } from '../../../protocol/parameters/selection.ts'
import type { Matcher } from '../select/match.ts'
import { encodeBatch, type Recipients } from './batch-encoder.ts'
import type { Listener, LiveGroup } from './listener.ts'
import type { MatchedBatch } from './matched-batch.ts'
import type { ReusedBuffer } from './reused-buffer.ts'

/** All audiences with equal options. Matching runs once per token for all of them. */
export type FilterGroup = {
  readonly name: string
  readonly options: SelectionOptions
  /** Whether the options have value filters; the number of such selections is limited. */
  readonly isFiltered: boolean
  readonly match: Matcher
  readonly audiences: Map<string, Audience>
}

/** Tests whether a listener with a backlog may receive another write, and records bytes that the kernel did not take. */
export type BacklogCheck = { mayWrite(listener: Listener): boolean; hold(listener: Listener, bytes: Buffer): void }

type Subscribers = Recipients & LiveGroup & { sent: number; readonly listeners: Set<Listener> }

/** All listeners with one selection. Those with equal transport and compression share one buffer. */
export class Audience {
  readonly group: FilterGroup
  readonly name: string
  readonly tokens: ReadonlySet<Hex> | null
  readonly #subscribers: Subscribers[] = []

  constructor(group: FilterGroup, name: string, tokens: ReadonlySet<Hex> | null) {
    this.group = group
    this.name = name
    this.tokens = tokens
  }

  get size(): number {
    let size = 0
    for (const { listeners } of this.#subscribers) size += listeners.size
    return size
  }

  /** Whether some listener receives messages compressed. */
  get compresses(): boolean {
    return this.#subscribers.some(({ compression, listeners }) => compression !== 'none' && listeners.size > 0)
  }

  get listeners(): readonly Listener[] {
    return this.#subscribers.flatMap(({ listeners }) => [...listeners])
  }

  add(listener: Listener): void {
    const { transport, compression } = listener
    let subscribers = this.#subscribersLike(listener)
    if (!subscribers) {
      subscribers = { name: 'live', transport, compression, listeners: new Set(), sent: 0 }
      this.#subscribers.push(subscribers)
    }
    subscribers.listeners.add(listener)
    listener.goLive(subscribers)
  }

  remove(listener: Listener): void {
    this.#subscribersLike(listener)?.listeners.delete(listener)
  }

  /** Writes once to each listener that keeps up. Without a backlog it reads only the outlet: each other object is a cache miss. */
  deliver(batch: MatchedBatch, backlogs: BacklogCheck, buffer: ReusedBuffer): void {
    const frames = batch.framesFor(this.tokens)
    if (frames.length === 0) return
    for (const subscribers of this.#subscribers) {
      if (subscribers.listeners.size === 0) continue
      const bytes = buffer.join(encodeBatch(frames, subscribers))
      let hasBacklog = false
      for (const listener of subscribers.listeners) {
        const { outlet } = listener
        if (outlet.backlog > 0 && !backlogs.mayWrite(listener)) continue
        outlet.write(bytes)
        if (outlet.backlog === 0) continue
        backlogs.hold(listener, bytes)
        hasBacklog = true
      }
      subscribers.sent += frames.length
      if (hasBacklog) buffer.keep()
    }
  }

  #subscribersLike({ transport, compression }: Listener): Subscribers | undefined {
    return this.#subscribers.find((one) => one.transport === transport && one.compression === compression)
  }
}
