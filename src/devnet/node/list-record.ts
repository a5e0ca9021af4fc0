import { formatUnits } from 'viem/utils'
import type { ReadState } from '../chain/account-state.ts'
import type { Chain } from '../chain/chain.ts'
import { supplyKey } from '../chain/transactions.ts'
import type { NavRound } from '../life/nav-curve.ts'
import { FEED_DECIMALS, feeds, readFeedState, readNewestRound, testFeed } from '../tokens/feeds.ts'
import type { DevnetToken } from '../tokens/issued-tokens.ts'
import {
  MULTIPLIER_DECIMALS,
  multiplierAt,
  nameKey,
  pausedFeaturesKey,
  symbolKey,
  unpackFeatures,
  unpackText,
} from '../tokens/token-storage.ts'
import type { World } from '../world.ts'

/** The list's data of a token, from the newest sealed block. */
export type TokenListing = {
  name: string
  symbol: string
  /** In the token's smallest unit. */
  supply: bigint
  /** With all digits. */
  multiplier: string
  paused: readonly number[]
  round?: NavRound
}

type ListReaderInputs = Pick<World, 'chain' | 'isListed' | 'nameDelayBlocks'>

/** Reads the list's data of a token now; undefined while it is not on the list. */
export const createListedTokenReader =
  ({ chain, isListed, nameDelayBlocks }: ListReaderInputs, readNavNow: (token: DevnetToken) => NavRound | undefined) =>
  (token: DevnetToken): TokenListing | undefined => {
    const { number, timestamp } = chain.head
    if (!isListed(token, number)) return undefined
    const readState = stateReaderAt(chain, number)
    const readNameState = stateReaderAt(chain, Math.max(number - nameDelayBlocks, chain.oldest - 1, 0))
    const round = newerRound(readNavNow(token), readChainRound(readState, token))
    return {
      name: unpackText(readNameState(nameKey(token.address))),
      symbol: unpackText(readNameState(symbolKey(token.address))),
      supply: readState(supplyKey(token.address)),
      multiplier: formatUnits(multiplierAt(readState, token.address, timestamp), MULTIPLIER_DECIMALS),
      paused: unpackFeatures(readState(pausedFeaturesKey(token.address))),
      ...(round && { round }),
    }
  }

const stateReaderAt =
  (chain: Pick<Chain, 'valueAt'>, number: number): ReadState =>
  (key) =>
    chain.valueAt(key, number)

/** The newest round of a token's feed on the chain. */
const readChainRound = (readState: ReadState, token: DevnetToken): NavRound | undefined => {
  const feed = [...feeds, testFeed].find((candidate) => candidate.token === token)
  if (!feed) return undefined
  const { round, answer, updatedAt } = readNewestRound(readState, readFeedState(readState, feed.proxy).aggregator)
  if (round === 0n) return undefined
  return { price: Number(formatUnits(answer, FEED_DECIMALS)), updatedAtMs: Number(updatedAt) * 1_000 }
}

const newerRound = (a: NavRound | undefined, b: NavRound | undefined): NavRound | undefined =>
  a && b ? (b.updatedAtMs > a.updatedAtMs ? b : a) : (a ?? b)
