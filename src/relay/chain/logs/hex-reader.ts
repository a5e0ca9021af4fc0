import type { Hex } from '../../../protocol/fields.ts'

/** The value of each hex digit by its character code, with a mark for upper case. */
const UPPER = 0x40
const NO_DIGIT = 0x80
const digits = new Uint8Array(128).fill(NO_DIGIT)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  digits[digit.toUpperCase().charCodeAt(0)] = value | UPPER
  digits[digit.charCodeAt(0)] = value
}

const isPrefixed = (text: string): boolean => text.charCodeAt(0) === 0x30 && text.charCodeAt(1) === 0x78

/** Whole bytes in lower case. `chars` is their length as text, or null for any. */
export function readHex(value: unknown, chars: number | null): Hex | null {
  if (typeof value !== 'string' || value.length !== (chars ?? value.length)) return null
  if (value.length % 2 !== 0 || !isPrefixed(value)) return null
  let seen = 0
  for (let index = 2; index < value.length; index += 1) seen |= digits[value.charCodeAt(index)] ?? NO_DIGIT
  if ((seen & NO_DIGIT) !== 0) return null
  return ((seen & UPPER) === 0 ? value : value.toLowerCase()) as Hex
}

const QUANTITY_BOUND_CHARS = '0x'.length + 64

/** A safe integer. */
export function readQuantity(value: unknown): number | null {
  if (typeof value !== 'string' || value.length <= 2 || value.length > QUANTITY_BOUND_CHARS || !isPrefixed(value)) return null
  let quantity = 0
  for (let index = 2; index < value.length; index += 1) {
    const digit = digits[value.charCodeAt(index)] ?? NO_DIGIT
    if (digit === NO_DIGIT) return null
    quantity = quantity * 16 + (digit & 0xf)
  }
  return Number.isSafeInteger(quantity) ? quantity : null
}
