import { encodeAbiParameters, parseAbiParameters, toFunctionSelector } from 'viem/utils'
import { z } from 'zod'
import { type Hex, toLowerHex, toWord } from '../../lib/hex.ts'
import { AddressParam, BlockParam, Calldata } from '../../protocol/json-rpc-methods.ts'
import { codeKey, storageKey } from '../chain/account-state.ts'
import type { ExecutionContext } from '../chain/chain-types.ts'
import { type DevnetPool, isTokenFirst, pools, testPool } from '../tokens/devnet-pools.ts'
import { FEED_CODE, FEED_DECIMALS, readFeedState, readNewestRound } from '../tokens/feeds.ts'
import { isFeedFrozen, REGISTRY_CODE } from '../tokens/oracle-registry.ts'
import { MANAGER_CODE, POOL_CODE, poolLiquidityKey, readPoolState } from '../tokens/pool-storage.ts'
import * as storage from '../tokens/token-storage.ts'
import { CallError } from './json-rpc.ts'
import { type DevnetNode, resolveStateBlock } from './node-blocks.ts'

export const CallParams = z.tuple([
  z.object({ to: AddressParam, data: Calldata.optional(), input: Calldata.optional() }),
  BlockParam.default('latest'),
])

/** Answers a call of one function of a contract. */
type View = (context: ExecutionContext, callee: Hex, calldata: Hex) => Hex

const bySelector = (views: Readonly<Record<string, View>>): ReadonlyMap<string, View> =>
  new Map(Object.entries(views).map(([signature, view]) => [toFunctionSelector(signature), view]))

const featuresType = parseAbiParameters('uint8[]')
const roundDataType = parseAbiParameters('uint80, int256, uint256, uint256, uint80')
// In contrast to Uniswap v3, `slot0` of Slipstream contains no protocol fee.
const v3StateType = parseAbiParameters('uint160, int24, uint16, uint16, uint16, uint8, bool')
const slipstreamStateType = parseAbiParameters('uint160, int24, uint16, uint16, uint16, bool')
const oracleParamsType = parseAbiParameters('uint256, bool')

/** Number of bits below the phase in the round number of a proxy. */
const PHASE_SHIFT = 64n
/** Length of calldata with one argument: 0x, a selector of four bytes, and a word. */
const ONE_ARGUMENT_CHARS = 2 + 8 + 64

export const answerEthCall = (node: DevnetNode, [{ to, data, input }, blockId]: z.infer<typeof CallParams>): Hex => {
  if (!node.calls) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  return answerCall(contextAt(node, blockId), toLowerHex(to), toLowerHex(data ?? input ?? '0x'))
}

/** Answers a call of a contract. An address without code answers `0x`, and an unknown function reverts. */
export const answerCall: View = (context, callee, calldata) => {
  const code = context.readState(codeKey(callee))
  if (code === 0n) return '0x'
  const view = viewsByCode.get(code)?.get(calldata.slice(0, 10))
  if (!view) throw revertError()
  return view(context, callee, calldata)
}

/** Returns state and time of one block, because a multiplier depends on both. */
const contextAt = (node: DevnetNode, blockId: string): ExecutionContext => {
  const { replica } = node
  const stateBlock = resolveStateBlock(node, blockId)
  const block = stateBlock === 'pending' ? replica.preconfirmed : replica.chain.block(stateBlock)
  if (!block) throw new CallError(-32000, `state at block ${blockId} is pruned`)
  return { readState: (key) => replica.chain.valueAt(key, stateBlock), timestamp: block.timestamp }
}

const revertError = () => new CallError(3, 'execution reverted')

const readMultiplier: View = ({ readState, timestamp }, token) => toWord(storage.multiplierAt(readState, token, timestamp))

const tokenViews = bySelector({
  'uiMultiplier()': readMultiplier,
  'multiplier()': readMultiplier,
  'newUIMultiplier()': (context, token, calldata) =>
    storage.isScheduled(context.readState, token, context.timestamp)
      ? toWord(context.readState(storage.scheduledMultiplierKey(token)))
      : readMultiplier(context, token, calldata),
  'effectiveAt()': ({ readState }, token) => toWord(readState(storage.effectiveAtKey(token))),
  'pausedFeatures()': ({ readState }, token) =>
    encodeAbiParameters(featuresType, [storage.unpackFeatures(readState(storage.pausedFeaturesKey(token)))]),
})

const feedViews = bySelector({
  'aggregator()': ({ readState }, proxy) => toWord(readFeedState(readState, proxy).aggregator),
  'phaseId()': ({ readState }, proxy) => toWord(BigInt(readFeedState(readState, proxy).phase)),
  'decimals()': () => toWord(BigInt(FEED_DECIMALS)),
  'latestRoundData()': ({ readState }, proxy) => {
    const { aggregator, phase } = readFeedState(readState, proxy)
    const { round, answer, startedAt, updatedAt } = readNewestRound(readState, aggregator)
    const proxyRound = (BigInt(phase) << PHASE_SHIFT) | round
    return encodeAbiParameters(roundDataType, [proxyRound, answer, startedAt, updatedAt, proxyRound])
  },
})

const ofPool =
  (answer: (pool: DevnetPool, context: ExecutionContext) => Hex): View =>
  (context, address) => {
    const pool = [...pools, testPool].find(({ id }) => id === address)
    if (!pool) throw revertError()
    return answer(pool, context)
  }

/** Functions of a Uniswap v3 pool and of a Slipstream pool. */
const poolViews = bySelector({
  'slot0()': ofPool((pool, { readState }) => {
    const { sqrtPriceX96, tick } = readPoolState(readState, pool)
    return pool.kind === 'slipstream'
      ? encodeAbiParameters(slipstreamStateType, [sqrtPriceX96, tick, 0, 1, 1, true])
      : encodeAbiParameters(v3StateType, [sqrtPriceX96, tick, 0, 1, 1, 0, true])
  }),
  'liquidity()': ofPool((pool, { readState }) => toWord(readState(poolLiquidityKey(pool)))),
  'token0()': ofPool((pool) => toWord(isTokenFirst(pool) ? pool.token : pool.currency.address)),
  'token1()': ofPool((pool) => toWord(isTokenFirst(pool) ? pool.currency.address : pool.token)),
  'fee()': ofPool(({ fee }) => toWord(BigInt(fee))),
})

const managerViews = bySelector({
  'extsload(bytes32)': ({ readState }, manager, calldata) => toWord(readState(storageKey(manager, argumentOf(calldata)))),
})

const registryViews = bySelector({
  'getOracleParams(address)': ({ readState, timestamp }, _, calldata) => {
    const token: Hex = `0x${argumentOf(calldata).slice(-40)}`
    if (readState(codeKey(token)) !== storage.TOKEN_CODE) throw revertError()
    return encodeAbiParameters(oracleParamsType, [
      storage.multiplierAt(readState, token, timestamp),
      isFeedFrozen(readState, token),
    ])
  },
})

/** Returns the argument of a function that has one. Reverts if the calldata is too short. */
const argumentOf = (calldata: Hex): Hex => {
  if (calldata.length < ONE_ARGUMENT_CHARS) throw revertError()
  return `0x${calldata.slice(10, ONE_ARGUMENT_CHARS)}`
}

/** Functions of the contracts by selector, by the code of the contract. */
const viewsByCode = new Map([
  [storage.TOKEN_CODE, tokenViews],
  [FEED_CODE, feedViews],
  [POOL_CODE, poolViews],
  [MANAGER_CODE, managerViews],
  [REGISTRY_CODE, registryViews],
])
