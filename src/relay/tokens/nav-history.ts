import { isDeepStrictEqual } from 'node:util'
import { type ChainPosition, isBefore } from './chain-position.ts'
import { isInFuture, type NavReading, type NavTiming, navAt } from './nav.ts'
import type { NavHistorySchema, Stored } from './token-schema.ts'

/** The NAVs of a token: those of the list and the rounds of its feed. The newest are last. */
export type NavHistory = Stored<typeof NavHistorySchema>
export type Round = NavHistory['feed'][number]

type CurrentNav = { readonly reading: NavReading; readonly source: 'list' | 'log' }

export const emptyNavHistory: NavHistory = { list: [], feed: [] }

const ROUNDS_BOUND = 64

const NO_READING: NavReading = { price: null, updatedAt: null }

/** Returns the current NAV. The list's counts only if it is newer than the feed's. Otherwise the feed's counts, even if invalid. */
export function currentNav(history: NavHistory, { now }: NavTiming): CurrentNav {
  const newest = newestRound(history, now)
  const listed = history.list.findLast((reading) => isUsable(reading, history, now)) ?? NO_READING
  const isKnown = history.feed.some(({ updatedAt }) => updatedAt === listed.updatedAt)
  if (!newest || (isLater(listed.updatedAt, newest.updatedAt) && !isKnown)) return { reading: listed, source: 'list' }
  return { reading: toReading(newest), source: 'log' }
}

/** Returns the last round that no earlier round shows to be old. If a round was reported repeatedly, its last report counts. */
function newestRound({ feed }: NavHistory, now: number): Round | undefined {
  const reports = feed.filter((round, index) => {
    const next = feed[index + 1]
    return !next || !isSameRound(round, next)
  })
  return reports.findLast((round, index) => !reports.some((earlier, nth) => nth < index && holdsBack(earlier, round, now)))
}

/** Whether an earlier round shows that this one is old. A round dated in the future does not, or it would outdate all others. */
function holdsBack(earlier: Round, { updatedAt, phase, position }: Round, now: number): boolean {
  if (earlier.updatedAt === null || !isLater(earlier.updatedAt, updatedAt) || isInFuture(earlier.updatedAt, now)) return false
  // A replaced aggregator may still publish, so rounds of two aggregators are compared by chain position.
  return earlier.phase === phase || !earlier.position || !position || isBefore(earlier.position, position)
}

/** Returns the newest NAV that was published by a time, even if the relay received it later. */
export function navReadingAt(history: NavHistory, timeMs: number): NavReading {
  let latest: NavReading | null = null
  const listed = history.list.filter((reading) => isUsable(reading, history, timeMs))
  for (const reading of [...listed, ...history.feed]) {
    if (reading.updatedAt !== null && reading.updatedAt <= timeMs && !isLater(latest?.updatedAt ?? null, reading.updatedAt))
      latest = reading
  }
  return latest ? toReading(latest) : NO_READING
}

/** Adds a NAV of the list. An invalid one is the newest until the next. An older price, as from a lagging server, replaces none. */
export function addListReading(history: NavHistory, reading: NavReading, { now }: NavTiming): NavHistory {
  const { price, updatedAt } = reading
  const prices = history.list.slice(0, history.list.findLastIndex((known) => hasValidPrice(known, now)) + 1)
  const earlier = prices.filter((known) => isLater(updatedAt, known.updatedAt))
  const later = prices.filter((known) => isLater(known.updatedAt, updatedAt))
  const readings = hasValidPrice(reading, now)
    ? [...earlier, { price, updatedAt }, ...later]
    : later.length > 0
      ? prices
      : [...prices, { price, updatedAt }]
  const list = readings.slice(-ROUNDS_BOUND)
  return isDeepStrictEqual(list, history.list) ? history : { ...history, list }
}

/** Adds a round, or replaces the one with its key. Only a sealed round replaces a sealed one. */
export function addRound(history: NavHistory, round: Round): NavHistory {
  const existing = history.feed.find((known) => isSameReport(known, round))
  if (existing?.sealed && !round.sealed) return history
  const others = history.feed.filter((known) => known !== existing)
  const feed = [...others, round].sort(compareRounds).slice(-ROUNDS_BOUND)
  return isDeepStrictEqual(feed, history.feed) ? history : { ...history, feed }
}

/** Adds the rounds of a sealed block. Removes rounds that were received for this block, and that it does not contain. */
export function applySealedRounds(history: NavHistory, block: number, sealed: readonly Round[]): NavHistory {
  const keys = new Set(sealed.map(({ key }) => key))
  const removed = history.feed.filter(({ position, key }) => position?.block === block && key !== null && !keys.has(key))
  // A contract answer with one of these rounds may be based on its log.
  const isRemoved = (round: Round) =>
    removed.includes(round) || (round.key === null && removed.some((log) => isSameRound(round, log)))
  const kept = removed.length === 0 ? history : { ...history, feed: history.feed.filter((round) => !isRemoved(round)) }
  return sealed.reduce((known, round) => addRound(known, { ...round, sealed: true }), kept)
}

/** Without a feed, even an invalid reading of the list counts. Not stored, since the clock may reach a time in the future. */
const isUsable = (listed: NavReading, { feed }: NavHistory, now: number): boolean => feed.length === 0 || hasValidPrice(listed, now)

const hasValidPrice = (reading: NavReading, now: number): boolean => navAt(reading, now, 0, null).price !== null

/** Whether `a` is later than `b`; false if one of the times is unknown. */
const isLater = (a: number | null, b: number | null): boolean => a !== null && b !== null && a > b

const toReading = ({ price, updatedAt }: NavReading): NavReading => ({ price, updatedAt })

const isSameRound = (a: Round, b: Round): boolean => a.phase === b.phase && a.round === b.round

const isSameReport = (a: Round, b: Round): boolean => a.key === b.key && (a.key !== null || isSameRound(a, b))

/** Sorts by phase first, because a new aggregator may start at round 1. Of the reports of one round, a sealed log is last. */
const compareRounds = (a: Round, b: Round): number =>
  a.phase - b.phase ||
  Number(BigInt(a.round) - BigInt(b.round)) ||
  priorityOf(a) - priorityOf(b) ||
  comparePositions(a.position, b.position)

const priorityOf = ({ sealed, key }: Round): number => (sealed ? 2 : 0) + (key === null ? 0 : 1)

const comparePositions = (a: ChainPosition | null, b: ChainPosition | null): number =>
  a && b ? Number(isBefore(b, a)) - Number(isBefore(a, b)) : 0
