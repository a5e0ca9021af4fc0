import type { Hex } from '../protocol/parts.ts'
import type { Frame } from './frame.ts'
import type { Hearing } from './hearing.ts'

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

  constructor(turn: Turn, hear: Hearing) {
    this.#turn = turn
    this.#hear = hear
  }

  /** What is heard by who named these tokens, or all of them, in the order of the tape. */
  by(tokens: ReadonlySet<Hex> | null): readonly Frame[] {
    if (tokens === null) return this.#ofAll()
    if (tokens.size === 0) return []
    const { byAddress } = this.#turn
    const heard: (readonly Frame[])[] = []
    const add = (address: Hex | null) => {
      const frames = this.#of(address)
      if (frames.length > 0) heard.push(frames)
    }
    if (tokens.size < byAddress.size) {
      for (const address of tokens) add(address)
      add(null)
    } else {
      for (const address of byAddress.keys()) if (address === null || tokens.has(address)) add(address)
    }
    const [only = [], ...more] = heard
    // What stands under one number is about one token, so that its order is kept.
    return more.length === 0 ? only : heard.flat().sort((one, other) => one.seq - other.seq)
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
