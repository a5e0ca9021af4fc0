import { isDeepStrictEqual } from 'node:util'
import { formatDecimal } from '../protocol/decimal.ts'
import { type ChainPosition, isBefore } from './chain-position.ts'
import type { NavTiming } from './nav.ts'
import { type NavReading, navAt } from './nav.ts'

/** One round of a feed, as a log or a call says it. */
export type Round = NavReading & {
  /** Counts the aggregators of a feed; each counts its own rounds from the start. */
  readonly phase: number
  /** Its number in decimal: no double holds every one. */
  readonly round: string
  /** Where the log stands; null where a call was answered. */
  readonly position: ChainPosition | null
  readonly key: string | null
  /** Whether it was read from a sealed block. */
  readonly sealed: boolean
}

/** All that is known of one token's NAV: what the list said, by its times, and the rounds of its feed, in their order. The newest stands last. */
export type NavHistory = { readonly list: readonly NavReading[]; readonly feed: readonly Round[] }

/** The NAV that is held, and who says so. `missed`: the list knows of a round that the feed should have brought. */
type CurrentNav = { readonly reading: NavReading; readonly source: 'list' | 'log'; readonly missed: boolean }

export const emptyNavHistory: NavHistory = { list: [], feed: [] }

/** How much each witness is remembered to have said; of more, the oldest is forgotten. */
const ROUNDS_BOUND = 64

const NO_READING: NavReading = { price: null, updatedAt: null }

/**
 * Feed and list are compared by time, since the list knows no rounds; of one time the feed has the word, and a zero or
 * negative answer of it is held as any other. A round of no readable time is held too: nothing can be called newer.
 */
export function currentNav(history: NavHistory, { now }: NavTiming): CurrentNav {
  const newest = history.feed.at(-1)
  const listed = history.list.findLast((one) => isUsable(one, history, now)) ?? NO_READING
  if (!newest) return { reading: listed, source: 'list', missed: false }
  const missed =
    isLater(listed.updatedAt, newest.updatedAt) && !history.feed.some((one) => one.updatedAt === listed.updatedAt)
  return missed ? { reading: listed, source: 'list', missed } : { reading: toReading(newest), source: 'log', missed }
}

/** The newest that is known and had been published by a time, though it may have been heard later. */
export function navReadingAt(history: NavHistory, timeMs: number): NavReading {
  let latest: NavReading | null = null
  const listed = history.list.filter((one) => isUsable(one, history, timeMs))
  for (const one of [...listed, ...history.feed]) {
    if (one.updatedAt !== null && one.updatedAt <= timeMs && !isLater(latest?.updatedAt ?? null, one.updatedAt))
      latest = one
  }
  return latest ? toReading(latest) : NO_READING
}

/**
 * With what the list says now. What is no price at the time (zero, garbage, missing, of no readable time or of the
 * future) is its last word, if it is not older than a price, and only until the next: it neither outlives what is said
 * after it nor hides what was said before it. A price of an older time never displaces a newer: the list may come from
 * several machines.
 */
export function addListReading(history: NavHistory, reading: NavReading, { now }: NavTiming): NavHistory {
  const { price, updatedAt } = reading
  const prices = history.list.slice(0, history.list.findLastIndex((one) => hasValidPrice(one, now)) + 1)
  const earlier = prices.filter((one) => isLater(updatedAt, one.updatedAt))
  const later = prices.filter((one) => isLater(one.updatedAt, updatedAt))
  const readings = hasValidPrice(reading, now)
    ? [...earlier, { price, updatedAt }, ...later]
    : later.length > 0
      ? prices
      : [...prices, { price, updatedAt }]
  const list = readings.slice(-ROUNDS_BOUND)
  return isDeepStrictEqual(list, history.list) ? history : { ...history, list }
}

/**
 * With what a log or a call says of a round. What is known under its key is replaced by it, other content and all, but
 * what is sealed only by what is sealed. It takes its place by phase and number, whenever it comes.
 */
export function addRound(history: NavHistory, round: Round): NavHistory {
  const known = history.feed.find((one) => isSameReport(one, round))
  if (known?.sealed && !round.sealed) return history
  const others = history.feed.filter((one) => one !== known)
  const feed = [...others, round].sort(compareRounds).slice(-ROUNDS_BOUND)
  return isDeepStrictEqual(feed, history.feed) ? history : { ...history, feed }
}

/**
 * Without what these logs said: the former value holds again, though it is older than what was told. What a call said
 * of such a round goes too, since it may have seen that log; where it is so, the next call says it again.
 */
export function removeRounds(history: NavHistory, keys: ReadonlySet<string>): NavHistory {
  const removed = history.feed.filter(({ key }) => key !== null && keys.has(key))
  if (removed.length === 0) return history
  const isRemoved = (one: Round) =>
    removed.includes(one) || (one.key === null && removed.some((log) => isSameRound(one, log)))
  return { ...history, feed: history.feed.filter((one) => !isRemoved(one)) }
}

/** With what a sealed block says, and without what else was said of that block before. */
export function applySealedRounds(history: NavHistory, block: number, sealed: readonly Round[]): NavHistory {
  const keys = new Set(sealed.map(({ key }) => key))
  const unsealedKeys = history.feed.flatMap(({ position, key }) =>
    position?.block === block && key !== null && !keys.has(key) ? [key] : [],
  )
  const kept = removeRounds(history, new Set(unsealedKeys))
  return sealed.reduce((known, round) => addRound(known, { ...round, sealed: true }), kept)
}

/** A feed's answer as exact text. */
export const priceOf = (answer: bigint, decimals: number): string => formatDecimal({ units: answer, scale: decimals })

/**
 * Alone, the list has its last word, whatever that is worth; beside a feed, only its prices count. A time of the future
 * is judged anew at each asking: the clock may reach it, or be set.
 */
const isUsable = (listed: NavReading, { feed }: NavHistory, now: number): boolean =>
  feed.length === 0 || hasValidPrice(listed, now)

/** How stale it is does not matter here. */
const hasValidPrice = (reading: NavReading, now: number): boolean => navAt(reading, now, 0).price !== null

/** Of times that can be read. */
const isLater = (one: number | null, other: number | null): boolean => one !== null && other !== null && one > other

const toReading = ({ price, updatedAt }: NavReading): NavReading => ({ price, updatedAt })

const isSameRound = (one: Round, other: Round): boolean => one.phase === other.phase && one.round === other.round

const isSameReport = (one: Round, other: Round): boolean =>
  one.key === other.key && (one.key !== null || isSameRound(one, other))

/** A new aggregator may start at round 1, so the phase comes first. Of one round a sealed log knows best, then a call. */
const compareRounds = (one: Round, other: Round): number =>
  one.phase - other.phase ||
  Number(BigInt(one.round) - BigInt(other.round)) ||
  priorityOf(one) - priorityOf(other) ||
  comparePositions(one.position, other.position)

const priorityOf = ({ sealed, key }: Round): number => (sealed ? 2 : 0) + (key === null ? 0 : 1)

const comparePositions = (one: ChainPosition | null, other: ChainPosition | null): number =>
  one && other ? Number(isBefore(other, one)) - Number(isBefore(one, other)) : 0
