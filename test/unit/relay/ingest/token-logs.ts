import type { AbiParameter } from 'viem'
import { encodeAbiParameters, encodeEventTopics, parseAbiItem } from 'viem/utils'
import type { Hex } from '../../../../src/lib/hex.ts'
import type { Log } from '../../../../src/relay/chain/logs/log-parser.ts'
import { alice, bob } from '../chain/node-json.ts'
import { APPLE } from '../tokens/stock-records.ts'
import { type LogPosition, logAt } from './reducer-fixture.ts'

/** A multiplier as the chain stores it, from its decimal text. */
export const wad = (text: string): bigint => {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(18, '0'))
}

type LogLocation = Omit<LogPosition, 'raw'>

/** A log of the token standard, encoded by the signature of its event. */
const encodeLog = (location: LogLocation, signature: string, args: Record<string, unknown>): Log => {
  const event = parseAbiItem(signature)
  if (event.type !== 'event') throw new Error('no event')
  const topics = encodeEventTopics({ abi: [event], eventName: event.name, args }) as Hex[]
  const dataInputs = event.inputs.filter((input) => !('indexed' in input && input.indexed)) as AbiParameter[]
  const data = encodeAbiParameters(
    dataInputs,
    dataInputs.map(({ name }) => args[name ?? '']),
  )
  return { ...logAt({ address: APPLE as Hex, ...location }), topics, data }
}

export const transfer = (location: LogLocation, raw: bigint, parties: { from?: Hex; to?: Hex } = {}): Log =>
  encodeLog(location, 'event Transfer(address indexed from, address indexed to, uint256 amount)', {
    from: alice,
    to: bob,
    amount: raw,
    ...parties,
  })
export const memo = (location: LogLocation, text: Hex): Log =>
  encodeLog(location, 'event Memo(address indexed caller, bytes32 indexed memo)', { caller: alice, memo: text })
/** `effectiveAt` in seconds. */
export const uiMultiplierUpdated = (location: LogLocation, from: string, to: string, effectiveAt: number): Log =>
  encodeLog(location, 'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp)', {
    oldMultiplier: wad(from),
    newMultiplier: wad(to),
    effectiveAtTimestamp: BigInt(effectiveAt),
  })
export const multiplierUpdated = (location: LogLocation, to: string): Log =>
  encodeLog(location, 'event MultiplierUpdated(uint256 multiplier)', { multiplier: wad(to) })
export const paused = (location: LogLocation, features: readonly number[]): Log =>
  encodeLog(location, 'event Paused(address indexed updater, uint8[] features)', { updater: bob, features })
export const unpaused = (location: LogLocation, features: readonly number[]): Log =>
  encodeLog(location, 'event Unpaused(address indexed updater, uint8[] features)', { updater: bob, features })
export const announcement = (location: LogLocation, id: string, description = 'a dividend', uri = 'ipfs://x'): Log =>
  encodeLog(location, 'event Announcement(address indexed caller, string id, string description, string uri)', {
    caller: bob,
    id,
    description,
    uri,
  })
export const endAnnouncement = (location: LogLocation, id: string): Log =>
  encodeLog(location, 'event EndAnnouncement(string id)', { id })
export const symbolUpdated = (location: LogLocation, symbol: string): Log =>
  encodeLog(location, 'event SymbolUpdated(address indexed updater, string newSymbol)', { updater: bob, newSymbol: symbol })
export const nameUpdated = (location: LogLocation, name: string): Log =>
  encodeLog(location, 'event NameUpdated(address indexed updater, string newName)', { updater: bob, newName: name })
export const supplyCapUpdated = (location: LogLocation, from: bigint, to: bigint): Log =>
  encodeLog(location, 'event SupplyCapUpdated(address indexed updater, uint256 oldSupplyCap, uint256 newSupplyCap)', {
    updater: bob,
    oldSupplyCap: from,
    newSupplyCap: to,
  })
export const extraMetadataUpdated = (location: LogLocation, key: string, value: string): Log =>
  encodeLog(location, 'event ExtraMetadataUpdated(string key, string value)', { key, value })
/** A round of a price feed: `price` in dollars, `updatedAt` in seconds. */
export const answerUpdated = (location: LogLocation, price: string, round: bigint, updatedAt: number): Log =>
  encodeLog(location, 'event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt)', {
    current: wad(price) / 10n ** 10n,
    roundId: round,
    updatedAt: BigInt(updatedAt),
  })

/** A swap in a pool of a Uniswap v4 manager, whose amounts are those of the swapper. */
export const managerSwap = (location: LogLocation, id: Hex, amounts: readonly [bigint, bigint], sqrtPriceX96: bigint): Log =>
  encodeLog(
    location,
    'event Swap(bytes32 indexed id, address indexed sender, int128 amount0, int128 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick, uint24 fee)',
    { id, sender: alice, amount0: amounts[0], amount1: amounts[1], sqrtPriceX96, liquidity: 10n ** 16n, tick: 0, fee: 3_000 },
  )

/** A swap in a Uniswap v3 or Slipstream pool, whose amounts are those of the pool. */
export const swap = (
  location: LogLocation,
  amounts: readonly [bigint, bigint],
  sqrtPriceX96 = 2n ** 96n,
  liquidity = 10n ** 16n,
): Log =>
  encodeLog(
    location,
    'event Swap(address indexed sender, address indexed recipient, int256 amount0, int256 amount1, uint160 sqrtPriceX96, uint128 liquidity, int24 tick)',
    { sender: alice, recipient: bob, amount0: amounts[0], amount1: amounts[1], sqrtPriceX96, liquidity, tick: 0 },
  )
