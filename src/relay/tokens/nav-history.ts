import { isDeepStrictEqual } from 'node:util'
import { type ChainPosition, isBefore } from './chain-position.ts'
import { isInFuture, type NavReading, type NavTiming, navAt } from './nav.ts'

export type Round = NavReading & {
  /** Number of the feed's aggregator. Each aggregator counts its rounds from the start. */
  readonly phase: number
  /** Decimal text, since a double cannot hold every round number. */
  readonly round: string
  /** Null for a round from a call. */
  readonly position: ChainPosition | null
  readonly key: string | null
  readonly sealed: boolean
}

/** A token's NAVs: those of the list, by time, and the rounds of its feed. The newest are last. */
export type NavHistory = { readonly list: readonly NavReading[]; readonly feed: readonly Round[] }

/** `missed`: the list has a newer round that the relay never received from the feed. */
type CurrentNav = { readonly reading: NavReading; readonly source: 'list' | 'log'; readonly missed: boolean }

export const emptyNavHistory: NavHistory = { list: [], feed: [] }

const ROUNDS_BOUND = 64

const NO_READING: NavReading = { price: null, updatedAt: null }

/** The list's value counts only if it is newer than the feed's. At equal or unknown times the feed wins, even with a bad answer. */
export function currentNav(history: NavHistory, { now }: NavTiming): CurrentNav {
  const newest = newestRound(history, now)
  const listed = history.list.findLast((reading) => isUsable(reading, history, now)) ?? NO_READING
  if (!newest) return { reading: listed, source: 'list', missed: false }
  const missed = isLater(listed.updatedAt, newest.updatedAt) && !history.feed.some((round) => round.updatedAt === listed.updatedAt)
  return missed ? { reading: listed, source: 'list', missed } : { reading: toReading(newest), source: 'log', missed }
}

/** The last round that is not older than an earlier one. For each round, the last report counts. */
function newestRound({ feed }: NavHistory, now: number): Round | undefined {
  const reports = feed.filter((round, index) => {
    const next = feed[index + 1]
    return !next || !isSameRound(round, next)
  })
  return reports.findLast((round, index) => !reports.some((earlier, nth) => nth < index && holdsBack(earlier, round, now)))
}

/** Whether an earlier round shows that this one is old. A round with a time in the future would hold back all others. */
function holdsBack(earlier: Round, { updatedAt, phase, position }: Round, now: number): boolean {
  if (earlier.updatedAt === null || !isLater(earlier.updatedAt, updatedAt) || isInFuture(earlier.updatedAt, now)) return false
  // The previous aggregator may publish after its replacement.
  return earlier.phase === phase || !earlier.position || !position || isBefore(earlier.position, position)
}

/** The newest NAV published by a time, even if the relay received it later. */
export function navReadingAt(history: NavHistory, timeMs: number): NavReading {
  let latest: NavReading | null = null
  const listed = history.list.filter((reading) => isUsable(reading, history, timeMs))
  for (const reading of [...listed, ...history.feed]) {
    if (reading.updatedAt !== null && reading.updatedAt <= timeMs && !isLater(latest?.updatedAt ?? null, reading.updatedAt))
      latest = reading
  }
  return latest ? toReading(latest) : NO_READING
}

/** An invalid reading counts as the newest until the next one. An older price never replaces a newer one of another machine. */
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

/** Removes the rounds of these logs. Also removes a call's answer with such a round, since the answer may include the log. */
export function removeRounds(history: NavHistory, keys: ReadonlySet<string>): NavHistory {
  const removed = history.feed.filter(({ key }) => key !== null && keys.has(key))
  if (removed.length === 0) return history
  const isRemoved = (round: Round) =>
    removed.includes(round) || (round.key === null && removed.some((log) => isSameRound(round, log)))
  return { ...history, feed: history.feed.filter((round) => !isRemoved(round)) }
}

/** Adds the rounds of a sealed block, and removes earlier rounds that the block does not contain. */
export function applySealedRounds(history: NavHistory, block: number, sealed: readonly Round[]): NavHistory {
  const keys = new Set(sealed.map(({ key }) => key))
  const unsealedKeys = history.feed.flatMap(({ position, key }) =>
    position?.block === block && key !== null && !keys.has(key) ? [key] : [],
  )
  const kept = removeRounds(history, new Set(unsealedKeys))
  return sealed.reduce((known, round) => addRound(known, { ...round, sealed: true }), kept)
}

/** Without a feed, even an invalid reading of the list counts. Not stored, since the clock may reach a time in the future. */
const isUsable = (listed: NavReading, { feed }: NavHistory, now: number): boolean => feed.length === 0 || hasValidPrice(listed, now)

const hasValidPrice = (reading: NavReading, now: number): boolean => navAt(reading, now, 0, null).price !== null

/** False if a time is unknown. */
const isLater = (a: number | null, b: number | null): boolean => a !== null && b !== null && a > b

const toReading = ({ price, updatedAt }: NavReading): NavReading => ({ price, updatedAt })

const isSameRound = (a: Round, b: Round): boolean => a.phase === b.phase && a.round === b.round

const isSameReport = (a: Round, b: Round): boolean => a.key === b.key && (a.key !== null || isSameRound(a, b))

/** By phase first, since a new aggregator may start at round 1. Of the reports of one round, a sealed log wins over a call. */
const compareRounds = (a: Round, b: Round): number =>
  a.phase - b.phase ||
  Number(BigInt(a.round) - BigInt(b.round)) ||
  priorityOf(a) - priorityOf(b) ||
  comparePositions(a.position, b.position)

const priorityOf = ({ sealed, key }: Round): number => (sealed ? 2 : 0) + (key === null ? 0 : 1)

const comparePositions = (a: ChainPosition | null, b: ChainPosition | null): number =>
  a && b ? Number(isBefore(b, a)) - Number(isBefore(a, b)) : 0
