import { hash } from 'node:crypto'

/** Bytes as the node writes them: 0x and lower-case digits. */
export type HexString = `0x${string}`

export const ZERO_ADDRESS: HexString = `0x${'0'.repeat(40)}`
export const ZERO_WORD: HexString = `0x${'0'.repeat(64)}`

/** A number as a node writes it: no leading zeros. */
export const quantity = (amount: number | bigint): HexString => `0x${amount.toString(16)}`

/** A number or an address, padded to 32 bytes. */
export const toWord = (value: bigint | HexString): HexString =>
  `0x${(typeof value === 'bigint' ? value.toString(16) : value.slice(2)).padStart(64, '0')}`

/** Lower case, as nodes write addresses and hashes, whatever case they were given in. */
export const toLowerHex = (text: string): HexString => `0x${text.slice(2).toLowerCase()}`

/**
 * 32 bytes that stand for some parts: block hashes, transaction hashes, roots, addresses of actors.
 * SHA-256 and not keccak: nobody can tell from outside, and the native one lets hundreds of past blocks be built at start.
 */
export const digest = (...parts: readonly (string | number)[]): HexString => `0x${hash('sha256', parts.join('\n'))}`
