import type { Hex } from '../../protocol/fields.ts'
import type { Frame } from '../select/frame.ts'
import type { Hearing } from '../select/match.ts'

/** What was written in one stroke: all of it, and what is about one token. */
export class Turn {
  readonly frames: readonly Frame[]
  #byAddress: ReadonlyMap<Hex | null, readonly Frame[]> | null = null

  constructor(frames: readonly Frame[]) {
    this.frames = frames
  }

  /** The frames of each token; under null those that concern every token. */
  get byAddress(): ReadonlyMap<Hex | null, readonly Frame[]> {
    this.#byAddress ??= Map.groupBy(this.frames, ({ entry }) => entry.update.address)
    return this.#byAddress
  }
}

/** What those with the same options hear of a turn, asked once for all of them and only of the tokens that somebody named. */
export class HeardTurn {
  readonly #turn: Turn
  readonly #hear: Hearing
  readonly #heard = new Map<Hex | null, readonly Frame[]>()
  #all: readonly Frame[] | null = null
  readonly #merged: Frame[] = []

  constructor(turn: Turn, hear: Hearing) {
    this.#turn = turn
    this.#hear = hear
  }

  /** What is heard by who named these tokens, or all of them, in the order of the tape; good until the next call. */
  by(tokens: ReadonlySet<Hex> | null): readonly Frame[] {
    if (tokens === null) return this.#ofAll()
    this.#merged.length = 0
    if (tokens.size === 0) return this.#merged
    const { byAddress } = this.#turn
    if (tokens.size < byAddress.size) {
      for (const address of tokens) this.#add(this.#of(address))
      this.#add(this.#of(null))
    } else {
      for (const address of byAddress.keys()) {
        if (address === null || tokens.has(address)) this.#add(this.#of(address))
      }
    }
    return inOrder(this.#merged)
  }

  #add(frames: readonly Frame[]): void {
    for (const frame of frames) this.#merged.push(frame)
  }

  #ofAll(): readonly Frame[] {
    this.#all ??= this.#hear(this.#turn.frames)
    return this.#all
  }

  #of(address: Hex | null): readonly Frame[] {
    let frames = this.#heard.get(address)
    if (!frames) {
      frames = this.#hear(this.#turn.byAddress.get(address) ?? [])
      this.#heard.set(address, frames)
    }
    return frames
  }
}

/** The usual turn of one listener is so short that putting each in its place is quicker than sorting. */
const FEW = 64

/** Puts frames in the order of the tape. What stands under one number is about one token and stays as it is. */
function inOrder(frames: Frame[]): readonly Frame[] {
  if (frames.length > FEW) return frames.sort((one, other) => one.seq - other.seq)
  for (let next = 1; next < frames.length; next += 1) {
    const frame = frames[next] as Frame
    let at = next
    for (; at > 0; at -= 1) {
      const before = frames[at - 1] as Frame
      if (before.seq <= frame.seq) break
      frames[at] = before
    }
    frames[at] = frame
  }
  return frames
}
