import { parseUnits } from 'viem/utils'
import { GENESIS_MS } from '../chain/chain.ts'
import type { Plan } from '../chain/deferred-tx.ts'
import type { Hex } from '../chain/hex.ts'
import { nonceOf, set, type Values } from '../chain/state.ts'
import {
  FEED_DECIMALS,
  type Feed,
  type FeedRound,
  feedHolding,
  feeds,
  observedAt,
  publishing,
} from '../tokens/feeds.ts'
import type { Nav, Round } from './nav-curve.ts'
import { accountOf } from './trading.ts'

/** Who brings reference values on the chain: each new round of a feed, in the first block that is begun after it. */
export type Oracle = {
  /** What the feeds hold once a block is sealed. */
  opening: (block: number) => Values
  /** The rounds that are published in a block. */
  plans: (block: number) => readonly Plan[]
}

/** An oracle that publishes what is so at each block's beginning. */
export const createOracle = (seed: string, blockMs: number, navOf: Nav): Oracle => {
  const beginsMs = (block: number) => GENESIS_MS + (block - 1) * blockMs
  const senderOf = ({ token }: Feed) => accountOf(seed, `transmitter ${token.symbol}`)
  return {
    opening: (block) =>
      new Map(
        feeds.flatMap((feed) => {
          const newest = navOf(feed.token, beginsMs(block))
          if (!newest) return []
          return [...feedHolding(feed, keptOf(newest)), [nonceOf(senderOf(feed)), countAt(newest)] as const]
        }),
      ),
    plans: (block) =>
      feeds.flatMap((feed) => {
        const newest = navOf(feed.token, beginsMs(block))
        return newest && newest.updatedAtMs > beginsMs(block - 1) ? [transmitting(feed, senderOf(feed), newest)] : []
      }),
  }
}

/** What feeds hold that publish nothing by themselves. */
export const feedsHolding = (navOf: Nav, now: number): Values =>
  new Map(
    feeds.flatMap((feed) => {
      const newest = navOf(feed.token, now)
      return newest ? [...feedHolding(feed, keptOf(newest))] : []
    }),
  )

const transmitting =
  (feed: Feed, sender: Hex, newest: Round): Plan =>
  (moment) => {
    const { answer, round, updatedAt } = keptOf(newest)
    const deed = publishing(feed, sender, { answer, round, updatedAt })(moment)
    // How many came before cannot be told without counting them: so the sender's count is the second's, as is the round's number.
    return { ...deed, writes: [...deed.writes, set(nonceOf(sender), countAt(newest))] }
  }

/** A round as its aggregator keeps it. Its number grows with its time, and is the same whenever the chain was opened. */
const keptOf = ({ price, updatedAtMs }: Round): FeedRound => {
  const updatedAt = BigInt(Math.floor(updatedAtMs / 1_000))
  const round = BigInt(Math.max(1, Math.floor((updatedAtMs - GENESIS_MS) / 1_000)))
  return { round, answer: parseUnits(String(price), FEED_DECIMALS), startedAt: observedAt(updatedAt), updatedAt }
}

const countAt = (newest: Round): bigint => keptOf(newest).round
