import type { TapePosition } from '../../protocol/position.ts'
import type { Entry } from '../../tape/tape.ts'
import { deflateFrames } from '../transport/deflate.ts'
import { encode, type Transport } from '../transport/encode.ts'
import { KeyHistories, type TapeLookup } from './key-history.ts'
import { sealedView } from './sealed-view.ts'

/** An update in the bytes of each transport. Bytes and key lookups are made once, on first use. */
export class Frame {
  readonly seq: number
  /** Its index among the updates that the sealed view emits before a seal; null for an update of the tape itself. */
  readonly n: number | null
  readonly entry: Entry
  readonly #tape: TapeLookup
  readonly #bytesByTransport: Partial<Record<Transport, Buffer>> = {}
  #deflatedBytes: Buffer | undefined
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

  /** The update as a WebSocket message that is compressed alone. */
  get deflatedBytes(): Buffer {
    this.#deflatedBytes ??= Buffer.concat(deflateFrames([this.entry.text]))
    return this.#deflatedBytes
  }

  /** The history of the keys that the update names. */
  get keyHistories(): KeyHistories {
    this.#keyHistories ??= new KeyHistories(this.entry, this.#tape)
    return this.#keyHistories
  }

  /** What the sealed view emits in place of this update. */
  get sealedViewFrames(): readonly Frame[] {
    this.#sealedViewFrames ??= sealedView(this.entry, this.keyHistories).map((entry) =>
      entry.n === null ? this : new Frame(entry, this.#tape, entry.n),
    )
    return this.#sealedViewFrames
  }
}

export const isAfter = ({ seq, n }: Frame, position: TapePosition): boolean =>
  seq > position.seq || (seq === position.seq && position.n !== null && (n === null || n > position.n))

export const concatBytes = (frames: readonly Frame[], transport: Transport): Buffer => {
  const [only, ...more] = frames
  if (only && more.length === 0) return only.bytes(transport)
  return Buffer.concat(frames.map((frame) => frame.bytes(transport)))
}
