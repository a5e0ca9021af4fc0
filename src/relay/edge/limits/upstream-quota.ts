import type { UpstreamError } from '../../chain/rpc/upstream-error.ts'

/** The error codes with which providers complain about too many requests. */
const OVER_RATE_CODES: ReadonlySet<number> = new Set([-32012, -32016, -32017, -32024])
const TOO_MANY_STATUS = 429
/** Share of the recent rate that clients keep after the provider complains. */
const THROTTLED_SHARE = 0.5
/** Growth of the limit in each second without a complaint, as a share of the limit. */
const GROWTH_PER_SECOND = 0.1
/** Number of calls per second that the limit allows at least. */
const MIN_PER_SECOND = 5
/** Time from the last complaint of the provider to the end of the limit. */
const FORGET_MS = 60_000
/** Limit of the pause that a provider can ask for. */
const PAUSE_BOUND_MS = 5_000

/** Limits upstream calls of clients after the provider complains, since the relay's own calls use the quota of the provider too. */
export class UpstreamQuota {
  #currentSecond = 0
  #callsThisSecond = 0
  #callsLastSecond = 0
  #limitPerSecond = Number.POSITIVE_INFINITY
  #throttledAt = Number.NEGATIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY

  /** Counts one call; returns false, and counts nothing, if the call exceeds the limit now. */
  take(uptime: number): boolean {
    this.#advanceTo(uptime)
    if (uptime < this.#pausedUntil || this.#callsThisSecond >= this.#limitAt(uptime)) return false
    this.#callsThisSecond += 1
    return true
  }

  /** Lowers the limit if the error is a complaint about the rate. */
  recordError({ kind, detail, retryAfterMs }: UpstreamError, uptime: number): void {
    if (kind !== 'busy') return
    if (detail && detail.status !== TOO_MANY_STATUS && !OVER_RATE_CODES.has(detail.code)) return
    this.#advanceTo(uptime)
    // Several calls may fail in one second for one reason, so only the first complaint in a second lowers the limit.
    if (secondOf(this.#throttledAt) !== this.#currentSecond) {
      const recentCalls = Math.max(this.#callsThisSecond, this.#callsLastSecond)
      this.#limitPerSecond = Math.max(MIN_PER_SECOND, Math.min(recentCalls, this.#limitAt(uptime)) * THROTTLED_SHARE)
    }
    this.#throttledAt = uptime
    this.#pausedUntil = Math.max(this.#pausedUntil, uptime + Math.min(retryAfterMs ?? 0, PAUSE_BOUND_MS))
  }

  #limitAt(uptime: number): number {
    if (uptime - this.#throttledAt >= FORGET_MS) return Number.POSITIVE_INFINITY
    const seconds = Math.max(0, secondOf(uptime) - secondOf(this.#throttledAt) - 1)
    return this.#limitPerSecond * (1 + GROWTH_PER_SECOND) ** seconds
  }

  #advanceTo(uptime: number): void {
    const second = secondOf(uptime)
    if (second === this.#currentSecond) return
    this.#callsLastSecond = second === this.#currentSecond + 1 ? this.#callsThisSecond : 0
    this.#callsThisSecond = 0
    this.#currentSecond = second
  }
}

const secondOf = (uptime: number): number => Math.floor(uptime / 1_000)
