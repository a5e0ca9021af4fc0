import { parseUnits } from 'viem/utils'
import type { Hex } from '../../lib/hex.ts'
import { nonceKey, type StateValues, writeValue } from '../chain/account-state.ts'
import { GENESIS_MS } from '../chain/chain-builder.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { addressFrom } from '../chain/hashes.ts'
import {
  buildRoundTransaction,
  type DevnetFeed,
  FEED_DECIMALS,
  type FeedRound,
  feeds,
  feedValues,
  observedAt,
} from '../tokens/feeds.ts'
import type { NavRound, ReadNav } from './nav-curve.ts'
import { CYCLE_BLOCKS } from './trading-cycle.ts'

/** In a past that is only outlined, one block of this number has the rounds of them all. */
const OUTLINED_BLOCKS = 5

/** Publishes each new round of a feed on chain, in the first block that starts after it. */
export const createFeedPublisher = (seed: string, blockMs: number, readNav: ReadNav) => {
  const blockStartMs = (block: number) => GENESIS_MS + (block - 1) * blockMs
  const transmitterOf = ({ token }: DevnetFeed) => addressFrom(seed, `transmitter ${token.symbol}`)
  const roundsSince = (before: number, block: number): readonly DeferredTransaction[] =>
    roundsAt(readNav, blockStartMs(block))
      .filter(({ newest }) => newest.updatedAtMs > blockStartMs(before))
      .map(({ feed, newest }) => buildTransmission(feed, transmitterOf(feed), toFeedRound(newest)))
  return {
    stateAtStart: (cycle: number): StateValues => {
      const startMs = blockStartMs(cycle * CYCLE_BLOCKS)
      const nonces = roundsAt(readNav, startMs).map(
        ({ feed, newest }) => [nonceKey(transmitterOf(feed)), toFeedRound(newest).round] as const,
      )
      return new Map([...feedValuesAt(readNav, startMs), ...nonces])
    },
    transactions: (block: number): readonly DeferredTransaction[] => roundsSince(block - 1, block),
    /** The rounds of several blocks, in the last of them. Of one feed, the newest. */
    outline: (block: number): readonly DeferredTransaction[] =>
      block % OUTLINED_BLOCKS > 0 ? [] : roundsSince(block - OUTLINED_BLOCKS, block),
  }
}

/** State of the feeds of a chain in which they publish only if a test asks for it. */
export const feedValuesAt = (readNav: ReadNav, nowMs: number): StateValues =>
  new Map(roundsAt(readNav, nowMs).flatMap(({ feed, newest }) => [...feedValues(feed, toFeedRound(newest))]))

const roundsAt = (readNav: ReadNav, atMs: number) =>
  feeds.flatMap((feed) => {
    const newest = readNav(feed.token, atMs)
    return newest ? [{ feed, newest }] : []
  })

const buildTransmission =
  (feed: DevnetFeed, sender: Hex, round: FeedRound): DeferredTransaction =>
  (context) => {
    const transaction = buildRoundTransaction(feed, sender, round)(context)
    // The number of earlier rounds is unknown without a replay, so the nonce is the number of the round, which follows its time.
    return { ...transaction, writes: [...transaction.writes, writeValue(nonceKey(sender), round.round)] }
  }

/** Makes a round as its aggregator stores it. Its number is the number of seconds since block 0, so it needs no replay. */
const toFeedRound = ({ price, updatedAtMs }: NavRound): FeedRound => {
  const updatedAt = BigInt(Math.floor(updatedAtMs / 1_000))
  const round = BigInt(Math.max(1, Math.floor((updatedAtMs - GENESIS_MS) / 1_000)))
  return { round, answer: parseUnits(String(price), FEED_DECIMALS), startedAt: observedAt(updatedAt), updatedAt }
}
