import type { UpstreamError } from '../chain/rpc/error.ts'

/** By these codes a provider says that it was asked too often, whatever the question. */
const OVER_RATE_CODES: ReadonlySet<number> = new Set([-32012, -32016, -32017, -32024])
const TOO_MANY_STATUS = 429

/** What is left to clients once a provider said that it is too much, and by which share that grows each second. */
const THROTTLED_SHARE = 0.5
const GROWTH_PER_SECOND = 0.1
/** So much is left to them at least; and so long without a complaint, nothing is withheld any more. */
const MIN_PER_SECOND = 5
const FORGET_MS = 60_000
/** A provider may ask for a rest; clients wait no longer than this. */
const PAUSE_BOUND_MS = 5_000

/**
 * How often clients' questions may go upstream: as often as they come, until the upstream says that it is too much. Then
 * half of what went before, slowly more again: what the relay itself must know comes from the same quota.
 */
export class UpstreamQuota {
  #currentSecond = 0
  /** Questions in this second and in the one before. */
  #callsThisSecond = 0
  #callsLastSecond = 0
  #limitPerSecond = Number.POSITIVE_INFINITY
  #throttledAt = Number.NEGATIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY

  /** Takes one; false if it would be too much now. */
  take(uptime: number): boolean {
    this.#advanceTo(uptime)
    if (uptime < this.#pausedUntil || this.#callsThisSecond >= this.#limitAt(uptime)) return false
    this.#callsThisSecond += 1
    return true
  }

  /** A question was answered with this. */
  recordError({ kind, detail, retryAfterMs }: UpstreamError, uptime: number): void {
    if (kind !== 'busy') return
    if (detail && detail.status !== TOO_MANY_STATUS && !OVER_RATE_CODES.has(detail.code)) return
    this.#advanceTo(uptime)
    // Those that were under way with it say the same of the same second.
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
