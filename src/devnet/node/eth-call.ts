import { decodeFunctionData, encodeAbiParameters, parseAbi, parseAbiParameters } from 'viem/utils'
import { z } from 'zod'
import { type Hex, toLowerHex } from '../../lib/hex.ts'
import { AddressParam, BlockParam, Calldata } from '../../protocol/json-rpc-methods.ts'
import { codeKey } from '../chain/account-state.ts'
import type { ExecutionContext } from '../chain/state-dependent-transaction.ts'
import { TOKEN_CODE } from '../chain/transactions.ts'
import { FEED_CODE, FEED_DECIMALS, readFeedState, readNewestRound } from '../tokens/feeds.ts'
import { REGISTRY_CODE } from '../tokens/oracle-registry.ts'
import { MANAGER_CODE, POOL_CODE } from '../tokens/pool-storage.ts'
import {
  effectiveAtKey,
  isScheduled,
  multiplierAt,
  pausedFeaturesKey,
  scheduledMultiplierKey,
  unpackFeatures,
} from '../tokens/token-storage.ts'
import { CallError } from './json-rpc.ts'
import { answerManagerCall, answerPoolCall, answerRegistryCall } from './market-calls.ts'
import { type DevnetNode, resolveStateBlock } from './node.ts'
import { createRevertError, decodeOrRevert } from './revert.ts'

/** Parameters of `eth_call`. */
export const CallParams = z.tuple([
  z.object({ to: AddressParam, data: Calldata.optional(), input: Calldata.optional() }),
  BlockParam.default('latest'),
])

const tokenViewAbi = parseAbi([
  'function uiMultiplier() view returns (uint256)',
  'function multiplier() view returns (uint256)',
  'function newUIMultiplier() view returns (uint256)',
  'function effectiveAt() view returns (uint256)',
  'function pausedFeatures() view returns (uint8[])',
])

const feedViewAbi = parseAbi([
  'function aggregator() view returns (address)',
  'function phaseId() view returns (uint16)',
  'function decimals() view returns (uint8)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
])

const uint256Type = parseAbiParameters('uint256')
const uint8ArrayType = parseAbiParameters('uint8[]')
const addressType = parseAbiParameters('address')
const roundDataType = parseAbiParameters('uint80, int256, uint256, uint256, uint80')

/** Position of the phase in a proxy's round number. */
const PHASE_SHIFT = 64n

/** Calls a contract of the devnet; an address without code answers `0x`. */
export const answerEthCall = (node: DevnetNode, [{ to, data, input }, blockId]: z.infer<typeof CallParams>): Hex => {
  if (!node.calls) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  const context = contextAt(node, blockId)
  const callee = toLowerHex(to)
  const calldata = toLowerHex(data ?? input ?? '0x')
  switch (context.readState(codeKey(callee))) {
    case 0n:
      return '0x'
    case TOKEN_CODE:
      return answerTokenCall(context, callee, calldata)
    case FEED_CODE:
      return answerFeedCall(context, callee, calldata)
    case POOL_CODE:
      return answerPoolCall(context, callee, calldata)
    case MANAGER_CODE:
      return answerManagerCall(context, callee, calldata)
    case REGISTRY_CODE:
      return answerRegistryCall(context, calldata)
    default:
      throw createRevertError()
  }
}

/** State and time are of the same block, since a multiplier depends on both. */
const contextAt = (node: DevnetNode, blockId: string): ExecutionContext => {
  const { replica } = node
  const stateBlock = resolveStateBlock(node, blockId)
  const block = stateBlock === 'pending' ? replica.preconfirmed : replica.block(stateBlock)
  if (!block) throw new CallError(-32000, `state at block ${blockId} is pruned`)
  return { readState: (key) => replica.valueAt(key, stateBlock), timestamp: block.timestamp }
}

const answerTokenCall = ({ readState, timestamp }: ExecutionContext, token: Hex, data: Hex): Hex => {
  switch (decodeOrRevert(() => decodeFunctionData({ abi: tokenViewAbi, data }).functionName)) {
    case 'uiMultiplier':
    case 'multiplier':
      return encodeAbiParameters(uint256Type, [multiplierAt(readState, token, timestamp)])
    case 'newUIMultiplier': {
      const hasSchedule = isScheduled(readState, token, timestamp)
      return encodeAbiParameters(uint256Type, [
        hasSchedule ? readState(scheduledMultiplierKey(token)) : multiplierAt(readState, token, timestamp),
      ])
    }
    case 'effectiveAt':
      return encodeAbiParameters(uint256Type, [readState(effectiveAtKey(token))])
    case 'pausedFeatures':
      return encodeAbiParameters(uint8ArrayType, [unpackFeatures(readState(pausedFeaturesKey(token)))])
  }
}

const answerFeedCall = ({ readState }: ExecutionContext, proxy: Hex, data: Hex): Hex => {
  const { aggregator, phase } = readFeedState(readState, proxy)
  switch (decodeOrRevert(() => decodeFunctionData({ abi: feedViewAbi, data }).functionName)) {
    case 'aggregator':
      return encodeAbiParameters(addressType, [aggregator])
    case 'phaseId':
      return encodeAbiParameters(uint256Type, [BigInt(phase)])
    case 'decimals':
      return encodeAbiParameters(uint256Type, [BigInt(FEED_DECIMALS)])
    case 'latestRoundData': {
      const newestRound = readNewestRound(readState, aggregator)
      const proxyRoundId = (BigInt(phase) << PHASE_SHIFT) | newestRound.round
      return encodeAbiParameters(roundDataType, [
        proxyRoundId,
        newestRound.answer,
        newestRound.startedAt,
        newestRound.updatedAt,
        proxyRoundId,
      ])
    }
  }
}
