import { isDeepStrictEqual } from 'node:util'
import { txOf } from '../../protocol/fields.ts'
import type { Draft } from '../../protocol/updates.ts'
import type { OpenKey, SealedBlock } from '../chain/blocks/sealed-block.ts'
import type { FeedContractState } from '../chain/contracts/feed-contract.ts'
import { completeFor } from '../chain/logs/log-filter.ts'
import type { Log } from '../chain/logs/log-parser.ts'
import { addRound, applySealedRounds, type NavHistory } from '../tokens/nav-history.ts'
import { aggregatorAddresses, applyFeedCall, findFeed, type PriceFeed, roundFromCall, roundFromLog } from '../tokens/price-feeds.ts'
import type { Token } from '../tokens/token.ts'
import { setTokenWithNav } from './apply-to-tokens.ts'
import type { Moment } from './batch-values.ts'
import type { IngestState } from './ingest-state.ts'

export function applyFeedAnswer(state: IngestState, answer: FeedContractState, moment: Moment): readonly Draft[] {
  const feeds = applyFeedCall(state.feeds, answer)
  if (!isDeepStrictEqual(feeds, state.feeds)) {
    state.feeds = feeds
    state.feedAddresses = new Set(aggregatorAddresses(feeds))
  }
  const round = roundFromCall(answer)
  const feed = state.feeds.find(({ proxy }) => proxy === answer.proxy)
  const token = feed && tokenOfFeed(state, feed)
  return token && round ? updateRounds(state, token, addRound(token.navHistory, round), moment) : []
}

/** Applies a pre-confirmed round. Ignores rounds of settled blocks, which are applied already, and other logs of an aggregator. */
export function applyPendingRound(state: IngestState, log: Log, moment: Moment): readonly Draft[] {
  const { settled } = state.ledger
  const match = settled === null || log.blockNumber > settled ? findFeed(state.feeds, log.address) : null
  const token = match && tokenOfFeed(state, match.feed)
  const round = match && roundFromLog(log, match.aggregator, false)
  return token && round ? updateRounds(state, token, addRound(token.navHistory, round), moment) : []
}

/** Applies all rounds of a sealed block to the feeds whose logs were read. A partly readable block removes no round. */
export function settleRounds(
  state: IngestState,
  { number, filters, via, unreadable = 0 }: Pick<SealedBlock, 'number' | 'filters' | 'via' | 'unreadable'>,
  logs: readonly Log[],
  moment: Moment,
): readonly Draft[] {
  const queried = completeFor(filters)
  return state.feeds.flatMap((feed) => {
    const token = feed.aggregators.some(({ address }) => queried.has(address)) ? tokenOfFeed(state, feed) : undefined
    if (!token) return []
    const rounds = logs.flatMap((log) => {
      const aggregator = feed.aggregators.find(({ address }) => address === log.address)
      return (aggregator && roundFromLog(log, aggregator, true)) ?? []
    })
    const { navHistory } = token
    const settled = unreadable > 0 ? rounds.reduce(addRound, navHistory) : applySealedRounds(navHistory, number, rounds)
    // Thousands of old blocks are settled in a second, and most have no round. Only newer ones notice that a NAV became stale.
    return settled === navHistory && via === 'backfill' ? [] : updateRounds(state, token, settled, moment)
  })
}

/** Returns the unsealed rounds of a block. If a node's logs of the block lack them, it may not have indexed the block yet. */
export function openRoundsAt(state: IngestState, block: number): readonly OpenKey[] {
  return state.feeds.flatMap((feed) => {
    const address = feed.aggregators.at(-1)?.address
    const rounds = tokenOfFeed(state, feed)?.navHistory.feed ?? []
    return rounds.flatMap(({ position, key, sealed }) =>
      address && position?.block === block && key && !sealed ? [{ key, address, tx: txOf(key) }] : [],
    )
  })
}

const updateRounds = (state: IngestState, token: Token, navHistory: NavHistory, moment: Moment): readonly Draft[] =>
  setTokenWithNav(state, navHistory === token.navHistory ? token : { ...token, navHistory }, moment)

function tokenOfFeed(state: IngestState, { token, proxy }: PriceFeed): Token | undefined {
  const { tokens, tokenByFeed } = state
  const address = tokenByFeed.get(proxy)
  if (address) return tokens.get(address)
  const found = state.directory?.find(token)
  if (found?.kind !== 'found') return undefined
  tokenByFeed.set(proxy, found.token.address)
  return found.token
}
