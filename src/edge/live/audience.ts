import type { Hex } from '../../protocol/fields.ts'
import type { Hearing } from '../select/match.ts'
import type { Carrier } from '../transport/encode.ts'
import type { HeardTurn } from './batch.ts'
import type { Listener } from './listener.ts'
import type { Scratch } from './write-buffer.ts'

/** All audiences with the same options: what they hear of a token is asked once for all of them. */
export type Company = {
  readonly name: string
  /** Whether its options have value filters, of which there may be only so many. */
  readonly filtered: boolean
  readonly hear: Hearing
  readonly audiences: Map<string, Audience>
}

/** All listeners with the same selection: each carrier's bytes are put together once for all of them. */
export class Audience {
  readonly company: Company
  readonly name: string
  readonly #tokens: ReadonlySet<Hex> | null
  readonly #byCarrier = new Map<Carrier, Set<Listener>>()

  constructor(company: Company, name: string, tokens: ReadonlySet<Hex> | null) {
    this.company = company
    this.name = name
    this.#tokens = tokens
  }

  get size(): number {
    let size = 0
    for (const listeners of this.#byCarrier.values()) size += listeners.size
    return size
  }

  add(listener: Listener): void {
    const listeners = this.#byCarrier.get(listener.carrier)
    if (listeners) listeners.add(listener)
    else this.#byCarrier.set(listener.carrier, new Set([listener]))
  }

  remove(listener: Listener): void {
    this.#byCarrier.get(listener.carrier)?.delete(listener)
  }

  /** One buffer for each carrier, one write for each listener that may be written to. */
  deliver(turn: HeardTurn, end: number, mayWrite: (listener: Listener) => boolean, scratch: Scratch): void {
    const frames = turn.by(this.#tokens)
    if (frames.length === 0) return
    for (const [carrier, listeners] of this.#byCarrier) {
      if (listeners.size === 0) continue
      const bytes = scratch.join(frames, carrier)
      let kept = false
      for (const listener of listeners) {
        if (!mayWrite(listener)) continue
        listener.offer(bytes, end, frames.length)
        kept ||= listener.outlet.backlog > 0
      }
      if (kept) scratch.keep()
    }
  }
}
