import type { Hex } from '../../lib/hex.ts'
import { clampSeconds, NEVER_SECONDS } from '../../lib/iso-time.ts'
import { amountOf } from '../../protocol/decimal.ts'
import { type FeedContractState, USD_FEED_DECIMALS } from '../chain/contracts/feed-contract.ts'
import { decodeLog } from '../chain/logs/event-decoder.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import type { FeedSetting } from '../config/feed-settings.ts'
import type { Round } from './nav-history.ts'

/** The contract behind a feed's proxy that publishes rounds. A later aggregator has a higher phase. */
type Aggregator = { readonly address: Hex; readonly phase: number; readonly decimals: number }

/** A feed as in the settings, with its known aggregators. The newest aggregator is last. */
export type PriceFeed = { readonly token: string; readonly proxy: Hex; readonly aggregators: readonly Aggregator[] }

/** Limit of the aggregators that a feed keeps: the previous one may still publish after its replacement. */
const AGGREGATORS_BOUND = 2

/** Returns the feeds of the settings with their earlier state. Without a set aggregator, the proxy itself counts as one. */
export const openFeeds = (settings: readonly FeedSetting[], before: readonly PriceFeed[] = []): readonly PriceFeed[] =>
  settings.map(({ token, proxy, aggregator = proxy }) => {
    const existing = before.find((feed) => feed.token === token && feed.proxy === proxy)
    return existing ?? { token, proxy, aggregators: [{ address: aggregator, phase: 0, decimals: USD_FEED_DECIMALS }] }
  })

export const applyFeedCall = (feeds: readonly PriceFeed[], result: FeedContractState): readonly PriceFeed[] =>
  feeds.map((feed) => (feed.proxy === result.proxy ? { ...feed, aggregators: withAggregator(feed.aggregators, result) } : feed))

export const aggregatorAddresses = (feeds: readonly PriceFeed[]): readonly Hex[] =>
  feeds.flatMap(({ aggregators }) => aggregators.map(({ address }) => address))

export function findFeed(feeds: readonly PriceFeed[], address: Hex): { feed: PriceFeed; aggregator: Aggregator } | null {
  for (const feed of feeds) {
    const aggregator = feed.aggregators.findLast((candidate) => candidate.address === address)
    if (aggregator) return { feed, aggregator }
  }
  return null
}

/** Returns null for a log that is no round. */
export function roundFromLog(log: Log, aggregator: Pick<Aggregator, 'phase' | 'decimals'>, sealed: boolean): Round | null {
  const decoded = decodeLog(log)
  if (decoded.event !== 'AnswerUpdated') return null
  return { ...roundFields(decoded, aggregator), position: { block: log.blockNumber, logIndex: log.logIndex }, key: log.key, sealed }
}

export const roundFromCall = (result: FeedContractState): Round | null =>
  result.round && { ...roundFields(result.round, result), position: null, key: null, sealed: true }

const roundFields = (
  { answer, round, updatedAt }: NonNullable<FeedContractState['round']>,
  { phase, decimals }: Pick<Aggregator, 'phase' | 'decimals'>,
) => ({ price: amountOf(answer, decimals), updatedAt: roundTimeMs(updatedAt), phase, round: round.toString() })

/** Returns null for a round without an answer, whose time is 0, and for a time after the year 9999. */
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
