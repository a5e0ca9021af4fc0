import type { Hex } from '../lib/hex.ts'

/** The permanent name of an on-chain fact. It has no block hash, because that is null until the block is sealed. */
export const formatKey = (block: number, tx: Hex, logIndex: number): string => `${block}-${tx}-${logIndex}`

export const blockOf = (key: string): number => Number.parseInt(key, 10)

export const txOf = (key: string): Hex => key.split('-')[1] as Hex
