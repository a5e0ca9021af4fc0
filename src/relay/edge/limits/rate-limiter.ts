import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { KeyLimits } from '../../config/api-key-settings.ts'
import { RateBucket } from './rate-bucket.ts'
import type { SharedUsage } from './shared-usage.ts'

/** Limit of remembered addresses. Beyond it, the one that was idle longest is forgotten, and gets a full bucket again. */
const ADDRESSES_BOUND = 50_000
/** Share of the requests that may be eth_getLogs, the costliest method for a node. */
const LOGS_SHARE = 0.2

type Buckets = { readonly all: RateBucket; readonly logs: RateBucket }

/** A full bucket allows as many requests at once as the rate allows in this time, and at least `atOnce`. */
const CAPACITY_SECONDS = 2

type RateBounds = {
  readonly perSecond: number
  readonly atOnce: number
  /** Counts the requests to all processes on one port; null if there is only one. */
  readonly shared?: SharedUsage | null
  /** Returns the limits of a client with an API key. */
  readonly limitsOf?: (client: string) => KeyLimits | undefined
}

/** Limits the requests of each address. Requests for logs also count in a bucket of their own. */
export class RateLimiter {
  readonly #bounds: RateBounds
  readonly #byAddress = new BoundedMap<string, Buckets>(ADDRESSES_BOUND)

  constructor(bounds: RateBounds) {
    this.#bounds = bounds
  }

  /**
   * Counts requests, and returns 0. If they exceed the rate, counts none and returns the milliseconds after which they would not.
   * Only the bucket for logs counts `prepaid` ones.
   */
  take(address: string, methods: readonly string[], now: number, prepaid = 0): number {
    const { shared } = this.#bounds
    if (!shared) return takeFrom(this.#bucketsOf(address, now), methods, now, prepaid)
    let waitMs = 0
    shared.takeRate(address, (at, left) => {
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
    const { atOnce, limitsOf } = this.#bounds
    const perSecond = limitsOf?.(address)?.rpc_rate ?? this.#bounds.perSecond
    const capacity = Math.max(atOnce, CAPACITY_SECONDS * perSecond)
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
