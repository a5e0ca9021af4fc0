import type { Abi } from 'viem'
import {
  type DecodeFunctionDataReturnType,
  decodeFunctionData,
  encodeAbiParameters,
  parseAbi,
  parseAbiParameters,
} from 'viem/utils'
import { z } from 'zod'
import { type Hex, toLowerHex, toWord } from '../../lib/hex.ts'
import { AddressParam, BlockParam, Calldata } from '../../protocol/json-rpc-methods.ts'
import { codeKey, storageKey } from '../chain/account-state.ts'
import type { ExecutionContext } from '../chain/chain-types.ts'
import { isTokenFirst, pools } from '../tokens/devnet-pools.ts'
import { FEED_CODE, FEED_DECIMALS, readFeedState, readNewestRound } from '../tokens/feeds.ts'
import { isFeedFrozen, REGISTRY_CODE } from '../tokens/oracle-registry.ts'
import { MANAGER_CODE, POOL_CODE, poolLiquidityKey, readPoolState } from '../tokens/pool-storage.ts'
import * as storage from '../tokens/token-storage.ts'
import { TOKEN_CODE } from '../tokens/token-storage.ts'
import { CallError } from './json-rpc.ts'
import { type DevnetNode, resolveStateBlock } from './node-blocks.ts'

export const CallParams = z.tuple([
  z.object({ to: AddressParam, data: Calldata.optional(), input: Calldata.optional() }),
  BlockParam.default('latest'),
])

const tokenAbi = parseAbi([
  'function uiMultiplier() view returns (uint256)',
  'function multiplier() view returns (uint256)',
  'function newUIMultiplier() view returns (uint256)',
  'function effectiveAt() view returns (uint256)',
  'function pausedFeatures() view returns (uint8[])',
])
const feedAbi = parseAbi([
  'function aggregator() view returns (address)',
  'function phaseId() view returns (uint16)',
  'function decimals() view returns (uint8)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
])
const poolAbi = parseAbi([
  'function slot0() view',
  'function liquidity() view returns (uint128)',
  'function token0() view returns (address)',
  'function token1() view returns (address)',
  'function fee() view returns (uint24)',
])
const managerAbi = parseAbi(['function extsload(bytes32 slot) view returns (bytes32)'])
const registryAbi = parseAbi(['function getOracleParams(address token) view returns (uint256, bool)'])

const featuresType = parseAbiParameters('uint8[]')
const roundDataType = parseAbiParameters('uint80, int256, uint256, uint256, uint80')
// In contrast to Uniswap v3, `slot0` of Slipstream contains no protocol fee.
const v3StateType = parseAbiParameters('uint160, int24, uint16, uint16, uint16, uint8, bool')
const slipstreamStateType = parseAbiParameters('uint160, int24, uint16, uint16, uint16, bool')
const oracleParamsType = parseAbiParameters('uint256, bool')

/** Number of bits below the phase in the round number of a proxy. */
const PHASE_SHIFT = 64n

export const answerEthCall = (node: DevnetNode, [{ to, data, input }, blockId]: z.infer<typeof CallParams>): Hex => {
  if (!node.calls) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  return answerCall(contextAt(node, blockId), toLowerHex(to), toLowerHex(data ?? input ?? '0x'))
}

/** Answers a call of a contract. An address without code answers `0x`. */
export const answerCall = (context: ExecutionContext, callee: Hex, calldata: Hex): Hex => {
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
      return toWord(context.readState(storageKey(callee, decodeCall(managerAbi, calldata).args[0])))
    case REGISTRY_CODE:
      return answerRegistryCall(context, calldata)
    default:
      throw revertError()
  }
}

/** Returns state and time of one block, because a multiplier depends on both. */
const contextAt = (node: DevnetNode, blockId: string): ExecutionContext => {
  const { replica } = node
  const stateBlock = resolveStateBlock(node, blockId)
  const block = stateBlock === 'pending' ? replica.preconfirmed : replica.chain.block(stateBlock)
  if (!block) throw new CallError(-32000, `state at block ${blockId} is pruned`)
  return { readState: (key) => replica.chain.valueAt(key, stateBlock), timestamp: block.timestamp }
}

const answerTokenCall = ({ readState, timestamp }: ExecutionContext, token: Hex, data: Hex): Hex => {
  switch (decodeCall(tokenAbi, data).functionName) {
    case 'uiMultiplier':
    case 'multiplier':
      return toWord(storage.multiplierAt(readState, token, timestamp))
    case 'newUIMultiplier':
      return toWord(
        storage.isScheduled(readState, token, timestamp)
          ? readState(storage.scheduledMultiplierKey(token))
          : storage.multiplierAt(readState, token, timestamp),
      )
    case 'effectiveAt':
      return toWord(readState(storage.effectiveAtKey(token)))
    case 'pausedFeatures':
      return encodeAbiParameters(featuresType, [storage.unpackFeatures(readState(storage.pausedFeaturesKey(token)))])
  }
}

const answerFeedCall = ({ readState }: ExecutionContext, proxy: Hex, data: Hex): Hex => {
  const { aggregator, phase } = readFeedState(readState, proxy)
  switch (decodeCall(feedAbi, data).functionName) {
    case 'aggregator':
      return toWord(aggregator)
    case 'phaseId':
      return toWord(BigInt(phase))
    case 'decimals':
      return toWord(BigInt(FEED_DECIMALS))
    case 'latestRoundData': {
      const { round, answer, startedAt, updatedAt } = readNewestRound(readState, aggregator)
      const proxyRound = (BigInt(phase) << PHASE_SHIFT) | round
      return encodeAbiParameters(roundDataType, [proxyRound, answer, startedAt, updatedAt, proxyRound])
    }
  }
}

/** Answers a call of a Uniswap v3 pool or of a Slipstream pool. */
const answerPoolCall = ({ readState }: ExecutionContext, address: Hex, data: Hex): Hex => {
  const pool = pools.find(({ id }) => id === address)
  if (!pool) throw revertError()
  const [token0, token1] = isTokenFirst(pool) ? [pool.token, pool.currency.address] : [pool.currency.address, pool.token]
  switch (decodeCall(poolAbi, data).functionName) {
    case 'slot0': {
      const { sqrtPriceX96, tick } = readPoolState(readState, pool)
      return pool.kind === 'slipstream'
        ? encodeAbiParameters(slipstreamStateType, [sqrtPriceX96, tick, 0, 1, 1, true])
        : encodeAbiParameters(v3StateType, [sqrtPriceX96, tick, 0, 1, 1, 0, true])
    }
    case 'liquidity':
      return toWord(readState(poolLiquidityKey(pool)))
    case 'token0':
      return toWord(token0)
    case 'token1':
      return toWord(token1)
    case 'fee':
      return toWord(BigInt(pool.fee))
  }
}

const answerRegistryCall = ({ readState, timestamp }: ExecutionContext, data: Hex): Hex => {
  const token = toLowerHex(decodeCall(registryAbi, data).args[0])
  if (readState(codeKey(token)) !== TOKEN_CODE) throw revertError()
  return encodeAbiParameters(oracleParamsType, [storage.multiplierAt(readState, token, timestamp), isFeedFrozen(readState, token)])
}

const revertError = () => new CallError(3, 'execution reverted')

/** Decodes a call. Reverts for an unknown function or argument. */
const decodeCall = <const Functions extends Abi>(abi: Functions, data: Hex): DecodeFunctionDataReturnType<Functions> => {
  try {
    return decodeFunctionData({ abi, data })
  } catch {
    throw revertError()
  }
}
