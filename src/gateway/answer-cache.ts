import type { ChainState } from './chain-state.ts'

/** Answers held at most; beyond it those that were asked for longest ago go first. */
const CACHE_BOUND_BYTES = 64 * 2 ** 20
/** What an answer costs beside its bytes and its question. */
const OVERHEAD_BYTES = 512

/** What an answer outlives nothing of: moves of the pending state, new heads, or only blocks that are taken back. */
export type Validity = 'pending' | 'head' | 'sealed'

/** For how long since it was asked an answer may be given again, whatever the chain did or did not. */
export const maxAgeMs: Readonly<Record<Validity, number>> = {
  pending: 200,
  head: 60_000,
  sealed: 3_600_000,
}

/** How often the chain had moved when a question was asked. */
export type ChainVersion = Pick<ChainState, 'reorgCount' | 'headCount' | 'pendingCount'>

/** Whether nothing happened between two moments that an answer would not outlive. */
export const isStillValid = (validity: Validity, one: ChainVersion, other: ChainVersion): boolean =>
  one.reorgCount === other.reorgCount &&
  (validity === 'sealed' ||
    (one.headCount === other.headCount && (validity === 'head' || one.pendingCount === other.pendingCount)))

type CacheEntry = {
  readonly result: Buffer
  readonly validity: Validity
  readonly version: ChainVersion
  readonly expiresAt: number
  readonly bytes: number
}

type AnswerOrigin = Pick<CacheEntry, 'validity' | 'version'> & { readonly requestedAt: number }

/** Answers that may be given again. */
export class AnswerCache {
  readonly #entries = new Map<string, CacheEntry>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** The answer to a question if it still holds. */
  get(key: string, now: ChainVersion, uptime: number): Buffer | null {
    const entry = this.#entries.get(key)
    if (!entry) return null
    this.#delete(key, entry)
    if (uptime >= entry.expiresAt || !isStillValid(entry.validity, entry.version, now)) return null
    this.#insert(key, entry)
    return entry.result
  }

  /** Keeps the answer to a question, and what was so when it was asked. */
  set(key: string, received: Buffer, { validity, version, requestedAt }: AnswerOrigin): void {
    const previous = this.#entries.get(key)
    if (previous) this.#delete(key, previous)
    const result = compact(received)
    const bytes = result.length + 2 * key.length + OVERHEAD_BYTES
    this.#insert(key, { result, validity, version, expiresAt: requestedAt + maxAgeMs[validity], bytes })
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes <= CACHE_BOUND_BYTES) return
      this.#delete(oldest, entry)
    }
  }

  /** Whoever was asked for last stands last. */
  #insert(key: string, entry: CacheEntry): void {
    this.#entries.set(key, entry)
    this.#bytes += entry.bytes
  }

  #delete(key: string, entry: CacheEntry): void {
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
  }
}

/** A short text may lie in a larger block of memory, which it would keep from being freed. */
function compact(result: Buffer): Buffer {
  if (result.buffer.byteLength <= 2 * result.length) return result
  const copy = Buffer.allocUnsafeSlow(result.length)
  result.copy(copy)
  return copy
}
