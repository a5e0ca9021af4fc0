import { parseAbiParameters } from 'viem/utils'
import { type Hex, quantity, toWord } from '../../../lib/hex.ts'
import { abiDecoder } from '../logs/abi-decoder.ts'
import { type Header, isSealed, type SealedHeader } from '../rpc/block-header.ts'
import { ChainReader } from '../rpc/chain-reader.ts'
import type { RequestFn } from '../rpc/endpoint-pool.ts'
import { UpstreamError } from '../rpc/upstream-error.ts'
import { contractMethod, firstValue } from './contract-method.ts'

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

type TokenReading = Omit<TokenContractState, 'address' | 'block'>

const decodeUint = firstValue(abiDecoder(parseAbiParameters('uint256')))

const tokenMethods = {
  uiMultiplier: contractMethod('uiMultiplier()', decodeUint),
  multiplier: contractMethod('multiplier()', decodeUint),
  newUIMultiplier: contractMethod('newUIMultiplier()', decodeUint),
  effectiveAt: contractMethod('effectiveAt()', decodeUint),
  pausedFeatures: contractMethod('pausedFeatures()', firstValue(abiDecoder(parseAbiParameters('uint8[]')))),
}

const oracleParams = contractMethod('getOracleParams(address)', abiDecoder(parseAbiParameters('uint256, bool')))

export async function readFrozen(request: RequestFn, registry: Hex, token: Hex): Promise<boolean | null> {
  const params = await oracleParams(request, registry, 'latest', toWord(token).slice(2))
  return params?.[1] ?? null
}

/** Returns null if the node has another block of this number, because its answers may be of that block. */
export async function readToken(request: RequestFn, address: Hex, { number, hash }: BlockRef): Promise<TokenReading | null> {
  const block = quantity(number)
  // The header is read before and after the calls, since the node may replace the block, or catch up, between them.
  if (!(await readOwnHeader(request, { number, hash }))) return null
  const multiplier =
    (await tokenMethods.uiMultiplier(request, address, block)) ?? (await tokenMethods.multiplier(request, address, block))
  const effectiveAt = await tokenMethods.effectiveAt(request, address, block)
  const to = effectiveAt ? await tokenMethods.newUIMultiplier(request, address, block) : null
  const paused = await tokenMethods.pausedFeatures(request, address, block)
  const header = await readOwnHeader(request, { number, hash })
  if (!header) return null
  const scheduled = effectiveAt && to !== null ? scheduledAt(header, { to, effectiveAt }) : null
  return { multiplier, scheduled, paused }
}

/** Returns the header of a block; null if the node has another block of this number. */
async function readOwnHeader(request: RequestFn, { number, hash }: BlockRef): Promise<SealedHeader | null> {
  const header = await new ChainReader(request).header(number)
  if (!isSealed(header)) throw new UpstreamError('behind', `block ${number} is gone, or not there yet`)
  return hash === null || header.hash === hash ? header : null
}

/** Returns null if the schedule has taken effect: a token contract still returns its last schedule then. */
function scheduledAt(
  { timestamp }: Header,
  schedule: NonNullable<TokenContractState['scheduled']>,
): TokenContractState['scheduled'] {
  if (timestamp === null) throw new UpstreamError('unreadable', 'the block has no time')
  return schedule.effectiveAt > BigInt(timestamp) ? schedule : null
}
