import { decodeFunctionData, encodeAbiParameters, parseAbi, parseAbiParameters } from 'viem/utils'
import { z } from 'zod'
import { blockTags } from '../../chain/rpc/methods.ts'
import type { Moment } from '../chain/deferred-tx.ts'
import { type Hex, lower } from '../chain/hex.ts'
import { codeOf } from '../chain/state.ts'
import { TOKEN_CODE } from '../chain/transactions.ts'
import { FEED_CODE, FEED_DECIMALS, newestRound, standing } from '../tokens/feeds.ts'
import { effectiveAtOf, featuresIn, isScheduled, multiplierAt, pausesOf, scheduledOf } from '../tokens/storage.ts'
import { CallError } from './json-rpc.ts'
import { type Node, stateAt } from './node.ts'

const Address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'a 20-byte address')
const Data = z.templateLiteral(['0x', z.string().regex(/^([0-9a-fA-F]{2})*$/)])
const Block = z.union([z.enum(blockTags), z.string().regex(/^0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})$/)])

/** What `eth_call` is asked: whom, with which data, and at which block. */
export const CallParams = z.tuple([
  z.object({ to: Address, data: Data.optional(), input: Data.optional() }),
  Block.default('latest'),
])

const tokenViews = parseAbi([
  'function uiMultiplier() view returns (uint256)',
  'function multiplier() view returns (uint256)',
  'function newUIMultiplier() view returns (uint256)',
  'function effectiveAt() view returns (uint256)',
  'function pausedFeatures() view returns (uint8[])',
])

const feedViews = parseAbi([
  'function aggregator() view returns (address)',
  'function phaseId() view returns (uint16)',
  'function decimals() view returns (uint8)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
])

const uint = parseAbiParameters('uint256')
const uints = parseAbiParameters('uint8[]')
const address = parseAbiParameters('address')
const round = parseAbiParameters('uint80, int256, uint256, uint256, uint80')

/** How far left the phase stands in the number of a round, as its proxy tells it. */
const PHASE_SHIFT = 64n

/** What a token or the proxy of a feed answers; whoever has no code answers nothing. */
export const answerCall = (node: Node, [{ to, data, input }, at]: z.infer<typeof CallParams>): Hex => {
  if (!node.calls) throw new CallError(-32601, 'rpc method is not whitelisted', 403)
  const moment = momentAt(node, at)
  const callee = lower(to)
  const asked = data ?? input ?? '0x'
  switch (moment.held(codeOf(callee))) {
    case 0n:
      return '0x'
    case TOKEN_CODE:
      return answerOfToken(moment, callee, asked)
    case FEED_CODE:
      return answerOfFeed(moment, callee, asked)
    default:
      throw reverted()
  }
}

/** What is held and the second are those of the same block: a multiplier depends on both. */
const momentAt = (node: Node, at: string): Moment => {
  const { replica } = node
  const place = stateAt(node, at)
  const block = place === 'pending' ? replica.preconfirmed : replica.block(place)
  if (!block) throw new CallError(-32000, `state at block ${at} is pruned`)
  return { held: (key) => replica.held(key, place), timestamp: block.timestamp }
}

const answerOfToken = ({ held, timestamp }: Moment, token: Hex, data: Hex): Hex => {
  switch (called(() => decodeFunctionData({ abi: tokenViews, data }).functionName)) {
    case 'uiMultiplier':
    case 'multiplier':
      return encodeAbiParameters(uint, [multiplierAt(held, token, timestamp)])
    case 'newUIMultiplier': {
      const ahead = isScheduled(held, token, timestamp)
      return encodeAbiParameters(uint, [ahead ? held(scheduledOf(token)) : multiplierAt(held, token, timestamp)])
    }
    case 'effectiveAt':
      return encodeAbiParameters(uint, [held(effectiveAtOf(token))])
    case 'pausedFeatures':
      return encodeAbiParameters(uints, [featuresIn(held(pausesOf(token)))])
  }
}

const answerOfFeed = ({ held }: Moment, proxy: Hex, data: Hex): Hex => {
  const { aggregator, phase } = standing(held, proxy)
  switch (called(() => decodeFunctionData({ abi: feedViews, data }).functionName)) {
    case 'aggregator':
      return encodeAbiParameters(address, [aggregator])
    case 'phaseId':
      return encodeAbiParameters(uint, [BigInt(phase)])
    case 'decimals':
      return encodeAbiParameters(uint, [BigInt(FEED_DECIMALS)])
    case 'latestRoundData': {
      const newest = newestRound(held, aggregator)
      const number = (BigInt(phase) << PHASE_SHIFT) | newest.round
      return encodeAbiParameters(round, [number, newest.answer, newest.startedAt, newest.updatedAt, number])
    }
  }
}

/** The function that is called; an unknown one reverts. */
const called = <Name>(decode: () => Name): Name => {
  try {
    return decode()
  } catch {
    throw reverted()
  }
}

const reverted = () => new CallError(3, 'execution reverted')
