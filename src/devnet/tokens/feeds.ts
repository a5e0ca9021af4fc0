import { encodeFunctionData } from 'viem/utils'
import type { Plan } from '../chain/deferred-tx.ts'
import { digest, type Hex, lower, word, ZERO_ADDRESS, ZERO_WORD } from '../chain/hex.ts'
import { codeOf, type Held, set, slotOf, type Values } from '../chain/state.ts'
import { gasOf } from '../chain/transactions.ts'
import { aggregatorAbi, aggregatorLog } from './abi.ts'
import { type Token, tokens } from './listed.ts'

/** How many decimals an answer has. */
export const FEED_DECIMALS = 8

/** How long before it was written down a round was observed. */
const OBSERVED_BEFORE_S = 15n

/** The code of proxies and aggregators: a mark, since nobody runs it. */
export const FEED_CODE = 0x6080n

/** A price feed: what is asked, and what stood behind it at the start. */
export type Feed = { token: Token; proxy: Hex; aggregator: Hex; phase: number }

/** What stands behind a proxy; each new one has a phase of its own. */
export type Standing = { proxy: Hex; aggregator: Hex; phase: number }

/** A round as an aggregator keeps it; all zero where there was none. */
export type FeedRound = { round: bigint; answer: bigint; startedAt: bigint; updatedAt: bigint }

type Row = readonly [symbol: string, proxy: string, aggregator: string, phase?: number]

// The addresses are those on Base, as the tokens' are.
const rows: readonly Row[] = [
  ['AAPLc', '0x787f13dEa48Db0897CbCDD985de77809D837F988', '0xc37B6F754e90D4Cca1f533F5a08f7d532b3d0d9D'],
  ['AMZNc', '0x06A8E4b3aBB3B7543d8396FB2B763d22820cB295', '0x4816cb7EE43eE12C0BC9D3C597246f34D5CFdb7C'],
  ['COINc', '0x408e44f504A7371a345F03a73dDC96A4b48e8aa7', '0x86AF8309b812bDcA427a1Ad83088705ad0689cFE'],
  ['CRCLc', '0x0231cF2635D1E17bB5c2462cc7504Ba1fBd61f33', '0x936b2e82AAeDa0f437E88B24D877f6195c5FF2E2'],
  ['GOOGLc', '0x5bF49E0ffA937CE2FfF033c739aD7C634c4D34F2', '0x6bF33b7855eB8047dDe206D9F6321D7d02CfB308'],
  ['METAc', '0x6526aE6797A76123638b863AeE4dD27Ba4E4b27D', '0xA7155928bEE40052EFb3094a046c5498202FD3EE'],
  ['MSFTc', '0xeB10A6c9aa7E537aEd766C08c35Dae35B321b18c', '0xD72B34be6c2180Ad0d28dbb415AEfdE8a55F3eD3'],
  ['MSTRc', '0xB3cE282CD188b35DA0E38D8Bc7d58e33173D202a', '0xBC94b7BA3A8941Fb7AEE8bD10538F79F39185EdB'],
  ['NVDAc', '0x04689a41629776563E6822F76f2e57D148d28513', '0xF72B1eB5932800F3d2a5EeC5f99e6cD586479675', 2],
  ['SNDKc', '0x388b0dC46C0Fb05A74BeE0994fa5b02c6Fcca2eA', '0x767B5C02AF56C2621d66C8596aaC32DE7374b55b'],
  ['SPCXc', '0x6A634B235903C4ad6376892180d6fF8612e3Fa68', '0xa994B7fC3123AE0EF4EE53ab5e3545f2639187a7'],
  ['TSLAc', '0xFaf869185383a24F8cb00e27BdA6b63B9905DCb4', '0x0288234d9311C33BE6c3a34b051bff8A799dAA82'],
]

/** The feed of every token that has a reference value. */
export const feeds: readonly Feed[] = rows.flatMap(([symbol, proxy, aggregator, phase = 1]) =>
  tokens
    .filter((token) => token.symbol === symbol)
    .map((token) => ({ token, proxy: lower(proxy), aggregator: lower(aggregator), phase })),
)

// A proxy packs its phase and the aggregator of that phase into slot 2; an aggregator keeps its newest round.
const PHASE_BITS = 16n
const standingOf = (proxy: Hex) => slotOf(proxy, word(2n))
const at = (slot: bigint) => (aggregator: Hex) => slotOf(aggregator, word(slot))
const [roundOf, answerOf, startedAtOf, updatedAtOf] = [at(0n), at(1n), at(2n), at(3n)]

