import { parseAbiParameters } from 'viem/utils'
import { type Hex, readHex, toWord, WORD_CHARS } from '../../../lib/hex.ts'
import { abiDecoder, addressFromWord, isAddressWord } from '../logs/abi-decoder.ts'
import type { RequestFn } from '../rpc/endpoint-pool.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { contractMethod, firstValue } from './contract-method.ts'

/** State of the proxy contract of a feed: its current aggregator contract, and the newest round of this aggregator. */
export type FeedContractState = {
  readonly proxy: Hex
  readonly aggregator: Hex
  readonly phase: number
  readonly decimals: number
  readonly round: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint } | null
}

type BlockTag = Hex | 'latest'
type FeedReading = Omit<FeedContractState, 'proxy'>

/** Storage slot of a feed's proxy. Its lowest bits are the number of the current phase, and the aggregator is above them. */
const PHASE_SLOT = '0x2'
const PHASE_BITS = 16n
const ADDRESS_BITS = 160n
/** Number of decimals of every feed in dollars. */
export const USD_FEED_DECIMALS = 8
/** Number of low bits of a proxy's round id that are the round of the aggregator. The bits above them are the phase. */
const ROUND_BITS = 64

const decodeWord = firstValue(abiDecoder(parseAbiParameters('bytes32')))

const feedMethods = {
  aggregator: contractMethod('aggregator()', (data) => {
    const addressWord = decodeWord(data)
    return addressWord && isAddressWord(addressWord) && BigInt(addressWord) > 0n ? addressFromWord(addressWord) : null
  }),
  phaseId: contractMethod('phaseId()', firstValue(abiDecoder(parseAbiParameters('uint16')))),
  decimals: contractMethod('decimals()', firstValue(abiDecoder(parseAbiParameters('uint8')))),
  latestRoundData: contractMethod('latestRoundData()', abiDecoder(parseAbiParameters('uint80, int256, uint256, uint256, uint80'))),
}

/** Reads a feed's proxy by calls, or from its storage if calls are refused or return no aggregator. */
export async function readFeed(request: RequestFn, proxy: Hex, block: BlockTag = 'latest'): Promise<FeedReading | null> {
  try {
    const aggregator = await feedMethods.aggregator(request, proxy, block)
    if (aggregator) return await readRounds(request, proxy, block, aggregator)
  } catch (failure) {
    if (failure instanceof UpstreamError && failure.isRefused) return readStoredPhase(request, proxy, block)
    throw failure
  }
  try {
    return await readStoredPhase(request, proxy, block)
  } catch (failure) {
    // The proxy gave no aggregator, so a failed read of its storage means that there is none.
    if (failure instanceof UpstreamError) return null
    throw failure
  }
}

async function readRounds(request: RequestFn, proxy: Hex, block: BlockTag, aggregator: Hex): Promise<FeedReading | null> {
  const phase = await feedMethods.phaseId(request, proxy, block)
  const decimals = await feedMethods.decimals(request, proxy, block)
  if (phase === null || decimals === null) return null
  const data = await feedMethods.latestRoundData(request, proxy, block)
  return { aggregator, phase, decimals, round: data && currentRound(data, phase) }
}

/** Returns null before the first round, or if the proxy changed its phase between two calls. */
function currentRound(
  [proxyRound, answer, _startedAt, updatedAt]: readonly [bigint, bigint, bigint, bigint, bigint],
  phase: number,
): FeedContractState['round'] {
  const round = BigInt.asUintN(ROUND_BITS, proxyRound)
  const isOfPhase = proxyRound >> BigInt(ROUND_BITS) === BigInt(phase)
  return isOfPhase && round > 0n && updatedAt > 0n ? { answer, round, updatedAt } : null
}

async function readStoredPhase(request: RequestFn, proxy: Hex, block: BlockTag): Promise<FeedReading | null> {
  const storedWord = readHex(await request('eth_getStorageAt', [proxy, PHASE_SLOT, block]), WORD_CHARS)
  if (storedWord === null) throw new UpstreamError('unreadable', 'the answer is not a 32-byte word')
  const bits = BigInt(storedWord)
  const aggregator = bits >> PHASE_BITS
  // A proxy of another implementation stores something else in this slot.
  if (aggregator === 0n || aggregator >> ADDRESS_BITS > 0n) return null
  return {
    aggregator: addressFromWord(toWord(aggregator)),
    phase: Number(BigInt.asUintN(Number(PHASE_BITS), bits)),
    decimals: USD_FEED_DECIMALS,
    round: null,
  }
}
