import { hash } from 'node:crypto'
import type { Hex } from '../../lib/hex.ts'

/**
 * Returns 32 bytes that depend on the parts. It uses SHA-256 instead of keccak: clients see no difference, and the native
 * hash builds hundreds of past blocks fast.
 */
export const digest = (...parts: readonly (string | number)[]): Hex => `0x${hash('sha256', parts.join('\n'))}`

/** Returns an address that depends on the parts. */
export const addressFrom = (...parts: readonly string[]): Hex => `0x${digest(...parts).slice(2, 42)}`
