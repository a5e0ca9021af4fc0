import { type ChainVersion, isStillValid, maxAgeMs, type Validity } from './answer-validity.ts'

/** Limit of the bytes of all cached answers. Beyond it, the least recently used ones are removed. */
const CACHE_BOUND_BYTES = 64 * 2 ** 20
/** Memory of a cached answer in addition to its bytes and its key. */
const OVERHEAD_BYTES = 512

type CacheEntry = {
  readonly result: Buffer
  readonly validity: Validity
  readonly version: ChainVersion
  readonly expiresAt: number
  readonly bytes: number
}

type AnswerOrigin = Pick<CacheEntry, 'validity' | 'version'> & { readonly requestedAt: number }

/** Answers that may be reused, least recently used first. */
export class AnswerCache {
  readonly #entries = new Map<string, CacheEntry>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  get(key: string, now: ChainVersion, uptime: number): Buffer | null {
    const entry = this.#entries.get(key)
    if (!entry) return null
    this.#delete(key, entry)
    if (uptime >= entry.expiresAt || !isStillValid(entry.validity, entry.version, now)) return null
    this.#insert(key, entry)
    return entry.result
  }

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

  /** Inserts at the end, so the first entry is the least recently used. */
  #insert(key: string, entry: CacheEntry): void {
    this.#entries.set(key, entry)
    this.#bytes += entry.bytes
  }

  #delete(key: string, entry: CacheEntry): void {
    this.#entries.delete(key)
    this.#bytes -= entry.bytes
  }
}

/** Copies a short text out of a larger block of memory, so the block can be freed. */
function compact(result: Buffer): Buffer {
  if (result.buffer.byteLength <= 2 * result.length) return result
  const copy = Buffer.allocUnsafeSlow(result.length)
  result.copy(copy)
  return copy
}
