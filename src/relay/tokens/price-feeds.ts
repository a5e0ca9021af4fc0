import type { Hex } from '../../lib/hex.ts'
import { NEVER_SECONDS } from '../../lib/iso-time.ts'
import { decodeLog } from '../chain/logs/events.ts'
import type { Log } from '../chain/logs/read-logs.ts'
import type { FeedSetting } from '../config/feeds.ts'
import { clampSeconds } from './apply-log.ts'
import { priceOf, type Round } from './nav-history.ts'

/** The contract behind a proxy that publishes the rounds; a new one has a higher phase. */
type Aggregator = { readonly address: Hex; readonly phase: number; readonly decimals: number }

/** A feed with its aggregators, newest last. */
export type PriceFeed = { readonly token: string; readonly proxy: Hex; readonly aggregators: readonly Aggregator[] }

/** A proxy's answer. */
export type FeedContractState = Omit<Aggregator, 'address'> & {
  readonly proxy: Hex
  readonly aggregator: Hex
  readonly round: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint } | null
}

/** Every stock feed has this many decimals. */
const FEED_DECIMALS = 8
/** A round of the previous aggregator may still arrive after its replacement. */
const AGGREGATORS_BOUND = 2

/**
 * The feeds of the settings, with their earlier state. Until a proxy has answered for the first time, logs
 * come from the aggregator in the settings, or from the proxy itself: some feeds have no separate aggregator.
 */
export const openFeeds = (settings: readonly FeedSetting[], before: readonly PriceFeed[] = []): readonly PriceFeed[] =>
  settings.map(({ token, proxy, aggregator = proxy }) => {
    const existing = before.find((feed) => feed.token === token && feed.proxy === proxy)
    return existing ?? { token, proxy, aggregators: [{ address: aggregator, phase: 0, decimals: FEED_DECIMALS }] }
  })

/** Applies a proxy's answer. */
export const applyFeedCall = (feeds: readonly PriceFeed[], result: FeedContractState): readonly PriceFeed[] =>
  feeds.map((feed) => (feed.proxy === result.proxy ? { ...feed, aggregators: withAggregator(feed.aggregators, result) } : feed))

/** The addresses whose logs the feeds need. */
export const aggregatorAddresses = (feeds: readonly PriceFeed[]): readonly Hex[] =>
  feeds.flatMap(({ aggregators }) => aggregators.map(({ address }) => address))

/** The feed and aggregator of an address. */
export function findFeed(feeds: readonly PriceFeed[], address: Hex): { feed: PriceFeed; aggregator: Aggregator } | null {
  for (const feed of feeds) {
    const aggregator = feed.aggregators.findLast((candidate) => candidate.address === address)
    if (aggregator) return { feed, aggregator }
  }
  return null
}

/** The round in an aggregator's log; null for other events. */
export function roundFromLog(log: Log, aggregator: Pick<Aggregator, 'phase' | 'decimals'>, sealed: boolean): Round | null {
  const decoded = decodeLog(log)
  if (decoded.event !== 'AnswerUpdated') return null
  return { ...roundFields(decoded, aggregator), position: { block: log.blockNumber, logIndex: log.logIndex }, key: log.key, sealed }
}

/** The newest round in a proxy's answer. */
export const roundFromCall = (result: FeedContractState): Round | null =>
  result.round && { ...roundFields(result.round, result), position: null, key: null, sealed: true }

const roundFields = (
  { answer, round, updatedAt }: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint },
  { phase, decimals }: Pick<Aggregator, 'phase' | 'decimals'>,
) => ({ price: priceOf(answer, decimals), updatedAt: roundTimeMs(updatedAt), phase, round: round.toString() })

/** A round without an answer yet has the update time 0, which means none. One after the year 9999 is unreadable. */
function roundTimeMs(second: bigint): number | null {
  const seconds = clampSeconds(second)
  return seconds === 0 || seconds === NEVER_SECONDS ? null : seconds * 1_000
}

function withAggregator(
  before: readonly Aggregator[],
  { aggregator: address, phase, decimals }: FeedContractState,
): readonly Aggregator[] {
  const others = before.filter((known) => known.address !== address && known.phase > 0 && known.phase < phase)
  return [...others, { address, phase, decimals }].slice(-AGGREGATORS_BOUND)
}
