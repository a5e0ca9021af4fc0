import type { Hex } from '../../../lib/hex.ts'
import type { Frame } from '../select/frame.ts'

/** The frames of one delivery, also grouped by token. */
export class UpdateBatch {
  readonly frames: readonly Frame[]
  #byAddress: ReadonlyMap<Hex | null, readonly Frame[]> | null = null

  constructor(frames: readonly Frame[]) {
    this.frames = frames
  }

  /** The frames of each token. The entry of null contains the frames about all tokens. */
  get byAddress(): ReadonlyMap<Hex | null, readonly Frame[]> {
    this.#byAddress ??= Map.groupBy(this.frames, ({ entry }) => entry.update.address)
    return this.#byAddress
  }
}

/** The frames of a batch that match one set of options. The frames of a token are matched once, when an audience needs them. */
export class MatchedBatch {
  readonly #batch: UpdateBatch
  readonly #match: (frames: readonly Frame[]) => readonly Frame[]
  readonly #matchedByToken = new Map<Hex | null, readonly Frame[]>()
  #matchedAll: readonly Frame[] | null = null
  readonly #merged: Frame[] = []

  constructor(batch: UpdateBatch, match: (frames: readonly Frame[]) => readonly Frame[]) {
    this.#batch = batch
    this.#match = match
  }

  /** Returns the matching frames of these tokens (null for all), in tape order. The array is valid until the next call. */
  framesFor(tokens: ReadonlySet<Hex> | null): readonly Frame[] {
    if (tokens === null) {
      this.#matchedAll ??= this.#match(this.#batch.frames)
      return this.#matchedAll
    }
    this.#merged.length = 0
    if (tokens.size === 0) return this.#merged
    const { byAddress } = this.#batch
    if (tokens.size < byAddress.size) {
      for (const address of tokens) this.#add(this.#framesOf(address))
      this.#add(this.#framesOf(null))
    } else {
      for (const address of byAddress.keys()) {
        if (address === null || tokens.has(address)) this.#add(this.#framesOf(address))
      }
    }
    return sortBySeq(this.#merged)
  }

  #add(frames: readonly Frame[]): void {
    for (const frame of frames) this.#merged.push(frame)
  }

  #framesOf(address: Hex | null): readonly Frame[] {
    let frames = this.#matchedByToken.get(address)
    if (!frames) {
      frames = this.#match(this.#batch.byAddress.get(address) ?? [])
      this.#matchedByToken.set(address, frames)
    }
    return frames
  }
}

/** Limit of the length for which insertion sort is faster. Most batches of one audience are shorter. */
const INSERTION_SORT_BOUND = 64

/** Sorts frames into tape order. Frames with equal sequence numbers are about one token, and keep their order. */
function sortBySeq(frames: Frame[]): readonly Frame[] {
  if (frames.length > INSERTION_SORT_BOUND) return frames.sort((one, other) => one.seq - other.seq)
  for (let next = 1; next < frames.length; next += 1) {
    const frame = frames[next] as Frame
    let index = next
    for (; index > 0; index -= 1) {
      const previous = frames[index - 1] as Frame
      if (previous.seq <= frame.seq) break
      frames[index] = previous
    }
    frames[index] = frame
  }
  return frames
}
