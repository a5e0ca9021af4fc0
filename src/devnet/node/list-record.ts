import { formatUnits } from 'viem/utils'
import type { Chain } from '../chain/chain.ts'
import type { Held } from '../chain/state.ts'
import { supplyOf } from '../chain/transactions.ts'
import type { Round } from '../life/nav-curve.ts'
import { FEED_DECIMALS, feeds, newestRound, standing } from '../tokens/feeds.ts'
import type { Token } from '../tokens/listed.ts'
import { featuresIn, MULTIPLIER_DECIMALS, multiplierAt, nameOf, pausesOf, symbolOf, textIn } from '../tokens/storage.ts'
import type { World } from '../world.ts'

/** What the list says of a token: what the chain holds at its newest sealed block. */
export type Reading = {
  name: string
  symbol: string
  /** In the token's smallest unit. */
  supply: bigint
  /** With all its digits. */
  multiplier: string
  paused: readonly number[]
  round?: Round
}

type Scene = Pick<World, 'chain' | 'lists' | 'namingBlocks'>

/** What the list says of a token now; undefined while it is not on it. */
export const readingOf =
  ({ chain, lists, namingBlocks }: Scene, navNow: (token: Token) => Round | undefined) =>
  (token: Token): Reading | undefined => {
    const { number, timestamp } = chain.head
    if (!lists(token, number)) return undefined
    const held = heldAt(chain, number)
    const named = heldAt(chain, Math.max(number - namingBlocks, chain.oldest - 1, 0))
    const round = newer(navNow(token), roundOn(held, token))
    return {
      name: textIn(named(nameOf(token.address))),
      symbol: textIn(named(symbolOf(token.address))),
      supply: held(supplyOf(token.address)),
      multiplier: formatUnits(multiplierAt(held, token.address, timestamp), MULTIPLIER_DECIMALS),
      paused: featuresIn(held(pausesOf(token.address))),
      ...(round && { round }),
    }
  }

const heldAt =
  (chain: Pick<Chain, 'held'>, number: number): Held =>
  (key) =>
    chain.held(key, number)

/** The newest round that a token's feed has on the chain. */
const roundOn = (held: Held, token: Token): Round | undefined => {
  const feed = feeds.find((one) => one.token === token)
  if (!feed) return undefined
  const { round, answer, updatedAt } = newestRound(held, standing(held, feed.proxy).aggregator)
  if (round === 0n) return undefined
  return { price: Number(formatUnits(answer, FEED_DECIMALS)), updatedAtMs: Number(updatedAt) * 1_000 }
}

const newer = (one: Round | undefined, other: Round | undefined): Round | undefined =>
  one && other ? (other.updatedAtMs > one.updatedAtMs ? other : one) : (one ?? other)
