import type { Place } from '../../protocol/position.ts'
import type { Entry } from '../../tape/tape.ts'
import { type Carrier, encode } from '../transport/encode.ts'
import { type Memory, Past } from './key-history.ts'
import { sealedView } from './sealed-view.ts'

/** An update in the bytes of each carrier, encoded once, by the first who asks; and so is whatever must be looked up for it. */
export class Frame {
  readonly seq: number
  /** Which it is of those that the sealed view gives before a seal; null for what the tape itself has. */
  readonly n: number | null
  readonly entry: Entry
  readonly #memory: Memory
  readonly #bytes: Partial<Record<Carrier, Buffer>> = {}
  #past: Past | null = null
  #sealed: readonly Frame[] | null = null

  constructor(entry: Entry, memory: Memory, n: number | null = null) {
    this.seq = entry.seq
    this.n = n
    this.entry = entry
    this.#memory = memory
  }

  bytes(carrier: Carrier): Buffer {
    this.#bytes[carrier] ??= encode(carrier, this.entry.update, this.entry.text)
    return this.#bytes[carrier]
  }

  /** What the tape holds of the keys that it names. */
  get past(): Past {
    this.#past ??= new Past(this.entry, this.#memory)
    return this.#past
  }

  /** What the sealed view has in its place. */
  get sealed(): readonly Frame[] {
    this.#sealed ??= sealedView(this.entry, this.past).map((given) =>
      given.n === null ? this : new Frame(given, this.#memory, given.n),
    )
    return this.#sealed
  }
}

/** Whether a frame stands after a place. */
export const isAfter = ({ seq, n }: Frame, place: Place): boolean =>
  seq > place.seq || (seq === place.seq && place.n !== null && (n === null || n > place.n))

/** The frames of a turn as one buffer. */
export const bytesOf = (frames: readonly Frame[], carrier: Carrier): Buffer => {
  const [only, ...more] = frames
  if (only && more.length === 0) return only.bytes(carrier)
  return Buffer.concat(frames.map((frame) => frame.bytes(carrier)))
}
