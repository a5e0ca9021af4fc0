import type { FeedSetting } from '../../src/relay/config/feed-settings.ts'
import type { ActiveFaults } from './active-faults.ts'
import type { PlacedLog } from './placed-logs.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SimulatedChain } from './simulated-chain.ts'
import { listedTokens } from './simulated-tokens.ts'
import { emit, hex, type SimulatedTx, simulatedTx } from './simulated-transactions.ts'

/** The price feed of one token. Only worlds whose rounds are out of order have it. */

export const ANSWER_UPDATED = '0x0559884fd3a460db3073b7fc896cc77986f16e378210ded43186175bf646fc5f'
const PROXY = hex(40, 0xfeed)
export const FEED_TOKEN = listedTokens[2]?.address ?? PROXY
/** A round in every so many slots. */
const ROUND_SLOTS = 12
const OLDEST_S = 60

export const feedsOf = (activeFaults: ActiveFaults): readonly FeedSetting[] =>
  activeFaults.occurs('olderRounds') ? [{ token: FEED_TOKEN, proxy: PROXY }] : []

/** The transaction of a round, whose time may be older than that of the one before; none in most slots. */
export function roundTx(activeFaults: ActiveFaults, random: SeededRandom, slot: number, second: number): readonly SimulatedTx[] {
  if (!activeFaults.occurs('olderRounds') || slot % ROUND_SLOTS > 0) return []
  const ageS = random.chance(activeFaults.amount('olderRounds') ?? 0) ? random.int(1, OLDEST_S) : 0
  const answer = hex(64, random.int(100, 200) * 100_000_000)
  const log = { address: PROXY, topics: [ANSWER_UPDATED, answer, hex(64, slot)], data: hex(64, second - ageS) } as const
  return [simulatedTx(hex(64, 0x7f_0000_0000 + slot), [emit(log)])]
}

/** A round as it is published: its price, and its time in ISO 8601. */
type SimulatedRound = { readonly price: string; readonly updatedAt: string }

export const isRound = ({ content: { address, topics } }: PlacedLog): boolean => address === PROXY && topics[0] === ANSWER_UPDATED

/** Every round that was ever shown or sealed. */
export function roundsOf({ announced, blocksByHash }: SimulatedChain): readonly SimulatedRound[] {
  const logs = [...[...announced.values()].flat(), ...[...blocksByHash.values()].flatMap((block) => block.logs)]
  return logs
    .filter(isRound)
    .map(({ content: { topics, data } }) => ({
      price: String(BigInt(topics[1] ?? 0) / 100_000_000n),
      updatedAt: new Date(Number(data) * 1_000).toISOString(),
    }))
}
