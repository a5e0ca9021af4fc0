import type { AbiParameter } from 'viem'
import { type DecodeAbiParametersReturnType, decodeAbiParameters } from 'viem/utils'
import type { Hex } from '../../protocol/fields.ts'

const WORD_BYTES = 32
/** Texts that come in more data than this are not read at all. */
const TEXT_DATA_BOUND_BYTES = 64 * 2 ** 10
/** A uint8 has no more values than this, so a longer list of them says nothing more. */
const LIST_BOUND = 256
/** How much data values of a type may take: for a list an offset, a length, and the elements. */
const BOUNDS_BYTES: Readonly<Record<string, number>> = {
  string: TEXT_DATA_BOUND_BYTES,
  'uint8[]': (2 + LIST_BOUND) * WORD_BYTES,
}
/** What a small number can hold: the decoder takes its word for what it is. */
const MAX_VALUE: Readonly<Record<string, number>> = { uint8: 0xff, 'uint8[]': 0xff, uint16: 0xffff }

/** What stands before an address in its word. */
const ADDRESS_PADDING = `0x${'0'.repeat(24)}`

/** Whether a word holds an address, and nothing before it. */
export const isAddressWord = (word: Hex): boolean => word.startsWith(ADDRESS_PADDING)
/** The address that stands at the end of a word. */
export const addressFromWord = (word: Hex): Hex => `0x${word.slice(ADDRESS_PADDING.length)}`

/** Reads data as values of these types; null where it holds anything else, or more than can be meant. */
export function abiDecoder<const Values extends readonly AbiParameter[]>(
  values: Values,
): (data: Hex) => DecodeAbiParametersReturnType<Values> | null {
  const types = values.map(({ type }) => type)
  const minBytes = types.length * WORD_BYTES
  const maxBytes = Math.max(minBytes, ...types.map((type) => BOUNDS_BYTES[type] ?? 0))
  const isInRange = (value: unknown, index: number): boolean => {
    const max = MAX_VALUE[types[index] ?? '']
    return max === undefined || [value].flat().every((one) => Number(one) <= max)
  }
  return (data) => {
    const bytes = (data.length - 2) / 2
    if (bytes < minBytes || bytes > maxBytes) return null
    try {
      const decoded = decodeAbiParameters(values, bytesOf(data))
      return decoded.every(isInRange) ? decoded : null
    } catch {
      return null
    }
  }
}

/** Left to read hex by itself, the decoder takes five times as long over a long text. */
const bytesOf = (data: Hex): Uint8Array => Buffer.from(data.slice(2), 'hex')
