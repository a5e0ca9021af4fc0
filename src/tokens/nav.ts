import { formatDecimal, parseDecimal } from '../protocol/decimal.ts'
import type { Nav } from '../protocol/fields.ts'

/** A NAV as it was read, before anybody asks how old it is. */
export type NavReading = {
  /** The number's own text, as the list wrote it; null where there was none. */
  readonly price: string | null
  /** When it was published (ms); null where that cannot be read. */
  readonly updatedAt: number | null
}

/** What a NAV is measured by. */
export type NavTiming = { readonly now: number; readonly staleMs: number }

/** A clock may be ahead of ours by this much before its time is called wrong. */
const CLOCK_SKEW_BOUND_MS = 120_000

/** What a reading is worth at a time. Zero, negative, garbage and future values are never passed on as a price. */
export function navAt({ price, updatedAt }: NavReading, now: number, boundMs: number): Nav {
  const bound_s = Math.floor(boundMs / 1_000)
  if (price === null) return { price: null, updated_at: null, age_s: null, state: 'missing', bound_s }
  const updated_at = updatedAt === null ? null : new Date(updatedAt).toISOString()
  const value = parseDecimal(price)
  const ageMs = updatedAt === null ? null : now - updatedAt
  const isInFuture = ageMs !== null && ageMs < -CLOCK_SKEW_BOUND_MS
  const age_s = ageMs === null || isInFuture ? null : Math.max(0, Math.floor(ageMs / 1_000))
  if (!value || value.units <= 0n || ageMs === null || isInFuture) {
    return { price: null, updated_at, age_s, state: 'invalid', bound_s }
  }
  return { price: formatDecimal(value), updated_at, age_s, state: ageMs > boundMs ? 'stale' : 'fresh', bound_s }
}

/** Whether two NAVs say the same, age aside: it grows by itself. */
export const isSameNav = (a: Nav, b: Nav): boolean =>
  a.price === b.price && a.updated_at === b.updated_at && a.state === b.state
