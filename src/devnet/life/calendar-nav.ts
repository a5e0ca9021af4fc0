import { GENESIS_MS } from '../chain/chain-builder.ts'
import { frozenFeed } from './corporate-actions.ts'
import { createNavCurve, type ReadNav } from './nav-curve.ts'
import { CYCLE_BLOCKS } from './trading-cycle.ts'
import { DAY_MS, lastOpenMs } from './trading-week.ts'

/** This feed publishes for some hours, then stops for longer than the greatest age of a round. */
const STOPPING_SYMBOL = 'SPCXc'
const STOP_CYCLE_MS = 3 * DAY_MS
const PUBLISHING_MS = 12 * 3_600_000
/** This feed publishes zero for some minutes, in every cycle. */
const ZEROING_SYMBOL = 'CRCLc'
const ZERO_CYCLE_MS = 30 * 60_000
const ZERO_AFTER_MS = 10 * 60_000
const ZERO_MS = 3 * 60_000

/** Feeds that publish nothing on weekends, as on Base. */
const weekendHoldingSymbols: readonly string[] = ['AMZNc', 'METAc', 'MSTRc']

/** Lets one feed stop, one publish zero, and some hold their value on weekends. */
export const withIrregularFeeds =
  (readNav: ReadNav): ReadNav =>
  (token, now) => {
    if (token.symbol === STOPPING_SYMBOL) return readNav(token, Math.min(now, cycleStartMs(now, STOP_CYCLE_MS) + PUBLISHING_MS))
    const round = readNav(token, weekendHoldingSymbols.includes(token.symbol) ? lastOpenMs(now) : now)
    if (token.symbol !== ZEROING_SYMBOL || !round) return round
    const zeroAtMs = cycleStartMs(now - ZERO_AFTER_MS, ZERO_CYCLE_MS) + ZERO_AFTER_MS
    if (now < zeroAtMs + ZERO_MS) return { price: 0, updatedAtMs: zeroAtMs }
    return { ...round, updatedAtMs: Math.max(round.updatedAtMs, zeroAtMs + ZERO_MS) }
  }

const cycleStartMs = (atMs: number, cycleMs: number): number => Math.floor(atMs / cycleMs) * cycleMs

/** The reference values of a calendar: some feeds are irregular, and one is frozen in every cycle. */
export const createCalendarNav = (seed: string, blockMs: number): ReadNav => {
  const readNav = withIrregularFeeds(createNavCurve(seed))
  const freezeAt = (atMs: number) => {
    const cycleMs = CYCLE_BLOCKS * blockMs
    const cycleStartMs = GENESIS_MS + Math.floor((atMs - GENESIS_MS) / cycleMs) * cycleMs
    const startMs = cycleStartMs + frozenFeed.fromBlock * blockMs
    const endMs = cycleStartMs + frozenFeed.untilBlock * blockMs
    return atMs > startMs && atMs < endMs ? { startMs, endMs } : undefined
  }
  return (token, now) => {
    if (token.symbol !== frozenFeed.symbol) return readNav(token, now)
    const round = readNav(token, freezeAt(now)?.startMs ?? now)
    // A round of the freeze is published when the freeze ends.
    return round && { ...round, updatedAtMs: freezeAt(round.updatedAtMs)?.endMs ?? round.updatedAtMs }
  }
}
