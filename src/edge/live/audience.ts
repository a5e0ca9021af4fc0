import type { Hex } from '../../protocol/fields.ts'
import type { Matcher } from '../select/match.ts'
import type { Transport } from '../transport/encode.ts'
import type { MatchedBatch } from './batch.ts'
import type { Listener } from './listener.ts'
import type { WriteBuffer } from './write-buffer.ts'

/** All audiences with the same options. Matching runs once per token for all of them. */
export type FilterGroup = {
  readonly name: string
  /** Whether its options have value filters; the number of such selections is bounded. */
  readonly isFiltered: boolean
  readonly match: Matcher
  readonly audiences: Map<string, Audience>
}

/** All listeners with the same selection. Each transport's bytes are joined once for all of them. */
export class Audience {
  readonly group: FilterGroup
  readonly name: string
  readonly #tokens: ReadonlySet<Hex> | null
  readonly #byTransport = new Map<Transport, Set<Listener>>()

  constructor(group: FilterGroup, name: string, tokens: ReadonlySet<Hex> | null) {
    this.group = group
    this.name = name
    this.#tokens = tokens
  }

  get size(): number {
    let size = 0
    for (const listeners of this.#byTransport.values()) size += listeners.size
    return size
  }

  add(listener: Listener): void {
    const listeners = this.#byTransport.get(listener.transport)
    if (listeners) listeners.add(listener)
    else this.#byTransport.set(listener.transport, new Set([listener]))
  }

  remove(listener: Listener): void {
    this.#byTransport.get(listener.transport)?.delete(listener)
  }

  /** Builds one buffer per transport and makes one write per listener that keeps up. */
  deliver(batch: MatchedBatch, endSeq: number, mayWrite: (listener: Listener) => boolean, writeBuffer: WriteBuffer): void {
    const frames = batch.framesFor(this.#tokens)
    if (frames.length === 0) return
    for (const [transport, listeners] of this.#byTransport) {
      if (listeners.size === 0) continue
      const bytes = writeBuffer.join(frames, transport)
      let hasBacklog = false
      for (const listener of listeners) {
        if (!mayWrite(listener)) continue
        listener.send(bytes, endSeq, frames.length)
        hasBacklog ||= listener.outlet.backlog > 0
      }
      if (hasBacklog) writeBuffer.keep()
    }
  }
}
