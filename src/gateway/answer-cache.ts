import type { Moment } from './chain-state.ts'

/** Answers held at most; beyond it those that were asked for longest ago go first. */
const MEMORY_BOUND_BYTES = 64 * 2 ** 20
/** What an answer costs beside its bytes and its question. */
const OVERHEAD_BYTES = 512

/** What an answer outlives nothing of: moves of the pending state, new heads, or only blocks that are taken back. */
export type Keeping = 'pending' | 'head' | 'sealed'

/** For how long since it was asked an answer may be given again, whatever the chain did or did not. */
export const keptMs: Readonly<Record<Keeping, number>> = {
  pending: 200,
  head: 60_000,
  sealed: 3_600_000,
}

/** How often the chain had moved when a question was asked. */
export type Stamp = Pick<Moment, 'era' | 'heads' | 'moves'>

/** Whether nothing happened between two moments that an answer would not outlive. */
export const holds = (keeping: Keeping, one: Stamp, other: Stamp): boolean =>
  one.era === other.era &&
  (keeping === 'sealed' || (one.heads === other.heads && (keeping === 'head' || one.moves === other.moves)))

type Kept = {
  readonly text: Buffer
  readonly keeping: Keeping
  readonly stamp: Stamp
  readonly until: number
  readonly bytes: number
}

type Asked = Pick<Kept, 'keeping' | 'stamp'> & { readonly askedAt: number }

/** Answers that may be given again. */
export class Memory {
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** The answer to a question if it still holds. */
  recall(key: string, now: Stamp, uptime: number): Buffer | null {
    const kept = this.#kept.get(key)
    if (!kept) return null
    this.#drop(key, kept)
    if (uptime >= kept.until || !holds(kept.keeping, kept.stamp, now)) return null
    this.#put(key, kept)
    return kept.text
  }

  /** Keeps the answer to a question, and what was so when it was asked. */
  keep(key: string, given: Buffer, { keeping, stamp, askedAt }: Asked): void {
    const before = this.#kept.get(key)
    if (before) this.#drop(key, before)
    const text = alone(given)
    const bytes = text.length + 2 * key.length + OVERHEAD_BYTES
    this.#put(key, { text, keeping, stamp, until: askedAt + keptMs[keeping], bytes })
    for (const [oldest, kept] of this.#kept) {
      if (this.#bytes <= MEMORY_BOUND_BYTES) return
      this.#drop(oldest, kept)
    }
  }

  /** Whoever was asked for last stands last. */
  #put(key: string, kept: Kept): void {
    this.#kept.set(key, kept)
    this.#bytes += kept.bytes
  }

  #drop(key: string, kept: Kept): void {
    this.#kept.delete(key)
    this.#bytes -= kept.bytes
  }
}

/** A short text may lie in a larger block of memory, which it would keep from being freed. */
function alone(text: Buffer): Buffer {
  if (text.buffer.byteLength <= 2 * text.length) return text
  const copy = Buffer.allocUnsafeSlow(text.length)
  text.copy(copy)
  return copy
}