/** What stands behind a proxy now. */
export const standing = (held: Held, proxy: Hex): Standing => {
  const packed = held(standingOf(proxy))
  return { proxy, aggregator: addressIn(packed >> PHASE_BITS), phase: Number(BigInt.asUintN(16, packed)) }
}

/** The newest round of an aggregator. */
export const newestRound = (held: Held, aggregator: Hex): FeedRound => ({
  round: held(roundOf(aggregator)),
  answer: BigInt.asIntN(256, held(answerOf(aggregator))),
  startedAt: held(startedAtOf(aggregator)),
  updatedAt: held(updatedAtOf(aggregator)),
})

/** What a feed holds with this as its newest round. */
export const feedHolding = ({ proxy, aggregator, phase }: Feed, newest: FeedRound): Values =>
  new Map([
    [codeOf(proxy), FEED_CODE],
    [codeOf(aggregator), FEED_CODE],
    [standingOf(proxy), packed(aggregator, phase)],
    ...roundHolding(aggregator, newest),
  ])

/** What a round is to be; its number, if it is not said, follows the one before, and its time is the block's. */
export type Publication = { answer: bigint; round?: bigint; updatedAt?: bigint }

/** When a round was observed that was written down at a second. */
export const observedAt = (updatedAt: bigint): bigint =>
  updatedAt > OBSERVED_BEFORE_S ? updatedAt - OBSERVED_BEFORE_S : 0n

/** A feed publishes a round. */
export const publishing =
  (feed: Feed, sender: Hex, { answer, ...said }: Publication): Plan =>
  ({ held, timestamp }) => {
    const { aggregator } = standing(held, feed.proxy)
    const round = said.round ?? newestRound(held, aggregator).round + 1n
    const updatedAt = said.updatedAt ?? BigInt(timestamp)
    const startedAt = observedAt(updatedAt)
    const holding = roundHolding(aggregator, { round, answer, startedAt, updatedAt })
    return {
      from: sender,
      to: aggregator,
      input: encodeFunctionData({ abi: aggregatorAbi, functionName: 'transmit', args: [Number(round), answer] }),
      gasUsed: gasOf.other,
      logs: [
        aggregatorLog(aggregator, 'NewTransmission', {
          aggregatorRoundId: Number(round),
          answer,
          transmitter: sender,
          observationsTimestamp: Number(BigInt.asUintN(32, startedAt)),
          observations: [answer],
          observers: '0x00',
          juelsPerFeeCoin: 0n,
          configDigest: ZERO_WORD,
          epochAndRound: Number(round),
        }),
        aggregatorLog(aggregator, 'NewRound', {
          roundId: round,
          startedBy: ZERO_ADDRESS,
          startedAt,
        }),
        aggregatorLog(aggregator, 'AnswerUpdated', { current: answer, roundId: round, updatedAt }),
      ],
      writes: [...holding].map(([key, value]) => set(key, value)),
    }
  }

/** A new aggregator, in the next phase; nothing says so. */
export const swapping =
  (feed: Feed, sender: Hex): Plan =>
  ({ held }) => {
    const phase = standing(held, feed.proxy).phase + 1
    const aggregator = addressIn(BigInt(digest('aggregator', feed.proxy, phase)))
    return {
      from: sender,
      to: feed.proxy,
      input: '0x',
      gasUsed: gasOf.other,
      logs: [],
      writes: [set(standingOf(feed.proxy), packed(aggregator, phase)), set(codeOf(aggregator), FEED_CODE)],
    }
  }

const packed = (aggregator: Hex, phase: number): bigint => (BigInt(aggregator) << PHASE_BITS) | BigInt(phase)

const addressIn = (value: bigint): Hex => `0x${word(BigInt.asUintN(160, value)).slice(26)}`

const roundHolding = (aggregator: Hex, { round, answer, startedAt, updatedAt }: FeedRound): Values =>
  new Map([
    [roundOf(aggregator), round],
    // A word has no sign of its own.
    [answerOf(aggregator), BigInt.asUintN(256, answer)],
    [startedAtOf(aggregator), startedAt],
    [updatedAtOf(aggregator), updatedAt],
  ])
