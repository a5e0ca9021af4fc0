import { formatDecimal, parseDecimal } from '../../protocol/decimal.ts'
import type { Nav } from '../../protocol/fields.ts'
import type { NavReadingSchema, Stored } from './token-schema.ts'

/** A NAV as it was read, before `navAt` gives it a state. */
export type NavReading = Stored<typeof NavReadingSchema>

/** The current wall time, and the age from which a NAV is stale, both in ms. */
export type NavTiming = { readonly now: number; readonly navStaleAfterMs: number }

/** Limit of the time by which a NAV may be ahead of the relay's clock. Beyond it, the NAV is invalid. */
const CLOCK_SKEW_BOUND_MS = 120_000

export const isInFuture = (updatedAt: number, now: number): boolean => updatedAt - now > CLOCK_SKEW_BOUND_MS

/** Returns a NAV with its state at a time. Zero, negative, invalid and future values are never published as a price. */
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

/** Whether two NAVs are equal. Their age is ignored, because it always changes. */
export const isSameNav = (a: Nav, b: Nav): boolean =>
  a.price === b.price && a.updated_at === b.updated_at && a.state === b.state && a.frozen === b.frozen
