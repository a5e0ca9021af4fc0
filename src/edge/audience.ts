import type { Carrier } from './carrier.ts'
import { bytesOf, type Frame } from './frame.ts'
import { type Hearing, hearing } from './hearing.ts'
import type { Listener } from './listener.ts'
import { hasValueFilter, type Selection } from './selection.ts'

/** All listeners with the same selection: each carrier's bytes are put together once for all of them. */
export class Audience {
  readonly #hear: Hearing
  /** Whether its selection has value filters, of which there may be only so many. */
  readonly filtered: boolean
  readonly #byCarrier = new Map<Carrier, Set<Listener>>()

  constructor(selection: Selection) {
    this.#hear = hearing(selection)
    this.filtered = hasValueFilter(selection)
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
  deliver(turn: readonly Frame[], end: number, mayWrite: (listener: Listener) => boolean): void {
    const frames = this.#hear(turn)
    if (frames.length === 0) return
    for (const [carrier, listeners] of this.#byCarrier) {
      if (listeners.size === 0) continue
      const bytes = bytesOf(frames, carrier)
      for (const listener of listeners) if (mayWrite(listener)) listener.offer(bytes, end, frames.length)
    }
  }
}
