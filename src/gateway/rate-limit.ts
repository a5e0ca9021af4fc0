import { Bucket } from '../edge/limits/token-bucket.ts'

/** Addresses remembered at most; beyond it whoever asked longest ago is taken for somebody new. */
const ADDRESSES_BOUND = 50_000
/** Of all that somebody may ask, so much may be for logs: they are what costs a node most. */
const LOGS_SHARE = 0.2

type Buckets = { readonly all: Bucket; readonly logs: Bucket }

/** How often each address may ask: a bucket of one second's worth. */
export class Rates {
  readonly #perSecond: number
  readonly #byAddress = new Map<string, Buckets>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Counts requests by their methods; counts none if that are too many, and says so. */
  take(address: string, methods: readonly string[], now: number): boolean {
    const { all, logs } = this.#bucketsOf(address, now)
    const forLogs = methods.filter((method) => method === 'eth_getLogs').length
    if (all.left(now) < methods.length || logs.left(now) < forLogs) return false
    return all.take(now, methods.length) && logs.take(now, forLogs)
  }

  #bucketsOf(address: string, now: number): Buckets {
    const known = this.#byAddress.get(address)
    const buckets = known ?? this.#full(now)
    // Whoever asked last stands last.
    if (known) this.#byAddress.delete(address)
    this.#byAddress.set(address, buckets)
    const [longestAgo] = this.#byAddress.keys()
    if (this.#byAddress.size > ADDRESSES_BOUND && longestAgo !== undefined) this.#byAddress.delete(longestAgo)
    return buckets
  }

  #full(now: number): Buckets {
    const forLogs = Math.max(1, Math.floor(this.#perSecond * LOGS_SHARE))
    return {
      all: new Bucket(this.#perSecond, this.#perSecond, now),
      logs: new Bucket(forLogs, forLogs, now),
    }
  }
}
