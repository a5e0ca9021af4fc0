import { read } from '../chain/logs/events.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { Hex } from '../protocol/fields.ts'
import { secondOf } from './apply-log.ts'
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
export type Feed = { readonly token: string; readonly proxy: Hex; readonly aggregators: readonly Aggregator[] }

/** What asking a proxy brings. */
export type FeedAnswer = Omit<Aggregator, 'address'> & {
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
export const openFeeds = (settings: readonly FeedSetting[], before: readonly Feed[] = []): readonly Feed[] =>
  settings.map(({ token, proxy, aggregator = proxy }) => {
    const known = before.find((feed) => feed.token === token && feed.proxy === proxy)
    return known ?? { token, proxy, aggregators: [{ address: aggregator, phase: 0, decimals: FEED_DECIMALS }] }
  })

/** The feeds as they are once a proxy has answered. */
export const feedsAfter = (feeds: readonly Feed[], answer: FeedAnswer): readonly Feed[] =>
  feeds.map((feed) => (feed.proxy === answer.proxy ? { ...feed, aggregators: after(feed.aggregators, answer) } : feed))

/** Whose logs are heard for the sake of the feeds. */
export const addressesOf = (feeds: readonly Feed[]): readonly Hex[] =>
  feeds.flatMap(({ aggregators }) => aggregators.map(({ address }) => address))

/** The feed that an address makes the rounds of, and how. */
export function feedOf(feeds: readonly Feed[], address: Hex): { feed: Feed; aggregator: Aggregator } | null {
  for (const feed of feeds) {
    const aggregator = feed.aggregators.findLast((one) => one.address === address)
    if (aggregator) return { feed, aggregator }
  }
  return null
}

/** The round that a log of an aggregator says; null where it says something else. */
export function roundSaidBy(log: Log, by: Pick<Aggregator, 'phase' | 'decimals'>, sealed: boolean): Round | null {
  const said = read(log)
  if (said.event !== 'AnswerUpdated') return null
  return { ...roundOf(said, by), at: { block: log.blockNumber, logIndex: log.logIndex }, key: log.key, sealed }
}

/** The newest round as the proxy answers it. */
export const roundAnswered = (answer: FeedAnswer): Round | null =>
  answer.round && { ...roundOf(answer.round, answer), at: null, key: null, sealed: true }

const roundOf = (
  { answer, round, updatedAt }: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint },
  { phase, decimals }: Pick<Aggregator, 'phase' | 'decimals'>,
) => ({ price: priceOf(answer, decimals), updatedAt: timeOf(updatedAt), phase, round: round.toString() })

/** A round that has no answer yet says that it was updated at 0, which is no time. */
const timeOf = (second: bigint): number | null => (second === 0n ? null : secondOf(second) * 1_000)

function after(
  before: readonly Aggregator[],
  { aggregator: address, phase, decimals }: FeedAnswer,
): readonly Aggregator[] {
  const others = before.filter((one) => one.address !== address && one.phase > 0 && one.phase < phase)
  return [...others, { address, phase, decimals }].slice(-AGGREGATORS_BOUND)
}
