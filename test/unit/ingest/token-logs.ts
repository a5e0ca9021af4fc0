import type { AbiParameter } from 'viem'
import { encodeAbiParameters, encodeEventTopics, parseAbiItem } from 'viem/utils'
import type { Log } from '../../../src/chain/logs/log-schema.ts'
import type { Hex } from '../../../src/protocol/fields.ts'
import { alice, bob } from '../chain/node-json.ts'
import { APPLE } from '../tokens/stock-records.ts'
import { logAt, type Place } from './reducer-fixture.ts'

export const ZERO: Hex = `0x${'0'.repeat(40)}`
/** A multiplier as the chain keeps it, from its decimal text. */
export const wad = (text: string): bigint => {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(18, '0'))
}

/** Where a log stands, and of which token. */
type Where = Omit<Place, 'raw'>

/** A log of the token standard, encoded by the signature of its event. */
const said = (where: Where, signature: string, args: Record<string, unknown>): Log => {
  const event = parseAbiItem(signature)
  if (event.type !== 'event') throw new Error('no event')
  const topics = encodeEventTopics({ abi: [event], eventName: event.name, args }) as Hex[]
  const plain = event.inputs.filter((input) => !('indexed' in input && input.indexed)) as AbiParameter[]
  const data = encodeAbiParameters(
    plain,
    plain.map(({ name }) => args[name ?? '']),
  )
  return { ...logAt({ address: APPLE as Hex, ...where }), topics, data }
}

export const transfer = (where: Where, raw: bigint, ends: { from?: Hex; to?: Hex } = {}): Log =>
  said(where, 'event Transfer(address indexed from, address indexed to, uint256 amount)', {
    from: alice,
    to: bob,
    amount: raw,
    ...ends,
  })
export const memo = (where: Where, text: Hex): Log =>
  said(where, 'event Memo(address indexed caller, bytes32 indexed memo)', { caller: alice, memo: text })
export const seized = (where: Where, raw: bigint): Log =>
  said(where, 'event Seized(address indexed caller, address indexed from, address indexed to, uint256 amount)', {
    caller: bob,
    from: alice,
    to: bob,
    amount: raw,
  })
/** The multiplier is set at a time, in seconds. */
export const multiplied = (where: Where, from: string, to: string, effectiveAt: number): Log =>
  said(where, 'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp)', {
    oldMultiplier: wad(from),
    newMultiplier: wad(to),
    effectiveAtTimestamp: BigInt(effectiveAt),
  })
export const multipliedOnce = (where: Where, to: string): Log =>
  said(where, 'event MultiplierUpdated(uint256 multiplier)', { multiplier: wad(to) })
export const cancelled = (where: Where, to: string, effectiveAt: number): Log =>
  said(where, 'event UIMultiplierUpdateCancelled(uint256 cancelledMultiplier, uint256 cancelledEffectiveAt)', {
    cancelledMultiplier: wad(to),
    cancelledEffectiveAt: BigInt(effectiveAt),
  })
export const paused = (where: Where, features: readonly number[]): Log =>
  said(where, 'event Paused(address indexed updater, uint8[] features)', { updater: bob, features })
export const unpaused = (where: Where, features: readonly number[]): Log =>
  said(where, 'event Unpaused(address indexed updater, uint8[] features)', { updater: bob, features })
export const announced = (where: Where, id: string, description = 'a dividend', uri = 'ipfs://x'): Log =>
  said(where, 'event Announcement(address indexed caller, string id, string description, string uri)', {
    caller: bob,
    id,
    description,
    uri,
  })
export const announcementEnded = (where: Where, id: string): Log =>
  said(where, 'event EndAnnouncement(string id)', { id })
export const renamed = (where: Where, symbol: string): Log =>
  said(where, 'event SymbolUpdated(address indexed updater, string newSymbol)', { updater: bob, newSymbol: symbol })
export const named = (where: Where, name: string): Log =>
  said(where, 'event NameUpdated(address indexed updater, string newName)', { updater: bob, newName: name })
export const capped = (where: Where, from: bigint, to: bigint): Log =>
  said(where, 'event SupplyCapUpdated(address indexed updater, uint256 oldSupplyCap, uint256 newSupplyCap)', {
    updater: bob,
    oldSupplyCap: from,
    newSupplyCap: to,
  })
export const described = (where: Where, key: string, value: string): Log =>
  said(where, 'event ExtraMetadataUpdated(string key, string value)', { key, value })
/** A round of a price feed: its answer in dollars, and when, in seconds. */
export const answered = (where: Where, price: string, round: bigint, updatedAt: number): Log =>
  said(where, 'event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt)', {
    current: wad(price) / 10n ** 10n,
    roundId: round,
    updatedAt: BigInt(updatedAt),
  })
