import { decodeLog } from '../chain/logs/events.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { Hex } from '../protocol/fields.ts'
import { clampSeconds } from './apply-log.ts'
import { priceOf, type Round } from './nav-history.ts'

/** A price feed as the settings name it: of which token, by symbol or address, and where it can be asked. */
export type FeedSetting = {
  readonly token: string
  readonly proxy: Hex
  /** What stood behind the proxy when it was published; nothing else is heard until the chain says better. */
  readonly aggregator?: Hex
}

/** What stands behind a proxy, and makes its rounds: a new one has a higher phase. */
type Aggregator = { readonly address: Hex; readonly phase: number; readonly decimals: number }

/** A feed, and what stood behind its proxy, newest last. */
export type PriceFeed = { readonly token: string; readonly proxy: Hex; readonly aggregators: readonly Aggregator[] }

/** What asking a proxy brings. */
export type FeedContractState = Omit<Aggregator, 'address'> & {
  readonly proxy: Hex
  readonly aggregator: Hex
  readonly round: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint } | null
}

/** Dollars have so many decimals in every feed of a stock. */
const FEED_DECIMALS = 8
/** A round of the one before may still be on its way when an aggregator is replaced. */
const AGGREGATORS_BOUND = 2

/**
 * The feeds of the settings, as they were known before. Until a proxy has answered for the first time, what was published
 * is heard, or the proxy itself: some feeds have none before them.
 */
export const openFeeds = (settings: readonly FeedSetting[], before: readonly PriceFeed[] = []): readonly PriceFeed[] =>
  settings.map(({ token, proxy, aggregator = proxy }) => {
    const existing = before.find((feed) => feed.token === token && feed.proxy === proxy)
    return existing ?? { token, proxy, aggregators: [{ address: aggregator, phase: 0, decimals: FEED_DECIMALS }] }
  })

/** The feeds as they are once a proxy has answered. */
export const applyFeedCall = (feeds: readonly PriceFeed[], result: FeedContractState): readonly PriceFeed[] =>
  feeds.map((feed) =>
    feed.proxy === result.proxy ? { ...feed, aggregators: withAggregator(feed.aggregators, result) } : feed,
  )

/** Whose logs are heard for the sake of the feeds. */
export const aggregatorAddresses = (feeds: readonly PriceFeed[]): readonly Hex[] =>
  feeds.flatMap(({ aggregators }) => aggregators.map(({ address }) => address))

/** The feed that an address makes the rounds of, and how. */
export function findFeed(
  feeds: readonly PriceFeed[],
  address: Hex,
): { feed: PriceFeed; aggregator: Aggregator } | null {
  for (const feed of feeds) {
    const aggregator = feed.aggregators.findLast((one) => one.address === address)
    if (aggregator) return { feed, aggregator }
  }
  return null
}

/** The round that a log of an aggregator says; null where it says something else. */
export function roundFromLog(
  log: Log,
  aggregator: Pick<Aggregator, 'phase' | 'decimals'>,
  sealed: boolean,
): Round | null {
  const decoded = decodeLog(log)
  if (decoded.event !== 'AnswerUpdated') return null
  return {
    ...roundFields(decoded, aggregator),
    position: { block: log.blockNumber, logIndex: log.logIndex },
    key: log.key,
    sealed,
  }
}

/** The newest round as the proxy answers it. */
export const roundFromCall = (result: FeedContractState): Round | null =>
  result.round && { ...roundFields(result.round, result), position: null, key: null, sealed: true }

const roundFields = (
  { answer, round, updatedAt }: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint },
  { phase, decimals }: Pick<Aggregator, 'phase' | 'decimals'>,
) => ({ price: priceOf(answer, decimals), updatedAt: roundTimeMs(updatedAt), phase, round: round.toString() })

/** A round that has no answer yet says that it was updated at 0, which is no time. */
const roundTimeMs = (second: bigint): number | null => (second === 0n ? null : clampSeconds(second) * 1_000)

function withAggregator(
  before: readonly Aggregator[],
  { aggregator: address, phase, decimals }: FeedContractState,
): readonly Aggregator[] {
  const others = before.filter((one) => one.address !== address && one.phase > 0 && one.phase < phase)
  return [...others, { address, phase, decimals }].slice(-AGGREGATORS_BOUND)
}
