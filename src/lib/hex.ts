/** 0x and lower-case digits, as a node writes bytes and numbers. */
export type Hex = `0x${string}`

export const ADDRESS_CHARS = '0x'.length + 40
export const WORD_CHARS = '0x'.length + 64
export const ZERO_ADDRESS: Hex = `0x${'0'.repeat(40)}`
export const ZERO_WORD: Hex = `0x${'0'.repeat(64)}`

/** Writes a number without leading zeros, as nodes require. */
export const quantity = (amount: number | bigint): Hex => `0x${amount.toString(16)}`

/** Pads a number or an address to 32 bytes. */
export const toWord = (value: bigint | Hex): Hex =>
  `0x${(typeof value === 'bigint' ? value.toString(16) : value.slice(2)).padStart(64, '0')}`

/** `text` must be hex with 0x. */
export const toLowerHex = (text: string): Hex => `0x${text.slice(2).toLowerCase()}`

/** Bit that marks an upper-case digit in the table `digits`, which has the value of each hex digit by its character code. */
const UPPER = 0x40
const NO_DIGIT = 0x80
const digits = new Uint8Array(128).fill(NO_DIGIT)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  digits[digit.toUpperCase().charCodeAt(0)] = value | UPPER
  digits[digit.charCodeAt(0)] = value
}

const isPrefixed = (text: string): boolean => text.charCodeAt(0) === 0x30 && text.charCodeAt(1) === 0x78

/** Reads whole bytes. `chars` is the length of the text, or null for any. Every pushed log is read here; a pattern is slower. */
export function readHex(value: unknown, chars: number | null): Hex | null {
  if (typeof value !== 'string' || value.length !== (chars ?? value.length)) return null
  if (value.length % 2 !== 0 || !isPrefixed(value)) return null
  let seen = 0
  for (let index = 2; index < value.length; index += 1) seen |= digits[value.charCodeAt(index)] ?? NO_DIGIT
  if ((seen & NO_DIGIT) !== 0) return null
  return ((seen & UPPER) === 0 ? value : value.toLowerCase()) as Hex
}

/** Reads a number. Null if the value is not a hex number, or is too large to be exact in JavaScript. */
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

/** Reads an address that a person wrote, who may use 0X and upper case. */
export const addressIn = (text: string): Hex | null => readHex(text.toLowerCase(), ADDRESS_CHARS)
