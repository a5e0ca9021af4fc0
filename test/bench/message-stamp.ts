/**
 * What a measured message contains: its number as the amount, and the microsecond of its creation as the receiver's
 * address. Both are adjacent in a transfer, so that one mark finds them on every transport and in every peer.
 */

/** The first number, so that all have ten digits. */
export const FIRST_NUMBER = 1_000_000_000

/** Live transfers made at once. Each but the last is sent as soon as the next is there, so its delay is the relay's. */
export const PAIR_SIZE = 2

/** The mark, and the offsets of the time and the number from its beginning. */
export const STAMP_MARK = Buffer.from('"to":"0x000000000000000000000000')
const TIME_AT = STAMP_MARK.length
const TIME_DIGITS = 16
const NUMBER_AT = TIME_AT + TIME_DIGITS + '","raw":"'.length
const NUMBER_DIGITS = 10
/** The length of a stamp, from the beginning of its mark. */
const STAMP_BYTES = NUMBER_AT + NUMBER_DIGITS

/** Microseconds of Unix time, the same in every process of this machine. */
export const nowMicros = (): number => Math.round((performance.timeOrigin + performance.now()) * 1_000)

/** The receiver's address that contains the time of a message. */
export const timeAsAddress = (micros: number): `0x${string}` => `0x${String(micros).padStart(40, '0')}`

/** The offset of a message's stamp, or -1. The offset of the last message is tried first, because it mostly fits. */
export function stampAt(bytes: Buffer, from: number, to: number, guess: number): number {
  if (isStamp(bytes, guess) && guess + STAMP_BYTES <= to) return guess
  const at = bytes.indexOf(STAMP_MARK, from)
  return at < 0 || at + STAMP_BYTES > to ? -1 : at
}

/** Compares enough bytes to tell a stamp from anything else in a message. */
const isStamp = (bytes: Buffer, at: number): boolean =>
  bytes[at] === 0x22 && bytes[at + 1] === 0x74 && bytes[at + 2] === 0x6f && bytes[at + 3] === 0x22 && bytes[at + 31] === 0x30

export const stampTime = (bytes: Buffer, at: number): number => parseDigits(bytes, at + TIME_AT, TIME_DIGITS)

export const stampNumber = (bytes: Buffer, at: number): number => parseDigits(bytes, at + NUMBER_AT, NUMBER_DIGITS)

function parseDigits(bytes: Buffer, from: number, count: number): number {
  let value = 0
  for (let at = from; at < from + count; at += 1) value = value * 10 + (bytes[at] ?? 0) - 0x30
  return value
}
