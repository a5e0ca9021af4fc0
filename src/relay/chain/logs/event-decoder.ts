import type { AbiParameter } from 'viem'
import { type DecodeAbiParametersReturnType, parseAbiParameters, toEventSelector } from 'viem/utils'
import type { Hex } from '../../../lib/hex.ts'
import { abiDecoder, addressFromWord, isAddressWord } from './abi-decoder.ts'
import type { Log } from './log-parser.ts'

/** Limits of the characters of texts from a contract. These texts are untrusted, so longer ones are cut. */
const ID_BOUND = 256
const NAME_BOUND = 128
const METADATA_NAME_BOUND = 256
const TEXT_BOUND = 2_048

/** The indexed values of a log. If it has fewer than three, `0x` stands for each missing one. */
type Indexed = readonly [Hex, Hex, Hex]

type EventLayout<Decoded> = {
  readonly indexed: readonly ('address' | 'bytes32' | 'int256' | 'uint256')[]
  readonly decode: (indexed: Indexed, data: Hex) => Decoded | null
}

/** Decodes the events of the token standard and of the price feeds. A known event in another layout is `other`. */
export function decodeLog({ topics, data }: Log): DecodedEvent {
  const [selector = '0x', first = '0x', second = '0x', third = '0x'] = topics
  const layout = layouts.get(selector)
  if (!layout || !matchesLayout(layout, topics)) return { event: 'other' }
  return layout.decode([first, second, third], data) ?? { event: 'other' }
}

const matchesLayout = ({ indexed }: EventLayout<unknown>, topics: readonly Hex[]): boolean =>
  topics.length === indexed.length + 1 &&
  indexed.every((type, index) => type !== 'address' || isAddressWord(topics[index + 1] ?? '0x'))

const uint = parseAbiParameters('uint256')
const uints = parseAbiParameters('uint256, uint256')
const features = parseAbiParameters('uint8[]')
const text = parseAbiParameters('string')
const texts = parseAbiParameters('string, string')

const swapOfPool = parseAbiParameters('int256, int256, uint160, uint128, int24')
const swapOfManager = parseAbiParameters('int128, int128, uint160, uint128, int24, uint24')

const swaps = [
  // Uniswap v3 and Slipstream: the amounts are those of the pool. A positive one went into the pool.
  defineEvent('Swap', ['address', 'address'], swapOfPool, ([sender, recipient], [amount0, amount1, sqrtPriceX96, liquidity]) => ({
    ...{ event: 'Swap', poolId: null, sender: addressFromWord(sender), recipient: addressFromWord(recipient), fee: null },
    ...{ amounts: [amount0, amount1], sqrtPriceX96, liquidity },
  })),
  // Uniswap v4: the amounts are those of the swapper. A negative one went into the pool.
  defineEvent(
    'Swap',
    ['bytes32', 'address'],
    swapOfManager,
    ([poolId, sender], [amount0, amount1, sqrtPriceX96, liquidity, , fee]) => ({
      ...{ event: 'Swap', poolId, sender: addressFromWord(sender), recipient: null, fee },
      ...{ amounts: [amount0, amount1], sqrtPriceX96, liquidity },
    }),
  ),
] as const

