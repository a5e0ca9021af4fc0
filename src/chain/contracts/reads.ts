import { catchError, concatMap, map, type Observable, of, throwError } from 'rxjs'
import { parseAbiParameters } from 'viem/utils'
import { z } from 'zod'
import type { Hex } from '../../protocol/fields.ts'
import { addressIn, decoder, isAddress } from '../logs/abi-decoder.ts'
import { Header, HexWord } from '../logs/log-schema.ts'
import type { Ask } from '../rpc/client.ts'
import { UpstreamError } from '../rpc/error.ts'

/** A block as of which a contract is asked, and its second where it is known. */
export type AsOf = { readonly number: number; readonly timestamp: number | null }

/** What a token says of itself; null is what it does not say. */
export type TokenSays = {
  readonly multiplier: bigint | null
  /** The multiplier that is still to come. */
  readonly scheduled: { readonly to: bigint; readonly effectiveAt: bigint } | null
  readonly paused: readonly number[] | null
}

/** What a feed's proxy says: who makes its rounds, and the newest of them. */
export type FeedSays = {
  readonly aggregator: Hex
  readonly phase: number
  readonly decimals: number
  readonly round: { readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint } | null
}

/** No contract that is asked here says more in one answer. */
const ANSWER_BOUND_CHARACTERS = 64 * 2 ** 10
/** Where a proxy keeps its current phase: the phase's number in the lowest bits, and its aggregator above them. */
const PHASE_SLOT = '0x2'
const PHASE_BITS = 16n
const ADDRESS_BITS = 160n
/** Of every feed of a token that is traded in dollars. */
const DECIMALS = 8
/** A proxy counts on through its phases: the round of the aggregator stands in the lower bits. */
const ROUND_BITS = 64

const Data = z
  .string()
  .max(ANSWER_BOUND_CHARACTERS)
  .regex(/^0x([0-9a-f]{2})*$/i)
  .transform((text) => text.toLowerCase() as Hex)

/** A question that a contract answers, by the hash of its name. */
const question =
  <Value>(selector: Hex, read: (data: Hex) => Value | null) =>
  (ask: Ask, to: Hex, block: Hex | 'latest'): Observable<Value | null> =>
    ask('eth_call', [{ to, data: selector }, block]).pipe(
      map((answer) => {
        const data = Data.safeParse(answer).data
        if (data === undefined) throw new UpstreamError('unreadable', 'the answer is no data')
        return read(data)
      }),
      // That a contract does not know the question is an answer too.
      catchError((failure: unknown) =>
        failure instanceof UpstreamError && failure.kind === 'reverted' ? of(null) : throwError(() => failure),
      ),
    )

const first =
  <Value>(decode: (data: Hex) => readonly [Value, ...unknown[]] | null) =>
  (data: Hex): Value | null =>
    decode(data)?.[0] ?? null

const uint = first(decoder(parseAbiParameters('uint256')))
const word = first(decoder(parseAbiParameters('bytes32')))

const token = {
  uiMultiplier: question('0xa60bf13d', uint),
  multiplier: question('0x1b3ed722', uint),
  newUIMultiplier: question('0xdc767007', uint),
  effectiveAt: question('0x97a4064f', uint),
  pausedFeatures: question('0xde9997e3', first(decoder(parseAbiParameters('uint8[]')))),
}

const feed = {
  aggregator: question('0x245a7bfc', (data) => {
    const held = word(data)
    return held && isAddress(held) && BigInt(held) > 0n ? addressIn(held) : null
  }),
  phaseId: question('0x58303b10', first(decoder(parseAbiParameters('uint16')))),
  decimals: question('0x313ce567', first(decoder(parseAbiParameters('uint8')))),
  latestRoundData: question('0xfeaf968c', decoder(parseAbiParameters('uint80, int256, uint256, uint256, uint80'))),
}

/** Asks a token how it stands as of a block, one question after the other. */
export function tokenAt(ask: Ask, address: Hex, asOf: AsOf): Observable<TokenSays> {
  const block: Hex = `0x${asOf.number.toString(16)}`
  return token.uiMultiplier(ask, address, block).pipe(
    concatMap((multiplier) => (multiplier === null ? token.multiplier(ask, address, block) : of(multiplier))),
    concatMap((multiplier) =>
      scheduledAt(ask, address, asOf, block).pipe(map((scheduled) => ({ multiplier, scheduled }))),
    ),
    concatMap((known) => token.pausedFeatures(ask, address, block).pipe(map((paused) => ({ ...known, paused })))),
  )
}

