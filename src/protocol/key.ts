import type { Hex } from './fields.ts'

/** The name of an on-chain fact for ever. The block's hash is never part of it: it changes between states. */
export const formatKey = (block: number, tx: Hex, logIndex: number): string => `${block}-${tx}-${logIndex}`

/** The number of the block that a key is of. */
export const blockOf = (key: string): number => Number.parseInt(key, 10)

/** The transaction that a key is of. */
export const txOf = (key: string): Hex => key.split('-')[1] as Hex
