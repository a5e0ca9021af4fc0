import { isDeepStrictEqual } from 'node:util'
import { formatDecimal } from '../protocol/decimal.ts'
import { isBefore, type Place } from './chain-position.ts'
import type { NavRule } from './nav.ts'
import { type NavReading, navAt } from './nav.ts'

/** One round of a feed, as a log or a call says it. */
export type Round = NavReading & {
  /** Counts the aggregators of a feed; each counts its own rounds from the start. */
  readonly phase: number
  /** Its number in decimal: no double holds every one. */
  readonly round: string
  /** Where the log stands; null where a call was answered. */
  readonly at: Place | null
  readonly key: string | null
  /** Whether it was read from a sealed block. */
  readonly sealed: boolean
}

/** All that is known of one token's NAV: what the list said, by its times, and the rounds of its feed, in their order. The newest stands last. */
export type Rounds = { readonly list: readonly NavReading[]; readonly feed: readonly Round[] }

/** The NAV that is held, and who says so. `missed`: the list knows of a round that the feed should have brought. */
type HeldNav = { readonly reading: NavReading; readonly source: 'list' | 'log'; readonly missed: boolean }

export const noRounds: Rounds = { list: [], feed: [] }

/** How much each witness is remembered to have said; of more, the oldest is forgotten. */
const ROUNDS_BOUND = 64

const NO_READING: NavReading = { price: null, updatedAt: null }

/**
 * Feed and list are compared by time, since the list knows no rounds; of one time the feed has the word, and a zero or
 * negative answer of it is held as any other. A round of no readable time is held too: nothing can be called newer.
 */
export function heldNow(rounds: Rounds, { now }: NavRule): HeldNav {
  const newest = rounds.feed.at(-1)
  const listed = rounds.list.findLast((one) => isHeard(one, rounds, now)) ?? NO_READING
  if (!newest) return { reading: listed, source: 'list', missed: false }
  const missed =
    isAfter(listed.updatedAt, newest.updatedAt) && !rounds.feed.some((one) => one.updatedAt === listed.updatedAt)
  return missed ? { reading: listed, source: 'list', missed } : { reading: readingOf(newest), source: 'log', missed }
}

/** The newest that is known and had been published by a time, though it may have been heard later. */
export function heldAt(rounds: Rounds, madeAt: number): NavReading {
  let held: NavReading | null = null
  const listed = rounds.list.filter((one) => isHeard(one, rounds, madeAt))
  for (const one of [...listed, ...rounds.feed]) {
    if (one.updatedAt !== null && one.updatedAt <= madeAt && !isAfter(held?.updatedAt ?? null, one.updatedAt))
      held = one
  }
  return held ? readingOf(held) : NO_READING
}

/**
 * With what the list says now. What is no price at the time (zero, garbage, missing, of no readable time or of the
 * future) is its last word, if it is not older than a price, and only until the next: it neither outlives what is said
 * after it nor hides what was said before it. A price of an older time never displaces a newer: the list may come from
 * several machines.
 */
export function listSaid(rounds: Rounds, reading: NavReading, { now }: NavRule): Rounds {
  const { price, updatedAt } = reading
  const prices = rounds.list.slice(0, rounds.list.findLastIndex((one) => isPrice(one, now)) + 1)
  const earlier = prices.filter((one) => isAfter(updatedAt, one.updatedAt))
  const later = prices.filter((one) => isAfter(one.updatedAt, updatedAt))
  const said = isPrice(reading, now)
    ? [...earlier, { price, updatedAt }, ...later]
    : later.length > 0
      ? prices
      : [...prices, { price, updatedAt }]
  const list = said.slice(-ROUNDS_BOUND)
  return isDeepStrictEqual(list, rounds.list) ? rounds : { ...rounds, list }
}

/**
 * With what a log or a call says of a round. What is known under its key is replaced by it, other content and all, but
 * what is sealed only by what is sealed. It takes its place by phase and number, whenever it comes.
 */
export function roundSaid(rounds: Rounds, round: Round): Rounds {
  const known = rounds.feed.find((one) => isOfSameWitness(one, round))
  if (known?.sealed && !round.sealed) return rounds
  const others = rounds.feed.filter((one) => one !== known)
  const feed = [...others, round].sort(inOrder).slice(-ROUNDS_BOUND)
  return isDeepStrictEqual(feed, rounds.feed) ? rounds : { ...rounds, feed }
}

/**
 * Without what these logs said: the former value holds again, though it is older than what was told. What a call said
 * of such a round goes too, since it may have seen that log; where it is so, the next call says it again.
 */
export function roundsTakenBack(rounds: Rounds, keys: ReadonlySet<string>): Rounds {
  const gone = rounds.feed.filter(({ key }) => key !== null && keys.has(key))
  if (gone.length === 0) return rounds
  const isGone = (one: Round) => gone.includes(one) || (one.key === null && gone.some((log) => isOfSameRound(one, log)))
  return { ...rounds, feed: rounds.feed.filter((one) => !isGone(one)) }
}

/** With what a sealed block says, and without what else was said of that block before. */
export function blockSays(rounds: Rounds, block: number, sealed: readonly Round[]): Rounds {
  const keys = new Set(sealed.map(({ key }) => key))
  const lacking = rounds.feed.flatMap(({ at, key }) =>
    at?.block === block && key !== null && !keys.has(key) ? [key] : [],
  )
  const kept = roundsTakenBack(rounds, new Set(lacking))
  return sealed.reduce((known, round) => roundSaid(known, { ...round, sealed: true }), kept)
}

/** A feed's answer as exact text. */
export const priceOf = (answer: bigint, decimals: number): string => formatDecimal({ units: answer, scale: decimals })

/**
 * Alone, the list has its last word, whatever that is worth; beside a feed, only its prices count. A time of the future
 * is judged anew at each asking: the clock may reach it, or be set.
 */
const isHeard = (listed: NavReading, { feed }: Rounds, now: number): boolean =>
  feed.length === 0 || isPrice(listed, now)

/** How stale it is does not matter here. */
const isPrice = (reading: NavReading, now: number): boolean => navAt(reading, now, 0).price !== null

/** Of times that can be read. */
const isAfter = (one: number | null, other: number | null): boolean => one !== null && other !== null && one > other

const readingOf = ({ price, updatedAt }: NavReading): NavReading => ({ price, updatedAt })

const isOfSameRound = (one: Round, other: Round): boolean => one.phase === other.phase && one.round === other.round

const isOfSameWitness = (one: Round, other: Round): boolean =>
  one.key === other.key && (one.key !== null || isOfSameRound(one, other))

/** A new aggregator may start at round 1, so the phase comes first. Of one round a sealed log knows best, then a call. */
const inOrder = (one: Round, other: Round): number =>
  one.phase - other.phase ||
  Number(BigInt(one.round) - BigInt(other.round)) ||
  weightOf(one) - weightOf(other) ||
  placesInOrder(one.at, other.at)

const weightOf = ({ sealed, key }: Round): number => (sealed ? 2 : 0) + (key === null ? 0 : 1)

const placesInOrder = (one: Place | null, other: Place | null): number =>
  one && other ? Number(isBefore(other, one)) - Number(isBefore(one, other)) : 0
