import { toFunctionSelector } from 'viem/utils'
import { type Hex, toLowerHex, toWord, ZERO_ADDRESS, ZERO_WORD } from '../../lib/hex.ts'
import { codeKey, type ReadState, type StateValues, storageKey, writeValue } from '../chain/account-state.ts'
import type { DeferredTransaction } from '../chain/chain-types.ts'
import { digest } from '../chain/hashes.ts'
import { aggregatorLog } from './contract-abis.ts'
import { type DevnetToken, testToken, tokenOf } from './issued-tokens.ts'
import { gasByKind } from './token-transfers.ts'

export const FEED_DECIMALS = 8
/** Time between the observation of a round and its update. */
const OBSERVED_BEFORE_S = 15n
/** Code of proxies and aggregators. It is a marker that never runs. */
export const FEED_CODE = 0x6080n

/** A price feed: its proxy, and its aggregator and phase at the start of the chain. */
export type DevnetFeed = { token: DevnetToken; proxy: Hex; aggregator: Hex; phase: number }

/** The aggregator behind a proxy. Each new aggregator has its own phase. */
export type FeedState = { proxy: Hex; aggregator: Hex; phase: number }

/** A round as an aggregator stores it. All fields are zero before the first round. */
export type FeedRound = { round: bigint; answer: bigint; startedAt: bigint; updatedAt: bigint }

type FeedRow = readonly [symbol: string, proxy: string, aggregator: string, phase?: number]

// Proxies and aggregators have the addresses of the real ones on Base.
const feedRows: readonly FeedRow[] = [
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

const toFeed = ([symbol, proxy, aggregator, phase = 1]: FeedRow): DevnetFeed => {
  return { token: tokenOf(symbol), proxy: toLowerHex(proxy), aggregator: toLowerHex(aggregator), phase }
}
export const feeds: readonly DevnetFeed[] = feedRows.map(toFeed)

const TEST_PROXY = '0x7e570000000000000000000000000000feed0001'
const TEST_AGGREGATOR = '0x7e570000000000000000000000000000feed0002'
export const testFeed = toFeed([testToken.symbol, TEST_PROXY, TEST_AGGREGATOR])

// A proxy packs its phase and that phase's aggregator into slot 2. An aggregator stores its newest round in slots 0 to 3.
const TRANSMIT = toFunctionSelector('transmit(uint32,int192)')
const PHASE_BITS = 16n
const feedStateKey = (proxy: Hex) => storageKey(proxy, toWord(2n))
const keyOfSlot = (slot: bigint) => (aggregator: Hex) => storageKey(aggregator, toWord(slot))
const [roundKey, answerKey, startedAtKey, updatedAtKey] = [keyOfSlot(0n), keyOfSlot(1n), keyOfSlot(2n), keyOfSlot(3n)]

export const readFeedState = (readState: ReadState, proxy: Hex): FeedState => {
  const packedState = readState(feedStateKey(proxy))
  return { proxy, aggregator: addressFromWord(packedState >> PHASE_BITS), phase: Number(BigInt.asUintN(16, packedState)) }
}

export const readNewestRound = (readState: ReadState, aggregator: Hex): FeedRound => ({
  round: readState(roundKey(aggregator)),
  answer: BigInt.asIntN(256, readState(answerKey(aggregator))),
  startedAt: readState(startedAtKey(aggregator)),
  updatedAt: readState(updatedAtKey(aggregator)),
})

export const feedValues = ({ proxy, aggregator, phase }: DevnetFeed, newest: FeedRound): StateValues =>
  new Map([
    [codeKey(proxy), FEED_CODE],
    [codeKey(aggregator), FEED_CODE],
    [feedStateKey(proxy), packFeedState(aggregator, phase)],
    ...roundValues(aggregator, newest),
  ])

/** A round to publish. By default it has the next number and the time of its block. */
export type RoundInput = { answer: bigint; round?: bigint; updatedAt?: bigint }

export const observedAt = (updatedAt: bigint): bigint => (updatedAt > OBSERVED_BEFORE_S ? updatedAt - OBSERVED_BEFORE_S : 0n)

export const buildRoundTransaction =
  (feed: DevnetFeed, sender: Hex, { answer, ...requested }: RoundInput): DeferredTransaction =>
  ({ readState, timestamp }) => {
    const { aggregator } = readFeedState(readState, feed.proxy)
    const round = requested.round ?? readNewestRound(readState, aggregator).round + 1n
    const updatedAt = requested.updatedAt ?? BigInt(timestamp)
    const startedAt = observedAt(updatedAt)
    return {
      from: sender,
      to: aggregator,
      input: `${TRANSMIT}${[round, BigInt.asUintN(256, answer)].map((value) => toWord(value).slice(2)).join('')}`,
      gasUsed: gasByKind.other,
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
        aggregatorLog(aggregator, 'NewRound', { roundId: round, startedBy: ZERO_ADDRESS, startedAt }),
        aggregatorLog(aggregator, 'AnswerUpdated', { current: answer, roundId: round, updatedAt }),
      ],
      writes: roundValues(aggregator, { round, answer, startedAt, updatedAt }).map(([key, value]) => writeValue(key, value)),
    }
  }

/** Puts a new aggregator behind the proxy, in the next phase. Emits no log. */
export const buildAggregatorSwap =
  (feed: DevnetFeed, sender: Hex): DeferredTransaction =>
  ({ readState }) => {
    const phase = readFeedState(readState, feed.proxy).phase + 1
    const aggregator = addressFromWord(BigInt(digest('aggregator', feed.proxy, phase)))
    return {
      from: sender,
      to: feed.proxy,
      input: '0x',
      gasUsed: gasByKind.other,
      logs: [],
      writes: [writeValue(feedStateKey(feed.proxy), packFeedState(aggregator, phase)), writeValue(codeKey(aggregator), FEED_CODE)],
    }
  }

const packFeedState = (aggregator: Hex, phase: number): bigint => (BigInt(aggregator) << PHASE_BITS) | BigInt(phase)

const addressFromWord = (value: bigint): Hex => `0x${toWord(BigInt.asUintN(160, value)).slice(26)}`

const roundValues = (aggregator: Hex, { round, answer, startedAt, updatedAt }: FeedRound): [string, bigint][] => [
  [roundKey(aggregator), round],
  // Storage words are unsigned, but an answer may be negative.
  [answerKey(aggregator), BigInt.asUintN(256, answer)],
  [startedAtKey(aggregator), startedAt],
  [updatedAtKey(aggregator), updatedAt],
]
