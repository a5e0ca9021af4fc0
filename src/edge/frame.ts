import type { Entry } from '../tape/tape.ts'
import { type Carrier, encode } from './carrier.ts'

/** An update in the bytes of each carrier, encoded once, by the first who asks. */
export class Frame {
  readonly seq: number
  readonly entry: Entry
  readonly #bytes = new Map<Carrier, Buffer>()

  constructor(entry: Entry) {
    this.seq = entry.seq
    this.entry = entry
  }

  bytes(carrier: Carrier): Buffer {
    let bytes = this.#bytes.get(carrier)
    if (!bytes) {
      bytes = encode(carrier, this.entry.update, this.entry.text)
      this.#bytes.set(carrier, bytes)
    }
    return bytes
  }
}

/** The frames of a turn as one buffer. */
export const bytesOf = (frames: readonly Frame[], carrier: Carrier): Buffer => {
  const [only, ...more] = frames
  if (only && more.length === 0) return only.bytes(carrier)
  return Buffer.concat(frames.map((frame) => frame.bytes(carrier)))
}
