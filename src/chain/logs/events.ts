import type { AbiParameter } from 'viem'
import { type DecodeAbiParametersReturnType, parseAbiParameters, toEventSelector } from 'viem/utils'
import type { Hex } from '../../protocol/fields.ts'
import { addressIn, decoder, isAddress } from './abi-decoder.ts'
import type { Log } from './log-schema.ts'

/** What a log says, as far as its layout is known; anything else is `other` and told as it came. */
export type Said =
  | { readonly event: 'Transfer'; readonly from: Hex; readonly to: Hex; readonly amount: bigint }
  | { readonly event: 'Approval'; readonly owner: Hex; readonly spender: Hex; readonly amount: bigint }
  | { readonly event: 'Memo'; readonly memo: Hex }
  | { readonly event: 'Seized'; readonly from: Hex; readonly to: Hex; readonly amount: bigint }
  | { readonly event: 'Paused' | 'Unpaused'; readonly features: readonly number[] }
  | { readonly event: 'MultiplierUpdated'; readonly to: bigint }
  | { readonly event: 'UIMultiplierUpdated'; readonly from: bigint; readonly to: bigint; readonly effectiveAt: bigint }
  /** The multiplier that will not be, and when it would have been. */
  | { readonly event: 'UIMultiplierUpdateCancelled'; readonly to: bigint; readonly effectiveAt: bigint }
  | { readonly event: 'Announcement'; readonly id: string; readonly description: string; readonly uri: string }
  | { readonly event: 'EndAnnouncement'; readonly id: string }
  | { readonly event: 'ExtraMetadataUpdated'; readonly name: string; readonly value: string }
  | { readonly event: 'NameUpdated'; readonly name: string }
  | { readonly event: 'SymbolUpdated'; readonly symbol: string }
  | { readonly event: 'ContractURIUpdated' }
  | { readonly event: 'SupplyCapUpdated'; readonly from: bigint; readonly to: bigint }
  | { readonly event: 'AnswerUpdated'; readonly answer: bigint; readonly round: bigint; readonly updatedAt: bigint }
  | { readonly event: 'other' }

/** What a contract writes is untrusted: no text is passed on beyond these many characters. */
const ID_BOUND = 256
const NAME_BOUND = 128
const METADATA_NAME_BOUND = 256
const TEXT_BOUND = 2_048

/** The indexed values of a log, empty beyond the last. */
type Indexed = readonly [Hex, Hex, Hex]

type Layout = {
  readonly indexed: readonly ('address' | 'bytes32' | 'int256' | 'uint256')[]
  /** What a log says by its indexed values and its data; null where the data is of another layout. */
  readonly say: (indexed: Indexed, data: Hex) => Said | null
}

/** Reads a log by the token standard and the feeds'. One that bears a known name and another layout is `other` too. */
export function read({ topics, data }: Log): Said {
  const [name = '0x', ...indexed] = topics
  const layout = layouts.get(name)
  if (!layout || !fits(layout, indexed)) return { event: 'other' }
  const [first = '0x', second = '0x', third = '0x'] = indexed
  return layout.say([first, second, third], data) ?? { event: 'other' }
}

const fits = ({ indexed }: Layout, words: readonly Hex[]): boolean =>
  words.length === indexed.length && words.every((word, at) => indexed[at] !== 'address' || isAddress(word))

const uint = parseAbiParameters('uint256')
const uints = parseAbiParameters('uint256, uint256')
const features = parseAbiParameters('uint8[]')
const text = parseAbiParameters('string')
const texts = parseAbiParameters('string, string')

/** By the hash of its name and types. */
const layouts: ReadonlyMap<string, Layout> = new Map([
  event('Transfer', ['address', 'address'], uint, ([from, to], [amount]) => ({
    event: 'Transfer',
    from: addressIn(from),
    to: addressIn(to),
    amount,
  })),
  event('Approval', ['address', 'address'], uint, ([owner, spender], [amount]) => ({
    event: 'Approval',
    owner: addressIn(owner),
    spender: addressIn(spender),
    amount,
  })),
  event('Memo', ['address', 'bytes32'], [], ([_caller, memo]) => ({ event: 'Memo', memo })),
  event('Seized', ['address', 'address', 'address'], uint, ([_caller, from, to], [amount]) => ({
    event: 'Seized',
    from: addressIn(from),
    to: addressIn(to),
    amount,
  })),
  event('Paused', ['address'], features, (_, [list]) => ({ event: 'Paused', features: list })),
  event('Unpaused', ['address'], features, (_, [list]) => ({ event: 'Unpaused', features: list })),
  event('MultiplierUpdated', [], uint, (_, [to]) => ({ event: 'MultiplierUpdated', to })),
  event('UIMultiplierUpdated', [], parseAbiParameters('uint256, uint256, uint256'), (_, [from, to, effectiveAt]) => ({
    event: 'UIMultiplierUpdated',
    from,
    to,
    effectiveAt,
  })),
  event('UIMultiplierUpdateCancelled', [], uints, (_, [to, effectiveAt]) => ({
    event: 'UIMultiplierUpdateCancelled',
    to,
    effectiveAt,
  })),
  event('Announcement', ['address'], parseAbiParameters('string, string, string'), (_, [id, description, uri]) => ({
    event: 'Announcement',
    id: capped(id, ID_BOUND),
    description: capped(description, TEXT_BOUND),
    uri: capped(uri, TEXT_BOUND),
  })),
  event('EndAnnouncement', [], text, (_, [id]) => ({ event: 'EndAnnouncement', id: capped(id, ID_BOUND) })),
  event('ExtraMetadataUpdated', [], texts, (_, [name, value]) => ({
    event: 'ExtraMetadataUpdated',
    name: capped(name, METADATA_NAME_BOUND),
    value: capped(value, TEXT_BOUND),
  })),
  event('NameUpdated', ['address'], text, (_, [name]) => ({ event: 'NameUpdated', name: capped(name, NAME_BOUND) })),
  event('SymbolUpdated', ['address'], text, (_, [symbol]) => ({
    event: 'SymbolUpdated',
    symbol: capped(symbol, NAME_BOUND),
  })),
  event('ContractURIUpdated', [], [], () => ({ event: 'ContractURIUpdated' })),
  event('SupplyCapUpdated', ['address'], uints, (_, [from, to]) => ({ event: 'SupplyCapUpdated', from, to })),
  event('AnswerUpdated', ['int256', 'uint256'], uint, ([answer, round], [updatedAt]) => ({
    event: 'AnswerUpdated',
    answer: BigInt.asIntN(256, BigInt(answer)),
    round: BigInt(round),
    updatedAt,
  })),
])

/** An event whose indexed values come first, and what a log of it says. */
function event<const Data extends readonly AbiParameter[]>(
  name: string,
  indexed: Layout['indexed'],
  data: Data,
  say: (indexed: Indexed, data: DecodeAbiParametersReturnType<Data>) => Said,
): [Hex, Layout] {
  const types = [...indexed, ...data.map(({ type }) => type)]
  const valuesOf = decoder(data)
  const sayAll = (words: Indexed, bytes: Hex): Said | null => {
    const values = valuesOf(bytes)
    return values && say(words, values)
  }
  return [toEventSelector(`${name}(${types.join()})`), { indexed, say: sayAll }]
}

/** The beginning of a text up to a bound, never the half of a character. */
function capped(text: string, bound: number): string {
  const cut = text.slice(0, bound)
  return (text.length > bound && !cut.isWellFormed() ? cut.slice(0, -1) : cut).toWellFormed()
}