const events = [
  defineEvent('Transfer', ['address', 'address'], uint, ([from, to], [amount]) => ({
    event: 'Transfer',
    from: addressFromWord(from),
    to: addressFromWord(to),
    amount,
  })),
  defineEvent('Approval', ['address', 'address'], uint, ([owner, spender], [amount]) => ({
    event: 'Approval',
    owner: addressFromWord(owner),
    spender: addressFromWord(spender),
    amount,
  })),
  defineEvent('Memo', ['address', 'bytes32'], [], ([_caller, memo]) => ({ event: 'Memo', memo })),
  defineEvent('Seized', ['address', 'address', 'address'], uint, ([_caller, from, to], [amount]) => ({
    event: 'Seized',
    from: addressFromWord(from),
    to: addressFromWord(to),
    amount,
  })),
  defineEvent('Paused', ['address'], features, (_, [list]) => ({ event: 'Paused', features: list })),
  defineEvent('Unpaused', ['address'], features, (_, [list]) => ({ event: 'Unpaused', features: list })),
  defineEvent('MultiplierUpdated', [], uint, (_, [to]) => ({ event: 'MultiplierUpdated', to })),
  defineEvent('UIMultiplierUpdated', [], parseAbiParameters('uint256, uint256, uint256'), (_, [from, to, effectiveAt]) => ({
    event: 'UIMultiplierUpdated',
    from,
    to,
    effectiveAt,
  })),
  // `to` is the cancelled multiplier, and `effectiveAt` the time at which it would have taken effect.
  defineEvent('UIMultiplierUpdateCancelled', [], uints, (_, [to, effectiveAt]) => ({
    event: 'UIMultiplierUpdateCancelled',
    to,
    effectiveAt,
  })),
  defineEvent('Announcement', ['address'], parseAbiParameters('string, string, string'), (_, [id, description, uri]) => ({
    event: 'Announcement',
    id: truncate(id, ID_BOUND),
    description: truncate(description, TEXT_BOUND),
    uri: truncate(uri, TEXT_BOUND),
  })),
  defineEvent('EndAnnouncement', [], text, (_, [id]) => ({ event: 'EndAnnouncement', id: truncate(id, ID_BOUND) })),
  defineEvent('ExtraMetadataUpdated', [], texts, (_, [name, value]) => ({
    event: 'ExtraMetadataUpdated',
    name: truncate(name, METADATA_NAME_BOUND),
    value: truncate(value, TEXT_BOUND),
  })),
  defineEvent('NameUpdated', ['address'], text, (_, [name]) => ({ event: 'NameUpdated', name: truncate(name, NAME_BOUND) })),
  defineEvent('SymbolUpdated', ['address'], text, (_, [symbol]) => ({
    event: 'SymbolUpdated',
    symbol: truncate(symbol, NAME_BOUND),
  })),
  defineEvent('ContractURIUpdated', [], [], () => ({ event: 'ContractURIUpdated' })),
  defineEvent('SupplyCapUpdated', ['address'], uints, (_, [from, to]) => ({ event: 'SupplyCapUpdated', from, to })),
  defineEvent('AnswerUpdated', ['int256', 'uint256'], uint, ([answer, round], [updatedAt]) => ({
    event: 'AnswerUpdated',
    answer: BigInt.asIntN(256, BigInt(answer)),
    round: BigInt(round),
    updatedAt,
  })),
  ...swaps,
] as const

const [, [managerSwapTopic]] = swaps
/** The first topic of a swap in a Uniswap v4 manager. The second one is the pool's id. */
export const MANAGER_SWAP_TOPIC: Hex = managerSwapTopic

const swapTopics: ReadonlySet<unknown> = new Set(swaps.map(([topic]) => topic))

/** Whether a log with this topic is a swap of a pool, if it has the layout of one. */
export const isSwapTopic = (topic: Hex | undefined): boolean => swapTopics.has(topic)

/** A decoded log. A log of unknown layout is `other`, and is published undecoded. */
export type DecodedEvent = DecodedBy<(typeof events)[number]> | { readonly event: 'other' }
type DecodedBy<Defined> = Defined extends readonly [Hex, EventLayout<infer Decoded>] ? Decoded : never

const layouts: ReadonlyMap<string, EventLayout<DecodedEvent>> = new Map<string, EventLayout<DecodedEvent>>(events)

/** Defines an event. In its signature, the types of the indexed values precede those of its data. */
function defineEvent<const Data extends readonly AbiParameter[], const Decoded extends { readonly event: string }>(
  name: Decoded['event'],
  indexed: EventLayout<unknown>['indexed'],
  data: Data,
  decode: (indexed: Indexed, data: DecodeAbiParametersReturnType<Data>) => Decoded,
): readonly [Hex, EventLayout<Decoded>] {
  const types = [...indexed, ...data.map(({ type }) => type)]
  const decodeData = abiDecoder(data)
  const decodeAll = (words: Indexed, bytes: Hex): Decoded | null => {
    const values = decodeData(bytes)
    return values && decode(words, values)
  }
  return [toEventSelector(`${name}(${types.join()})`), { indexed, decode: decodeAll }]
}

/** Cuts a text to `bound` characters, but never between the two halves of a surrogate pair. */
function truncate(text: string, bound: number): string {
  const cut = text.slice(0, bound)
  return (text.length > bound && !cut.isWellFormed() ? cut.slice(0, -1) : cut).toWellFormed()
}
