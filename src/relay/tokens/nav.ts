import { formatDecimal, parseDecimal } from '../../protocol/decimal.ts'
import type { Nav } from '../../protocol/fields.ts'

/** A NAV as it was read, before its age is judged. */
export type NavReading = {
  /** The number's text in the list; null if it is missing. */
  readonly price: string | null
  /** Time of its publication in milliseconds; null if it cannot be parsed. */
  readonly updatedAt: number | null
}

/** The clock, and the age from which a NAV is stale. */
export type NavTiming = { readonly now: number; readonly navStaleAfterMs: number }

/** A time further ahead of the relay's clock is invalid. */
const CLOCK_SKEW_BOUND_MS = 120_000

export const isInFuture = (updatedAt: number, now: number): boolean => updatedAt - now > CLOCK_SKEW_BOUND_MS

/** Judges a reading at a time. Zero, negative, garbage and future values are never published as a price. */
export function navAt({ price, updatedAt }: NavReading, now: number, boundMs: number, frozen: boolean | null): Nav {
  const stale_after_s = Math.floor(boundMs / 1_000)
  if (price === null) return { price: null, updated_at: null, age_s: null, state: 'missing', stale_after_s, frozen }
  const updated_at = updatedAt === null ? null : new Date(updatedAt).toISOString()
  const value = parseDecimal(price)
  const ageMs = updatedAt === null ? null : now - updatedAt
  const isAhead = updatedAt !== null && isInFuture(updatedAt, now)
  const age_s = ageMs === null || isAhead ? null : Math.max(0, Math.floor(ageMs / 1_000))
  if (!value || value.units <= 0n || ageMs === null || isAhead) {
    return { price: null, updated_at, age_s, state: 'invalid', stale_after_s, frozen }
  }
  return { price: formatDecimal(value), updated_at, age_s, state: ageMs > boundMs ? 'stale' : 'fresh', stale_after_s, frozen }
}

/** Compares NAVs without their age, which always changes. */
export const isSameNav = (a: Nav, b: Nav): boolean =>
  a.price === b.price && a.updated_at === b.updated_at && a.state === b.state && a.frozen === b.frozen
