import { BoundedMap } from '../bounded-map.ts'
import { TokenBucket } from '../edge/limits/token-bucket.ts'
import { BATCH_BOUND } from './request.ts'

/** Addresses remembered at most. Beyond it, the one that was idle longest starts with a full bucket again. */
const ADDRESSES_BOUND = 50_000
/** The share of requests that may be eth_getLogs, the costliest for a node. */
const LOGS_SHARE = 0.2

type Buckets = { readonly all: TokenBucket; readonly logs: TokenBucket }

/** The bucket holds two seconds' worth, and a whole batch at least. */
const CAPACITY_SECONDS = 2

/** How often each address may ask. Requests for logs count in a bucket of their own too. */
export class RateLimiter {
  readonly #perSecond: number
  readonly #byAddress = new BoundedMap<string, Buckets>(ADDRESSES_BOUND)

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /**
   * Counts requests by their methods; false, and none is counted, if they exceed the rate. As many as are `prepaid`
   * were counted before, but not those for logs among them.
   */
  take(address: string, methods: readonly string[], now: number, prepaid = 0): boolean {
    const { all, logs } = this.#bucketsOf(address, now)
    const logRequests = methods.filter((method) => method === 'eth_getLogs').length
    const unpaid = Math.max(0, methods.length - prepaid)
    if (all.available(now) < unpaid || logs.available(now) < logRequests) return false
    return all.take(now, unpaid) && logs.take(now, logRequests)
  }

  #bucketsOf(address: string, now: number): Buckets {
    const buckets = this.#byAddress.get(address) ?? this.#createBuckets(now)
    this.#byAddress.refresh(address, buckets)
    return buckets
  }

  #createBuckets(now: number): Buckets {
    const capacity = Math.max(BATCH_BOUND, CAPACITY_SECONDS * this.#perSecond)
    return {
      all: new TokenBucket(capacity, this.#perSecond, now),
      logs: new TokenBucket(Math.floor(capacity * LOGS_SHARE), this.#perSecond * LOGS_SHARE, now),
    }
  }
}
