import { BoundedMap } from '../../lib/bounded-map.ts'
import type { KeyLimits } from '../config/api-key-settings.ts'
import { RateBucket } from '../edge/limits/rate-bucket.ts'
import type { SharedUsage } from '../edge/limits/shared-usage.ts'
import { BATCH_BOUND } from './rpc-request-parser.ts'

/** Limit of remembered addresses. Beyond it, the one that was idle longest is forgotten, and gets a full bucket again. */
const ADDRESSES_BOUND = 50_000
/** Share of the requests that may be eth_getLogs, the costliest method for a node. */
const LOGS_SHARE = 0.2

type Buckets = { readonly all: RateBucket; readonly logs: RateBucket }

/** A full bucket allows as many requests at once as the rate allows in this time, and at least a whole batch. */
const CAPACITY_SECONDS = 2

/** Limits the requests of each address. Requests for logs also count in a bucket of their own. */
export class RateLimiter {
  readonly #perSecond: number
  readonly #byAddress = new BoundedMap<string, Buckets>(ADDRESSES_BOUND)
  readonly #shared: SharedUsage | null
  readonly #limitsOf: (client: string) => KeyLimits | undefined

  /** `shared` counts the requests to all processes on one port. `limitsOf` returns the rate of a client with an API key. */
  constructor(
    perSecond: number,
    shared: SharedUsage | null = null,
    limitsOf: (client: string) => KeyLimits | undefined = () => undefined,
  ) {
    this.#perSecond = perSecond
    this.#limitsOf = limitsOf
    this.#shared = shared
  }

  /**
   * Counts requests, and returns 0. If they exceed the rate, counts none and returns the milliseconds after which they would not.
   * Only the bucket for logs counts `prepaid` ones.
   */
  take(address: string, methods: readonly string[], now: number, prepaid = 0): number {
    if (!this.#shared) return takeFrom(this.#bucketsOf(address, now), methods, now, prepaid)
    let waitMs = 0
    this.#shared.takeRate(address, (at, left) => {
      const buckets = this.#createBuckets(address, left?.at ?? at, left)
      waitMs = takeFrom(buckets, methods, at, prepaid)
      return waitMs > 0 ? null : { all: buckets.all.available(at), logs: buckets.logs.available(at), at }
    })
    return waitMs
  }

  #bucketsOf(address: string, now: number): Buckets {
    const buckets = this.#byAddress.get(address) ?? this.#createBuckets(address, now)
    this.#byAddress.refresh(address, buckets)
    return buckets
  }

  #createBuckets(address: string, now: number, left?: { readonly all: number; readonly logs: number }): Buckets {
    const perSecond = this.#limitsOf(address)?.rpc_rate ?? this.#perSecond
    const capacity = Math.max(BATCH_BOUND, CAPACITY_SECONDS * perSecond)
    return {
      all: new RateBucket(capacity, perSecond, now, left?.all),
      logs: new RateBucket(Math.floor(capacity * LOGS_SHARE), perSecond * LOGS_SHARE, now, left?.logs),
    }
  }
}

function takeFrom({ all, logs }: Buckets, methods: readonly string[], now: number, prepaid: number): number {
  const logRequests = methods.filter((method) => method === 'eth_getLogs').length
  const unpaid = Math.max(0, methods.length - prepaid)
  if (all.available(now) < unpaid || logs.available(now) < logRequests)
    return Math.max(1, all.waitMs(now, unpaid), logs.waitMs(now, logRequests))
  all.take(now, unpaid)
  logs.take(now, logRequests)
  return 0
}
