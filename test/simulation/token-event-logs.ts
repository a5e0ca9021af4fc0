import type { Hex } from '../../src/lib/hex.ts'
import type { LogContent } from './simulated-block.ts'

/** What a log means, beyond movements and approvals. */
export type TokenEvent =
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

const topics = {
  memo: '0x6989f5818dcfd11f8cd53b27c94cec33dae1589735f03e639cba54553a1825e8',
  burnedBlocked: '0x0b552e96653fd6842da37c477005d3b5c08a8c7d3631b1f43787b2dc9a1006a3',
  seized: '0xa9aec5d8b86e2fa2fd6ac3af62f2622e3dfdab1967d4cbbb56a5df7d74cb887c',
  paused: '0x3e849708b13f20dd0b87a503523c305e7604cd7e8f855e7a5ebe21397dfd7146',
  unpaused: '0x086a815e5123cf1af5cb7a82f8b052bf96c622204c98b2f4f9782bf77f753c57',
  multiplierUpdated: '0x4dbe4840d7465bd162f67814cea0b519567a2e0e578bcde61e7f4ced361e5a3d',
  uiMultiplierUpdated: '0x2205df4534432b2f60654a3fdb48737ffdaf3e9edb1a498bd985bc026b15b055',
  uiMultiplierUpdateCancelled: '0x883856335ba5f60c18b9817c4505d3c7d3f6223dcf39516b30c508c46a5e1cad',
  announcement: '0xccebf8218a62875909564adef86a6f4df81503cb617221e793357d62f8e813f7',
  endAnnouncement: '0x96d64dafe2c790596430196b982ad1da3221cb3b0f4e6e2df77f2e4f71a90037',
  extraMetadataUpdated: '0xd7bb345be29e78d635203d40fe0567e7ef19d5cd5cc5fcd25f768b8063e82aa1',
  nameUpdated: '0x74321da206c1b9fa34367f7ece59ca49371dcd13820b9a5c3767ae1ecceed51a',
  symbolUpdated: '0x64e8b5c6dcea43dd79766bb3b8af7c45968d12b68c960cf2da23856f34d598d4',
  contractURIUpdated: '0xa5d4097edda6d87cb9329af83fb3712ef77eeb13738ffe43cc35a4ce305ad962',
  supplyCapUpdated: '0x6d14f44808ce024f263432bc38d019a9951fbe674e9898b54844dbc8dc09c23a',
} as const

const WORD_BYTES = 32
/** The operator of every token. */
const OPERATOR_ADDRESS = 0xb00c
/** The value that a contract reports where there is no cap. */
export const NO_CAP = 2n ** 128n - 1n

type AbiValue = bigint | number | string | readonly number[]

const encodeWord = (value: bigint | number): string => value.toString(16).padStart(2 * WORD_BYTES, '0')
const encodeTopic = (value: bigint | number): Hex => `0x${encodeWord(value)}`

/** ABI encoding: numbers in place; texts and lists at the end, with their offset in place. */
export function encodeAbi(...parts: readonly AbiValue[]): Hex {
  const heads: string[] = []
  let tail = ''
  for (const part of parts) {
    if (typeof part === 'bigint' || typeof part === 'number') {
      heads.push(encodeWord(part))
      continue
    }
    heads.push(encodeWord(parts.length * WORD_BYTES + tail.length / 2))
    tail += typeof part === 'string' ? encodeText(part) : [part.length, ...part].map(encodeWord).join('')
  }
  return `0x${heads.join('')}${tail}`
}

function encodeText(text: string): string {
  const bytes = Buffer.from(text)
  const padded = Math.ceil(bytes.length / WORD_BYTES) * WORD_BYTES
  return encodeWord(bytes.length) + bytes.toString('hex').padEnd(2 * padded, '0')
}

const operator = encodeTopic(OPERATOR_ADDRESS)
const addressToWord = (address: Hex): Hex => `0x${address.slice(2).padStart(2 * WORD_BYTES, '0')}`

export const memo = (address: Hex, text: Hex): LogContent => ({
  address,
  topics: [topics.memo, operator, text],
  data: '0x',
  tokenEvent: { event: 'Memo', memo: text },
})

export const seized = (address: Hex, from: Hex, to: Hex, raw: bigint): LogContent => ({
  address,
  topics: [topics.seized, operator, addressToWord(from), addressToWord(to)],
  data: encodeAbi(raw),
  tokenEvent: { event: 'Seized', from, to, raw },
})

/** The standard knows this event and the relay does not: it is published as a plain log. */
export const burnedBlocked = (address: Hex, from: Hex, raw: bigint): LogContent => ({
  address,
  topics: [topics.burnedBlocked, operator, addressToWord(from)],
  data: encodeAbi(raw),
})

export const multiplierUpdated = (address: Hex, to: bigint): LogContent => ({
  address,
  topics: [topics.multiplierUpdated],
  data: encodeAbi(to),
  tokenEvent: { event: 'MultiplierUpdated', to },
})

export const uiMultiplierUpdated = (address: Hex, from: bigint, to: bigint, at: number): LogContent => ({
  address,
  topics: [topics.uiMultiplierUpdated],
  data: encodeAbi(from, to, at),
  tokenEvent: { event: 'UIMultiplierUpdated', from, to, at },
})

export const uiMultiplierUpdateCancelled = (address: Hex, to: bigint, at: number): LogContent => ({
  address,
  topics: [topics.uiMultiplierUpdateCancelled],
  data: encodeAbi(to, at),
  tokenEvent: { event: 'UIMultiplierUpdateCancelled', to, at },
})

export const paused = (address: Hex, event: 'Paused' | 'Unpaused', features: readonly number[]): LogContent => ({
  address,
  topics: [event === 'Paused' ? topics.paused : topics.unpaused, operator],
  data: encodeAbi(features),
  tokenEvent: { event, features },
})

export const announcement = (address: Hex, id: string, description: string, uri: string): LogContent => ({
  address,
  topics: [topics.announcement, operator],
  data: encodeAbi(id, description, uri),
  tokenEvent: { event: 'Announcement', id, description, uri },
})

export const endAnnouncement = (address: Hex, id: string): LogContent => ({
  address,
  topics: [topics.endAnnouncement],
  data: encodeAbi(id),
  tokenEvent: { event: 'EndAnnouncement', id },
})

export const renamed = (address: Hex, field: 'name' | 'symbol', value: string): LogContent => ({
  address,
  topics: [field === 'name' ? topics.nameUpdated : topics.symbolUpdated, operator],
  data: encodeAbi(value),
  tokenEvent: { event: 'FieldUpdated', field, value },
})

/** An empty value removes the entry. */
export const metadataUpdated = (address: Hex, entry: string, value: string): LogContent => ({
  address,
  topics: [topics.extraMetadataUpdated],
  data: encodeAbi(entry, value),
  tokenEvent: { event: 'FieldUpdated', field: 'extra_metadata', value: value === '' ? {} : { [entry]: value } },
})

export const uriUpdated = (address: Hex): LogContent => ({
  address,
  topics: [topics.contractURIUpdated],
  data: '0x',
  tokenEvent: { event: 'FieldUpdated', field: 'contract_uri', value: null },
})

export const supplyCapUpdated = (address: Hex, from: bigint, to: bigint): LogContent => ({
  address,
  topics: [topics.supplyCapUpdated, operator],
  data: encodeAbi(from, to),
  tokenEvent: { event: 'FieldUpdated', field: 'supply_cap', value: to === NO_CAP ? null : to.toString() },
})
