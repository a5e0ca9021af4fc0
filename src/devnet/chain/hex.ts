import { hash } from 'node:crypto'

/** Bytes as a node writes them: 0x and lower-case digits. */
export type HexString = `0x${string}`

export const ZERO_ADDRESS: HexString = `0x${'0'.repeat(40)}`
export const ZERO_WORD: HexString = `0x${'0'.repeat(64)}`

/** A number as a node writes it, without leading zeros. */
export const quantity = (amount: number | bigint): HexString => `0x${amount.toString(16)}`

/** A number or an address, padded to 32 bytes. */
export const toWord = (value: bigint | HexString): HexString =>
  `0x${(typeof value === 'bigint' ? value.toString(16) : value.slice(2)).padStart(64, '0')}`

/** Nodes write addresses and hashes in lower case. */
export const toLowerHex = (text: string): HexString => `0x${text.slice(2).toLowerCase()}`

/**
 * 32 bytes derived from some parts: block hashes, transaction hashes, roots, addresses of actors.
 * SHA-256 instead of keccak: clients see no difference, and the native hash builds hundreds of past blocks fast.
 */
export const digest = (...parts: readonly (string | number)[]): HexString => `0x${hash('sha256', parts.join('\n'))}`
