import { runAtOnce, type Steps } from '../../../lib/turns.ts'
import type { TapePosition } from '../../../protocol/position.ts'
import type { Transport } from '../../../protocol/transports.ts'
import type { Entry } from '../../tape/tape.ts'
import { deflateAlone, deflateFrames } from '../transport/deflate.ts'
import { encode } from '../transport/encode-message.ts'
import { includesToken, type Selection } from './compiled-selection.ts'
import { KeyHistories, KeyLookup, type TapeLookup } from './key-history.ts'
import { type EvictedUpdate, evictedBefore, sealedView } from './sealed-view.ts'

/** Length of a message from which on it is compressed alone, in steps, and written to one view at a time. Only seals are longer. */
const LONG_CHARS = 65_536

/** An update with its bytes in each transport. Bytes and lookups of keys are made once, when they are first needed. */
export class Frame {
  readonly seq: number
  /** Place of the key, from 1, in the seal before which the sealed view emits this update; null for an update of the tape. */
  readonly n: number | null
  readonly entry: Entry
  readonly #lookup: KeyLookup
  readonly #bytesByTransport: Partial<Record<Transport, Buffer>> = {}
  #deflatedBytes: Buffer | undefined
  #deflatedBatch: { readonly frames: readonly Frame[]; readonly bytes: readonly Buffer[] } | null = null
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

  /** Does not read the text of what the sealed view emits before a seal, which is serialized when it is written. */
  get isLong(): boolean {
    return this.n === null && this.entry.text.length > LONG_CHARS
  }

  /** The update as a WebSocket message that is compressed alone. Slow for a long message unless `deflate` has ended. */
  get deflatedBytes(): Buffer {
    this.#deflatedBytes ??= runAtOnce(deflateAlone(this.entry.text))
    return this.#deflatedBytes
  }

  *deflate(): Steps<void> {
    this.#deflatedBytes ??= yield* deflateAlone(this.entry.text)
  }

  /** Returns frames that begin with this one, compressed together. Audiences that receive the same frames share the bytes. */
  deflatedBatch(frames: readonly Frame[]): readonly Buffer[] {
    const known = this.#deflatedBatch
    if (known?.frames.length === frames.length && known.frames.every((frame, index) => frame === frames[index])) return known.bytes
    const bytes = deflateFrames(frames.map(({ entry }) => entry.text))
    this.#deflatedBatch = { frames: [...frames], bytes }
    return bytes
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

  /** Facts that the sealed view cannot emit before this seal, because eviction removed them. Slow unless `lookUpEvicted` has ended. */
  get evicted(): readonly EvictedUpdate[] {
    return this.#evicted ?? runAtOnce(this.lookUpEvicted())
  }

  *lookUpEvicted(): Steps<readonly EvictedUpdate[]> {
    const { update } = this.entry
    this.#evicted ??= update.type === 'seal' ? yield* evictedBefore(update, this.keyHistories) : []
    return this.#evicted
  }

  /** Number of updates that the sealed view emits for this frame. Returns 1 as long as `sealedView` has not determined them. */
  get sealedViewSize(): number {
    return this.#sealedViewFrames?.length ?? 1
  }

  /** Yields frames of this update, each of which emits at most `size` updates of the sealed view. Keeps none that it has yielded. */
  *takeSealedViewParts(size: number): Generator<Frame, void> {
    if (!this.#sealedViewFrames) return yield this
    const frames = [...this.#sealedViewFrames]
    this.#sealedViewFrames = null
    while (frames.length > 0) {
      const taken = frames.splice(0, size)
      const part = new Frame(this.entry, this.#lookup, taken.at(-1)?.n)
      part.#sealedViewFrames = taken
      part.#evicted = this.evicted
      yield part
    }
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
