import { parseAbiParameters, toFunctionSelector } from 'viem/utils'
import { type Hex, quantity, readHex, toWord, WORD_CHARS } from '../../../lib/hex.ts'
import { abiDecoder, addressFromWord, isAddressWord } from '../logs/abi-decoder.ts'
import { type Header, isSealed } from '../rpc/block-header.ts'
import { ChainReader } from '../rpc/chain-reader.ts'
import type { RequestFn } from '../rpc/endpoint-pool.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'

/** A settled block. The hash is null if the relay never read it. */
export type BlockRef = { readonly number: number; readonly hash: Hex | null }

/** State of a token's contract at a block. A value is null if the contract lacks the function or schedules no change. */
export type TokenContractState = {
  readonly address: Hex
  readonly block: number
  readonly multiplier: bigint | null
  readonly scheduled: { readonly to: bigint; readonly effectiveAt: bigint } | null
  readonly paused: readonly number[] | null
}

/** State of the proxy contract of a feed: its current aggregator contract, and the newest round of this aggregator. */
export type FeedContractState = {
  readonly proxy: Hex
  readonly aggregator: Hex
  readonly phase: number
  readonly decimals: number
  readonly round: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint } | null
}

type TokenReading = Omit<TokenContractState, 'address' | 'block'>
type FeedReading = Omit<FeedContractState, 'proxy'>

/** Limit of the hex characters of an answer. The called functions return less. */
const ANSWER_BOUND_CHARACTERS = 64 * 2 ** 10
/** Storage slot of a feed's proxy. Its lowest bits are the number of the current phase, and the aggregator is above them. */
const PHASE_SLOT = '0x2'
const PHASE_BITS = 16n
const ADDRESS_BITS = 160n
/** Number of decimals of every feed in dollars. */
const USD_FEED_DECIMALS = 8
/** Number of low bits of a proxy's round id that are the round of the aggregator. The bits above them are the phase. */
const ROUND_BITS = 64

/** Returns a function that calls this method of a contract. That function returns null if the contract lacks the method. */
const contractMethod = <Value>(signature: string, decode: (data: Hex) => Value | null) => {
  const selector = toFunctionSelector(signature)
  return async (request: RequestFn, to: Hex, block: Hex | 'latest', words = ''): Promise<Value | null> => {
    try {
      const answer = await request('eth_call', [{ to, data: `${selector}${words}` }, block])
      const isLong = typeof answer === 'string' && answer.length > ANSWER_BOUND_CHARACTERS
      const data = isLong ? null : readHex(answer, null)
      if (data === null) throw new UpstreamError('unreadable', 'the answer is not hex data')
      return decode(data)
    } catch (failure) {
      // A contract without the function reverts the call. This is an answer, and no failure of the node.
      if (failure instanceof UpstreamError && failure.kind === 'reverted') return null
      throw failure
    }
  }
}

const firstValue =
  <Value>(decode: (data: Hex) => readonly [Value, ...unknown[]] | null) =>
  (data: Hex): Value | null =>
    decode(data)?.[0] ?? null

const decodeUint = firstValue(abiDecoder(parseAbiParameters('uint256')))
const decodeWord = firstValue(abiDecoder(parseAbiParameters('bytes32')))

const tokenMethods = {
  uiMultiplier: contractMethod('uiMultiplier()', decodeUint),
  multiplier: contractMethod('multiplier()', decodeUint),
  newUIMultiplier: contractMethod('newUIMultiplier()', decodeUint),
  effectiveAt: contractMethod('effectiveAt()', decodeUint),
  pausedFeatures: contractMethod('pausedFeatures()', firstValue(abiDecoder(parseAbiParameters('uint8[]')))),
}

const feedMethods = {
  aggregator: contractMethod('aggregator()', (data) => {
    const addressWord = decodeWord(data)
    return addressWord && isAddressWord(addressWord) && BigInt(addressWord) > 0n ? addressFromWord(addressWord) : null
  }),
  phaseId: contractMethod('phaseId()', firstValue(abiDecoder(parseAbiParameters('uint16')))),
  decimals: contractMethod('decimals()', firstValue(abiDecoder(parseAbiParameters('uint8')))),
  latestRoundData: contractMethod('latestRoundData()', abiDecoder(parseAbiParameters('uint80, int256, uint256, uint256, uint80'))),
}

const oracleParams = contractMethod('getOracleParams(address)', abiDecoder(parseAbiParameters('uint256, bool')))

export async function readFrozen(request: RequestFn, registry: Hex, token: Hex): Promise<boolean | null> {
  const params = await oracleParams(request, registry, 'latest', toWord(token).slice(2))
  return params?.[1] ?? null
}

/** Returns null if the node has another block of this number, because its answers may be of that block. */
export async function readToken(request: RequestFn, address: Hex, { number, hash }: BlockRef): Promise<TokenReading | null> {
  const block = quantity(number)
  const multiplier =
    (await tokenMethods.uiMultiplier(request, address, block)) ?? (await tokenMethods.multiplier(request, address, block))
  const effectiveAt = await tokenMethods.effectiveAt(request, address, block)
  const to = effectiveAt ? await tokenMethods.newUIMultiplier(request, address, block) : null
  const paused = await tokenMethods.pausedFeatures(request, address, block)
  // The header is read after the calls, since the node may replace the block between them.
  const header = await new ChainReader(request).header(number)
  if (!isSealed(header)) throw new UpstreamError('behind', `block ${number} is gone, or not there yet`)
  if (hash !== null && header.hash !== hash) return null
  const scheduled = effectiveAt && to !== null ? scheduledAt(header, { to, effectiveAt }) : null
  return { multiplier, scheduled, paused }
}

/** Returns null if the schedule has taken effect: a token contract still returns its last schedule then. */
function scheduledAt(
  { timestamp }: Header,
  schedule: NonNullable<TokenContractState['scheduled']>,
): TokenContractState['scheduled'] {
  if (timestamp === null) throw new UpstreamError('unreadable', 'the block has no time')
  return schedule.effectiveAt > BigInt(timestamp) ? schedule : null
}

/** Reads a feed's proxy by calls, or from its storage if calls are refused or return no aggregator. */
export async function readFeed(request: RequestFn, proxy: Hex): Promise<FeedReading | null> {
  try {
    const aggregator = await feedMethods.aggregator(request, proxy, 'latest')
    if (aggregator) return await readRounds(request, proxy, aggregator)
  } catch (failure) {
    if (failure instanceof UpstreamError && failure.isRefused) return readStoredPhase(request, proxy)
    throw failure
  }
  try {
    return await readStoredPhase(request, proxy)
  } catch (failure) {
    // The proxy gave no aggregator, so a failed read of its storage means that there is none.
    if (failure instanceof UpstreamError) return null
    throw failure
  }
}

async function readRounds(request: RequestFn, proxy: Hex, aggregator: Hex): Promise<FeedReading | null> {
  const phase = await feedMethods.phaseId(request, proxy, 'latest')
  const decimals = await feedMethods.decimals(request, proxy, 'latest')
  if (phase === null || decimals === null) return null
  const data = await feedMethods.latestRoundData(request, proxy, 'latest')
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

async function readStoredPhase(request: RequestFn, proxy: Hex): Promise<FeedReading | null> {
  const storedWord = readHex(await request('eth_getStorageAt', [proxy, PHASE_SLOT, 'latest']), WORD_CHARS)
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
