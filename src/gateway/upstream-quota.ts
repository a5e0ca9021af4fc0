import type { UpstreamError } from '../chain/rpc/error.ts'

/** By these codes a provider says that it was asked too often, whatever the question. */
const OVER_RATE_CODES: ReadonlySet<number> = new Set([-32012, -32016, -32017, -32024])
const TOO_MANY_STATUS = 429

/** What is left to clients once a provider said that it is too much, and by which share that grows each second. */
const SHARE_LEFT = 0.5
const GROWTH_PER_SECOND = 0.1
/** So much is left to them at least; and so long without a complaint, nothing is withheld any more. */
const LEAST_PER_SECOND = 5
const FORGET_MS = 60_000
/** A provider may ask for a rest; clients wait no longer than this. */
const REST_BOUND_MS = 5_000

/**
 * How often clients' questions may go upstream: as often as they come, until the upstream says that it is too much. Then
 * half of what went before, slowly more again: what the relay itself must know comes from the same quota.
 */
export class Allowance {
  #second = 0
  /** Questions in this second and in the one before. */
  #asked = 0
  #before = 0
  #perSecond = Number.POSITIVE_INFINITY
  #saidAt = Number.NEGATIVE_INFINITY
  #restUntil = Number.NEGATIVE_INFINITY

  /** Takes one; false if it would be too much now. */
  take(uptime: number): boolean {
    this.#turn(uptime)
    if (uptime < this.#restUntil || this.#asked >= this.#allowed(uptime)) return false
    this.#asked += 1
    return true
  }

  /** A question was answered with this. */
  heard({ kind, said, retryAfterMs }: UpstreamError, uptime: number): void {
    if (kind !== 'busy') return
    if (said && said.status !== TOO_MANY_STATUS && !OVER_RATE_CODES.has(said.code)) return
    this.#turn(uptime)
    // Those that were under way with it say the same of the same second.
    if (secondOf(this.#saidAt) !== this.#second) {
      const went = Math.max(this.#asked, this.#before)
      this.#perSecond = Math.max(LEAST_PER_SECOND, Math.min(went, this.#allowed(uptime)) * SHARE_LEFT)
    }
    this.#saidAt = uptime
    this.#restUntil = Math.max(this.#restUntil, uptime + Math.min(retryAfterMs ?? 0, REST_BOUND_MS))
  }

  #allowed(uptime: number): number {
    if (uptime - this.#saidAt >= FORGET_MS) return Number.POSITIVE_INFINITY
    const seconds = Math.max(0, secondOf(uptime) - secondOf(this.#saidAt) - 1)
    return this.#perSecond * (1 + GROWTH_PER_SECOND) ** seconds
  }

  #turn(uptime: number): void {
    const second = secondOf(uptime)
    if (second === this.#second) return
    this.#before = second === this.#second + 1 ? this.#asked : 0
    this.#asked = 0
    this.#second = second
  }
}

const secondOf = (uptime: number): number => Math.floor(uptime / 1_000)
