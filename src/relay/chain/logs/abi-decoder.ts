import type { AbiParameter } from 'viem'
import { type DecodeAbiParametersReturnType, decodeAbiParameters } from 'viem/utils'
import type { Hex } from '../../../lib/hex.ts'

const WORD_BYTES = 32
const WORD_DIGITS = 2 * WORD_BYTES
/** Limit of the data of an event or an answer with strings. Longer data is not decoded. */
const TEXT_DATA_BOUND_BYTES = 64 * 2 ** 10
/** Limit of the elements of a uint8 list: a uint8 has this many values, so a longer list contains a value twice. */
const LIST_BOUND = 256
/** Limit of the data of each type. A list has a word for its offset, a word for its length, and one for each element. */
const BOUNDS_BYTES: Readonly<Record<string, number>> = { string: TEXT_DATA_BOUND_BYTES, 'uint8[]': (2 + LIST_BOUND) * WORD_BYTES }
const ADDRESS_PADDING = `0x${'0'.repeat(24)}`

export const isAddressWord = (word: Hex): boolean => word.startsWith(ADDRESS_PADDING)
export const addressFromWord = (word: Hex): Hex => `0x${word.slice(ADDRESS_PADDING.length)}`

/** Decodes data as values of these types; null if the data has another layout or exceeds the limits. */
export function abiDecoder<const Values extends readonly AbiParameter[]>(
  values: Values,
): (data: Hex) => DecodeAbiParametersReturnType<Values> | null {
  const types = values.map(({ type }) => type)
  if (types.every((type) => type === 'uint256')) {
    return (data) => decodeUints(data, types.length) as DecodeAbiParametersReturnType<Values> | null
  }
  const minBytes = types.length * WORD_BYTES
  const maxBytes = Math.max(minBytes, ...types.map((type) => BOUNDS_BYTES[type] ?? 0))
  const tests = types.map(rangeTestOf)
  const isInRange = (value: unknown, index: number): boolean => [value].flat().every((element) => tests[index]?.(element) ?? true)
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

/** Returns a test of a value of an integer type, because the decoder of viem does not check the range; null for another type. */
function rangeTestOf(type: string): ((value: unknown) => boolean) | null {
  const [, unsigned, bits] = /^(u?)int(\d+)/.exec(type) ?? []
  if (bits === undefined) return null
  const cut = unsigned ? BigInt.asUintN : BigInt.asIntN
  return (value) => cut(Number(bits), BigInt(value as bigint)) === BigInt(value as bigint)
}

/** Decodes the data of the most frequent events. The decoder of viem takes ten times as long for it. */
function decodeUints(data: Hex, count: number): readonly bigint[] | null {
  if (data.length !== '0x'.length + count * WORD_DIGITS) return null
  if (count === 1) return [BigInt(data)]
  return Array.from({ length: count }, (_, index) =>
    BigInt(`0x${data.slice(2 + index * WORD_DIGITS, 2 + (index + 1) * WORD_DIGITS)}`),
  )
}

/** Parses hex for the decoder of viem, which is five times slower on a long string if it parses the hex itself. */
const bytesOf = (data: Hex): Uint8Array => Buffer.from(data.slice(2), 'hex')
