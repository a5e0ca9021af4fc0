import { catchError, concatMap, map, type Observable, of, throwError } from 'rxjs'
import { parseAbiParameters, toFunctionSelector } from 'viem/utils'
import { z } from 'zod'
import type { Hex } from '../../protocol/fields.ts'
import { abiDecoder, addressFromWord, isAddressWord } from '../logs/abi-decoder.ts'
import { Header, HexWord } from '../logs/log-schema.ts'
import type { RequestFn } from '../rpc/client.ts'
import { UpstreamError } from '../rpc/error.ts'
import { read } from '../rpc/read.ts'

/** A block to read a contract at, and its Unix time if known. */
export type BlockRef = { readonly number: number; readonly timestamp: number | null }

/** What a token's contract returns; null where it has no such function. */
export type TokenCallResult = {
  readonly multiplier: bigint | null
  /** A multiplier that takes effect later. */
  readonly scheduled: { readonly to: bigint; readonly effectiveAt: bigint } | null
  readonly paused: readonly number[] | null
}

/** What a feed's proxy returns: its aggregator and the newest round. */
export type FeedCallResult = {
  readonly aggregator: Hex
  readonly phase: number
  readonly decimals: number
  readonly round: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint } | null
}

/** No function that is called here returns more. */
const ANSWER_BOUND_CHARACTERS = 64 * 2 ** 10
/** The storage slot of a proxy's current phase: the phase number in the lowest bits, its aggregator above them. */
const PHASE_SLOT = '0x2'
const PHASE_BITS = 16n
const ADDRESS_BITS = 160n
/** All feeds in dollars have these decimals. */
const USD_FEED_DECIMALS = 8
/** A proxy's round id holds the phase in the higher bits and the aggregator's round in these lower ones. */
const ROUND_BITS = 64

const Data = z
  .string()
  .max(ANSWER_BOUND_CHARACTERS)
  .regex(/^0x([0-9a-f]{2})*$/i)
  .transform((text) => text.toLowerCase() as Hex)

/** Calls a function without arguments; null if the contract has no such function. */
const contractMethod = <Value>(signature: string, decode: (data: Hex) => Value | null) => {
  const selector = toFunctionSelector(signature)
  return (request: RequestFn, to: Hex, block: Hex | 'latest'): Observable<Value | null> =>
    read((signal) => request('eth_call', [{ to, data: selector }, block], signal)).pipe(
      map((answer) => {
        const data = Data.safeParse(answer).data
        if (data === undefined) throw new UpstreamError('unreadable', 'the answer is not hex data')
        return decode(data)
      }),
      // A contract reverts where it lacks the function: that is an answer too.
      catchError((failure: unknown) =>
        failure instanceof UpstreamError && failure.kind === 'reverted' ? of(null) : throwError(() => failure),
      ),
    )
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

/** Reads a token's state at a block, one call after the other. */
export function readToken(request: RequestFn, address: Hex, asOf: BlockRef): Observable<TokenCallResult> {
  const block: Hex = `0x${asOf.number.toString(16)}`
  return tokenMethods.uiMultiplier(request, address, block).pipe(
    concatMap((multiplier) => (multiplier === null ? tokenMethods.multiplier(request, address, block) : of(multiplier))),
    concatMap((multiplier) => readScheduled(request, address, asOf, block).pipe(map((scheduled) => ({ multiplier, scheduled })))),
    concatMap((token) => tokenMethods.pausedFeatures(request, address, block).pipe(map((paused) => ({ ...token, paused })))),
  )
}

/** The scheduled multiplier. A token keeps returning the last schedule after it took effect. */
function readScheduled(request: RequestFn, address: Hex, asOf: BlockRef, block: Hex): Observable<TokenCallResult['scheduled']> {
  return tokenMethods.effectiveAt(request, address, block).pipe(
    concatMap((effectiveAt) => {
      if (!effectiveAt) return of(null)
      return readBlockTime(request, asOf, block).pipe(
        concatMap((blockTime) =>
          effectiveAt > BigInt(blockTime) ? tokenMethods.newUIMultiplier(request, address, block) : of(null),
        ),
        map((to) => (to === null ? null : { to, effectiveAt })),
      )
    }),
  )
}

function readBlockTime(request: RequestFn, { timestamp }: BlockRef, block: Hex): Observable<number> {
  if (timestamp !== null) return of(timestamp)
  return read((signal) => request('eth_getBlockByNumber', [block, false], signal)).pipe(
    map((answer) => {
      const blockTime = Header.safeParse(answer).data?.timestamp ?? null
      if (blockTime === null) throw new UpstreamError('unreadable', 'the block has no time')
      return blockTime
    }),
  )
}

/** Reads a feed's proxy by calls; if these are refused or return no aggregator, from its storage. */
export function readFeed(request: RequestFn, proxy: Hex): Observable<FeedCallResult | null> {
  return feedMethods.aggregator(request, proxy, 'latest').pipe(
    concatMap((aggregator) => (aggregator ? readRounds(request, proxy, aggregator) : readStoredPhaseOrNull(request, proxy))),
    catchError((failure: unknown) =>
      failure instanceof UpstreamError && failure.isRefused ? readStoredPhase(request, proxy) : throwError(() => failure),
    ),
  )
}

function readRounds(request: RequestFn, proxy: Hex, aggregator: Hex): Observable<FeedCallResult | null> {
  return feedMethods.phaseId(request, proxy, 'latest').pipe(
    concatMap((phase) => feedMethods.decimals(request, proxy, 'latest').pipe(map((decimals) => ({ phase, decimals })))),
    concatMap(({ phase, decimals }) => {
      if (phase === null || decimals === null) return of(null)
      return feedMethods
        .latestRoundData(request, proxy, 'latest')
        .pipe(map((data) => ({ aggregator, phase, decimals, round: data && currentRound(data, phase) })))
    }),
  )
}

/** Null before the first round, or if the proxy changed its phase between two calls. */
function currentRound(
  [proxyRound, answer, _startedAt, updatedAt]: readonly [bigint, bigint, bigint, bigint, bigint],
  phase: number,
): FeedCallResult['round'] {
  const round = BigInt.asUintN(ROUND_BITS, proxyRound)
  const isOfPhase = proxyRound >> BigInt(ROUND_BITS) === BigInt(phase)
  return isOfPhase && round > 0n && updatedAt > 0n ? { answer, round, updatedAt } : null
}

/** Some nodes answer every call with a revert, and their storage reads may fail too. */
const readStoredPhaseOrNull = (request: RequestFn, proxy: Hex): Observable<FeedCallResult | null> =>
  readStoredPhase(request, proxy).pipe(
    catchError((failure: unknown) => (failure instanceof UpstreamError ? of(null) : throwError(() => failure))),
  )

function readStoredPhase(request: RequestFn, proxy: Hex): Observable<FeedCallResult | null> {
  return read((signal) => request('eth_getStorageAt', [proxy, PHASE_SLOT, 'latest'], signal)).pipe(
    map((answer) => {
      const storedWord = HexWord.safeParse(answer).data
      if (storedWord === undefined) throw new UpstreamError('unreadable', 'the answer is not a 32-byte word')
      const bits = BigInt(storedWord)
      const aggregator = bits >> PHASE_BITS
      // Another proxy implementation stores something else there.
      if (aggregator === 0n || aggregator >> ADDRESS_BITS > 0n) return null
      return {
        aggregator: `0x${aggregator.toString(16).padStart(40, '0')}`,
        phase: Number(BigInt.asUintN(Number(PHASE_BITS), bits)),
        decimals: USD_FEED_DECIMALS,
        round: null,
      }
    }),
  )
}
