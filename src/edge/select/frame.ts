import type { TapePosition } from '../../protocol/position.ts'
import type { Entry } from '../../tape/tape.ts'
import { encode, type Transport } from '../transport/encode.ts'
import { KeyHistories, type TapeLookup } from './key-history.ts'
import { sealedView } from './sealed-view.ts'

/** An update in the bytes of each carrier, encoded once, by the first who asks; and so is whatever must be looked up for it. */
export class Frame {
  readonly seq: number
  /** Which it is of those that the sealed view gives before a seal; null for what the tape itself has. */
  readonly n: number | null
  readonly entry: Entry
  readonly #tape: TapeLookup
  readonly #bytesByTransport: Partial<Record<Transport, Buffer>> = {}
  #keyHistories: KeyHistories | null = null
  #sealedViewFrames: readonly Frame[] | null = null

  constructor(entry: Entry, tape: TapeLookup, n: number | null = null) {
    this.seq = entry.seq
    this.n = n
    this.entry = entry
    this.#tape = tape
  }

  bytes(transport: Transport): Buffer {
    this.#bytesByTransport[transport] ??= encode(transport, this.entry.update, this.entry.text)
    return this.#bytesByTransport[transport]
  }

  /** What the tape holds of the keys that it names. */
  get keyHistories(): KeyHistories {
    this.#keyHistories ??= new KeyHistories(this.entry, this.#tape)
    return this.#keyHistories
  }

  /** What the sealed view has in its place. */
  get sealedViewFrames(): readonly Frame[] {
    this.#sealedViewFrames ??= sealedView(this.entry, this.keyHistories).map((entry) =>
      entry.n === null ? this : new Frame(entry, this.#tape, entry.n),
    )
    return this.#sealedViewFrames
  }
}

/** Whether a frame stands after a place. */
export const isAfter = ({ seq, n }: Frame, position: TapePosition): boolean =>
  seq > position.seq || (seq === position.seq && position.n !== null && (n === null || n > position.n))

/** The frames of a turn as one buffer. */
export const concatBytes = (frames: readonly Frame[], transport: Transport): Buffer => {
  const [only, ...more] = frames
  if (only && more.length === 0) return only.bytes(transport)
  return Buffer.concat(frames.map((frame) => frame.bytes(transport)))
}
