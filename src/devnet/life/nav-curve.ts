import type { DevnetToken } from '../tokens/issued-tokens.ts'
import { seededRandom } from './seeded-random.ts'

/** Longest interval between two rounds, also when the market is closed, so that a demo on a weekend shows data. */
const HEARTBEAT_MS = 3_600_000
/** Fraction by which the value must change before a feed publishes between two heartbeats. */
const DEVIATION = 0.001
const CHECK_MS = 5_000
const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
const SESSION_MS = 5 * DAY_MS
const WEEKEND_MS = WEEK_MS - SESSION_MS
/** The first Monday of Unix time. */
const MONDAY_MS = 4 * DAY_MS

/** The waves whose sum is the value: the amplitude as a fraction, and the period in milliseconds. */
const waves = [
  [0.02, 5.3 * DAY_MS],
  [0.008, 5.1 * 3_600_000],
  [0.0025, 11 * 60_000],
  [0.0008, 97_000],
] as const

/** Symbol of the feed that publishes for some hours, then stops until its round is too old. */
const STOPPING_SYMBOL = 'SPCXc'
const STOP_CYCLE_MS = 3 * DAY_MS
const PUBLISHING_MS = 12 * 3_600_000
/** Symbol of the feed that publishes zero for some minutes of every cycle. */
const ZEROING_SYMBOL = 'CRCLc'
const ZERO_CYCLE_MS = 30 * 60_000
const ZERO_AFTER_MS = 10 * 60_000
const ZERO_MS = 3 * 60_000

/** Feeds that publish nothing on weekends, as on Base. */
const weekendHoldingSymbols: readonly string[] = ['AMZNc', 'METAc', 'MSTRc']

export type NavRound = { price: number; updatedAtMs: number }

/** Returns the newest round of a token's feed at a time. */
export type ReadNav = (token: DevnetToken, now: number) => NavRound | undefined

/** Makes the rounds of all feeds, which the seed and the time determine. */
export const createNavCurve = (seed: string): ReadNav => {
  const newestBySymbol = new Map<string, NavRound & { checkedAtMs: number }>()
  return (token, now) => {
    const { nav, symbol } = token
    if (nav === undefined) return undefined
    const heartbeatMs = Math.floor(now / HEARTBEAT_MS) * HEARTBEAT_MS
    const phases = wavePhasesOf(seed, symbol)
    const cached = newestBySymbol.get(symbol)
    const canContinue = cached && cached.checkedAtMs >= heartbeatMs && cached.checkedAtMs <= now
    let round = canContinue ? cached : { ...roundAt(nav, phases, heartbeatMs), checkedAtMs: heartbeatMs }
    for (let atMs = round.checkedAtMs + CHECK_MS; atMs <= now; atMs += CHECK_MS) {
      const next = roundAt(nav, phases, atMs)
      const hasMoved = Math.abs(next.price / round.price - 1) >= DEVIATION
      round = { ...(hasMoved ? next : round), checkedAtMs: atMs }
    }
    newestBySymbol.set(symbol, round)
    return round
  }
}

/** Adds faults to two feeds, and makes some feeds publish nothing on weekends. */
export const withFeedFaults =
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

const roundAt = (nav: number, phases: readonly number[], atMs: number): NavRound => {
  const openMs = lastOpenMs(atMs)
  const deviation = waves.reduce(
    (sum, [amplitude, periodMs], wave) => sum + amplitude * Math.sin((2 * Math.PI * openMs) / periodMs + (phases[wave] ?? 0)),
    0,
  )
  return { price: Math.round(nav * (1 + deviation) * 10_000) / 10_000, updatedAtMs: atMs }
}

/** Returns the time itself from Monday to Friday, or else the end of that Friday. UTC days stand for the hours of the market. */
const lastOpenMs = (atMs: number): number => {
  const sinceMondayMs = (atMs - MONDAY_MS) % WEEK_MS
  return sinceMondayMs < SESSION_MS ? atMs : atMs - (sinceMondayMs - SESSION_MS)
}

/** Returns the share of the weekend that has passed, 0 on other days, and the end of the weekend. */
export const weekendAt = (atMs: number): { elapsed: number; endMs: number } => {
  const startMs = lastOpenMs(atMs)
  return { elapsed: (atMs - startMs) / WEEKEND_MS, endMs: startMs + WEEKEND_MS }
}

const wavePhasesOf = (seed: string, symbol: string): readonly number[] => {
  const random = seededRandom(seed, 'nav', symbol)
  return waves.map(() => random() * 2 * Math.PI)
}
