import { decodeEventLog, toEventSelector } from 'viem/utils'
import type { DevnetLog, EmittedLog } from '../../src/devnet/chain/chain-types.ts'
import { tokenAbi } from '../../src/devnet/tokens/contract-abis.ts'
import { NO_CAP } from '../../src/devnet/tokens/token-storage.ts'
import { type Hex, toLowerHex } from '../../src/lib/hex.ts'

/** What a log means, beyond movements and approvals. */
type TokenEvent =
  | { readonly event: 'Memo'; readonly memo: Hex }
  | { readonly event: 'Seized'; readonly from: Hex; readonly to: Hex; readonly raw: bigint }
  | { readonly event: 'MultiplierUpdated'; readonly to: bigint }
  /** In seconds. */
  | { readonly event: 'UIMultiplierUpdated'; readonly from: bigint; readonly to: bigint; readonly at: number }
  | { readonly event: 'UIMultiplierUpdateCancelled'; readonly to: bigint; readonly at: number }
  | { readonly event: 'Paused' | 'Unpaused'; readonly features: readonly number[] }
  | { readonly event: 'Announcement'; readonly id: string; readonly description: string; readonly uri: string }
  | { readonly event: 'EndAnnouncement'; readonly id: string }
  /** A field of the record; null where the log does not contain its value. */
  | { readonly event: 'FieldUpdated'; readonly field: string; readonly value: unknown }

/** A log with its place in a block, as laws read it. */
export type PlacedLog = {
  readonly key: string
  readonly content: EmittedLog & { readonly tokenEvent: TokenEvent | undefined }
  readonly block: number
  /** In seconds. */
  readonly timestamp: number
  readonly tx: Hex
  readonly txIndex: number
  readonly logIndex: number
}

export function placedLog({ address, topics, data, transactionHash: tx, ...place }: DevnetLog): PlacedLog {
  const [block, logIndex] = [Number(place.blockNumber), Number(place.logIndex)]
  return {
    key: `${block}-${tx}-${logIndex}`,
    content: { address, topics, data, tokenEvent: tokenEventOf({ address, topics, data }) },
    block,
    timestamp: Number(place.blockTimestamp),
    tx,
    txIndex: Number(place.transactionIndex),
    logIndex,
  }
}

type TokenAbiEvent = Extract<(typeof tokenAbi)[number], { type: 'event' }>
const abiEvents = new Map<string | undefined, TokenAbiEvent>(
  tokenAbi.flatMap((item) => (item.type === 'event' ? [[toEventSelector(item), item] as const] : [])),
)
/** By the topics, which are one array wherever their log lands. */
const knownEvents = new WeakMap<readonly Hex[], TokenEvent | undefined>()

/** Decodes a log with the contract's ABI, and not as the relay does. */
function tokenEventOf(log: EmittedLog): TokenEvent | undefined {
  const item = abiEvents.get(log.topics[0])
  if (!item) return undefined
  if (!knownEvents.has(log.topics)) knownEvents.set(log.topics, decode(item, log))
  return knownEvents.get(log.topics)
}

function decode(item: TokenAbiEvent, { topics, data }: EmittedLog): TokenEvent | undefined {
  const { eventName, args } = decodeEventLog({ abi: [item] as const, topics: topics as [Hex, ...Hex[]], data })
  const fieldUpdated = (field: string, value: unknown): TokenEvent => ({ event: 'FieldUpdated', field, value })
  switch (eventName) {
    case 'Memo':
      return { event: eventName, memo: args.memo }
    case 'Seized':
      return { event: eventName, from: toLowerHex(args.from), to: toLowerHex(args.to), raw: args.amount }
    case 'MultiplierUpdated':
      return { event: eventName, to: args.multiplier }
    case 'UIMultiplierUpdated':
      return { event: eventName, from: args.oldMultiplier, to: args.newMultiplier, at: Number(args.effectiveAtTimestamp) }
    case 'UIMultiplierUpdateCancelled':
      return { event: eventName, to: args.cancelledMultiplier, at: Number(args.cancelledEffectiveAt) }
    case 'Paused':
    case 'Unpaused':
      return { event: eventName, features: args.features }
    case 'Announcement':
      return { event: eventName, id: args.id, description: args.description, uri: args.uri }
    case 'EndAnnouncement':
      return { event: eventName, id: args.id }
    case 'NameUpdated':
      return fieldUpdated('name', args.newName)
    case 'SymbolUpdated':
      return fieldUpdated('symbol', args.newSymbol)
    // An empty value removes the entry.
    case 'ExtraMetadataUpdated':
      return fieldUpdated('extra_metadata', args.value === '' ? {} : { [args.key]: args.value })
    case 'ContractURIUpdated':
      return fieldUpdated('contract_uri', null)
    case 'SupplyCapUpdated':
      return fieldUpdated('supply_cap', args.newSupplyCap === NO_CAP ? null : String(args.newSupplyCap))
    default:
      return undefined
  }
}