/** What is still to come: a token goes on naming the last schedule after it took effect. */
function scheduledAt(ask: Ask, address: Hex, asOf: AsOf, block: Hex): Observable<TokenSays['scheduled']> {
  return token.effectiveAt(ask, address, block).pipe(
    concatMap((effectiveAt) => {
      if (!effectiveAt) return of(null)
      return secondOf(ask, asOf, block).pipe(
        concatMap((second) => (effectiveAt > BigInt(second) ? token.newUIMultiplier(ask, address, block) : of(null))),
        map((to) => (to === null ? null : { to, effectiveAt })),
      )
    }),
  )
}

function secondOf(ask: Ask, { timestamp }: AsOf, block: Hex): Observable<number> {
  if (timestamp !== null) return of(timestamp)
  return ask('eth_getBlockByNumber', [block, false]).pipe(
    map((answer) => {
      const second = Header.safeParse(answer).data?.timestamp ?? null
      if (second === null) throw new UpstreamError('unreadable', 'the block has no time')
      return second
    }),
  )
}

/** Asks a feed's proxy who makes its rounds; where it cannot be asked, or does not say, looks where it keeps that. */
export function feedAt(ask: Ask, proxy: Hex): Observable<FeedSays | null> {
  return feed.aggregator(ask, proxy, 'latest').pipe(
    concatMap((aggregator) => (aggregator ? roundsOf(ask, proxy, aggregator) : elsewhere(ask, proxy))),
    catchError((failure: unknown) =>
      failure instanceof UpstreamError && failure.refused ? keptAt(ask, proxy) : throwError(() => failure),
    ),
  )
}

function roundsOf(ask: Ask, proxy: Hex, aggregator: Hex): Observable<FeedSays | null> {
  return feed.phaseId(ask, proxy, 'latest').pipe(
    concatMap((phase) => feed.decimals(ask, proxy, 'latest').pipe(map((decimals) => ({ phase, decimals })))),
    concatMap(({ phase, decimals }) => {
      if (phase === null || decimals === null) return of(null)
      return feed
        .latestRoundData(ask, proxy, 'latest')
        .pipe(map((data) => ({ aggregator, phase, decimals, round: data && roundIn(data, phase) })))
    }),
  )
}

/** The round, unless there was none yet, or it is of another phase: the proxy may change it between two questions. */
function roundIn(
  [counted, answer, _startedAt, updatedAt]: readonly [bigint, bigint, bigint, bigint, bigint],
  phase: number,
): FeedSays['round'] {
  const round = BigInt.asUintN(ROUND_BITS, counted)
  const isOfPhase = counted >> BigInt(ROUND_BITS) === BigInt(phase)
  return isOfPhase && round > 0n && updatedAt > 0n ? { answer, round, updatedAt } : null
}

/** A node may answer for every contract that it reverts; then it may have nothing stored, either. */
const elsewhere = (ask: Ask, proxy: Hex): Observable<FeedSays | null> =>
  keptAt(ask, proxy).pipe(
    catchError((failure: unknown) => (failure instanceof UpstreamError ? of(null) : throwError(() => failure))),
  )

function keptAt(ask: Ask, proxy: Hex): Observable<FeedSays | null> {
  return ask('eth_getStorageAt', [proxy, PHASE_SLOT, 'latest']).pipe(
    map((answer) => {
      const kept = HexWord.safeParse(answer).data
      if (kept === undefined) throw new UpstreamError('unreadable', 'the answer is no word')
      const bits = BigInt(kept)
      const aggregator = bits >> PHASE_BITS
      // A proxy of another make keeps something else there.
      if (aggregator === 0n || aggregator >> ADDRESS_BITS > 0n) return null
      return {
        aggregator: `0x${aggregator.toString(16).padStart(40, '0')}`,
        phase: Number(BigInt.asUintN(Number(PHASE_BITS), bits)),
        decimals: DECIMALS,
        round: null,
      }
    }),
  )
}
