/** Bytes or a number as a node writes them: 0x and lower-case digits. */
export type Hex = `0x${string}`

export const ADDRESS_CHARS = '0x'.length + 40
export const WORD_CHARS = '0x'.length + 64
export const ZERO_ADDRESS: Hex = `0x${'0'.repeat(40)}`
export const ZERO_WORD: Hex = `0x${'0'.repeat(64)}`

/** A number as a node writes it, without leading zeros. */
export const quantity = (amount: number | bigint): Hex => `0x${amount.toString(16)}`

/** A number or an address, padded to 32 bytes. */
export const toWord = (value: bigint | Hex): Hex =>
  `0x${(typeof value === 'bigint' ? value.toString(16) : value.slice(2)).padStart(64, '0')}`

/** Text that is known to be hex, in lower case. */
export const toLowerHex = (text: string): Hex => `0x${text.slice(2).toLowerCase()}`

/** The value of each hex digit by its character code, with a mark for upper case. */
const UPPER = 0x40
const NO_DIGIT = 0x80
const digits = new Uint8Array(128).fill(NO_DIGIT)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  digits[digit.toUpperCase().charCodeAt(0)] = value | UPPER
  digits[digit.charCodeAt(0)] = value
}

const isPrefixed = (text: string): boolean => text.charCodeAt(0) === 0x30 && text.charCodeAt(1) === 0x78

/** Whole bytes in lower case. `chars` is their length as text, or null for any. Faster than a pattern: every pushed log is read by it. */
export function readHex(value: unknown, chars: number | null): Hex | null {
  if (typeof value !== 'string' || value.length !== (chars ?? value.length)) return null
  if (value.length % 2 !== 0 || !isPrefixed(value)) return null
  let seen = 0
  for (let index = 2; index < value.length; index += 1) seen |= digits[value.charCodeAt(index)] ?? NO_DIGIT
  if ((seen & NO_DIGIT) !== 0) return null
  return ((seen & UPPER) === 0 ? value : value.toLowerCase()) as Hex
}

/** A safe integer. */
export function readQuantity(value: unknown): number | null {
  if (typeof value !== 'string' || value.length <= 2 || value.length > WORD_CHARS || !isPrefixed(value)) return null
  let amount = 0
  for (let index = 2; index < value.length; index += 1) {
    const digit = digits[value.charCodeAt(index)] ?? NO_DIGIT
    if (digit === NO_DIGIT) return null
    amount = amount * 16 + (digit & 0xf)
  }
  return Number.isSafeInteger(amount) ? amount : null
}

/** The address in a text of a person, who may write 0X too; null for any other text. */
export const addressIn = (text: string): Hex | null => readHex(text.toLowerCase(), ADDRESS_CHARS)
