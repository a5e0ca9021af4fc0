import { chunk, type Steps } from '../../../lib/turns.ts'
import type { TapePosition } from '../../../protocol/position.ts'
import type { Transport } from '../../../protocol/transports.ts'
import type { Entry } from '../../tape/tape.ts'
import { deflateFrames } from '../transport/deflate.ts'
import { encode } from '../transport/encode-message.ts'
import { includesToken, type Selection } from './compiled-selection.ts'
import { KeyHistories, KeyLookup, type TapeLookup } from './key-history.ts'
import { type EvictedUpdate, evictedBefore, sealedView } from './sealed-view.ts'

/** An update with its bytes in each transport. Bytes and lookups of keys are made once, when they are first needed. */
export class Frame {
  readonly seq: number
  /** Place of the key, from 1, in the seal before which the sealed view emits this update; null for an update of the tape. */
  readonly n: number | null
  readonly entry: Entry
  readonly #lookup: KeyLookup
  readonly #bytesByTransport: Partial<Record<Transport, Buffer>> = {}
  #deflatedBytes: Buffer | undefined
  #keyHistories: KeyHistories | null = null
  #sealedViewFrames: readonly Frame[] | null = null
  #evicted: readonly EvictedUpdate[] | null = null

  constructor(entry: Entry, lookup: KeyLookup, n: number | null = null) {
    this.seq = entry.seq
    this.n = n
    this.entry = entry
    this.#lookup = lookup
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

  get keyHistories(): KeyHistories {
    this.#keyHistories ??= new KeyHistories(this.entry, this.#lookup)
    return this.#keyHistories
  }

  *sealedView(): Steps<readonly Frame[]> {
    if (!this.#sealedViewFrames) {
      const entries = yield* sealedView(this.entry, this.keyHistories)
      this.#sealedViewFrames = entries.map((entry) => (entry.n === null ? this : new Frame(entry, this.#lookup, entry.n)))
    }
    return this.#sealedViewFrames
  }

  /** Facts that the sealed view cannot emit before this seal, because eviction removed them. Slow unless `sealedView` has ended. */
  get evicted(): readonly EvictedUpdate[] {
    const { update } = this.entry
    this.#evicted ??= update.type === 'seal' ? evictedBefore(update, this.keyHistories) : []
    return this.#evicted
  }

  /** Number of updates that the sealed view emits for this frame. Returns 1 as long as `sealedView` has not determined them. */
  get sealedViewSize(): number {
    return this.#sealedViewFrames?.length ?? 1
  }

  /** Returns several frames of this update. Each one emits at most `size` updates of the sealed view. */
  sealedViewParts(size: number): readonly Frame[] {
    return chunk(this.#sealedViewFrames ?? [], size).map((frames) => {
      const part = new Frame(this.entry, this.#lookup, frames.at(-1)?.n)
      part.#sealedViewFrames = frames
      part.#evicted = this.evicted
      return part
    })
  }
}

/** Makes frames that share one lookup of keys. */
export function framesOf(entries: readonly Entry[], tape: TapeLookup): readonly Frame[] {
  const lookup = new KeyLookup(tape)
  return entries.map((entry) => new Frame(entry, lookup))
}

export const isAfter = ({ seq, n }: TapePosition, position: TapePosition): boolean =>
  seq > position.seq || (seq === position.seq && position.n !== null && (n === null || n > position.n))

export const isBefore = ({ seq, n }: TapePosition, position: TapePosition): boolean =>
  seq < position.seq || (seq === position.seq && n !== null && (position.n === null || n < position.n))

/** Returns the positions of updates that a selection lacks in the sealed view of these frames, because eviction removed them. */
export function evictedOf(frames: readonly Frame[], selection: Selection, after: TapePosition): readonly TapePosition[] {
  return frames
    .filter(({ entry }) => includesToken(selection, entry.update.address))
    .flatMap(({ seq, evicted }) => evicted.flatMap(({ n, type }) => (selection.options.types.includes(type) ? [{ seq, n }] : [])))
    .filter((position) => isAfter(position, after))
}

export const concatBytes = (frames: readonly Frame[], transport: Transport): Buffer => {
  const [only, ...more] = frames
  if (only && more.length === 0) return only.bytes(transport)
  return Buffer.concat(frames.map((frame) => frame.bytes(transport)))
}
