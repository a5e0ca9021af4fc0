import type { Hex } from '../../src/protocol/parts.ts'

/** What a contract said, wherever it comes to stand. */
export type Content = { readonly address: Hex; readonly topics: readonly Hex[]; readonly data: Hex }

export type Tx = { readonly hash: Hex; readonly logs: readonly Content[] }

/** A content with its place in a block. */
export type Placed = {
  readonly key: string
  readonly content: Content
  readonly block: number
  /** In seconds. */
  readonly timestamp: number
  readonly tx: Hex
  readonly txIndex: number
  readonly logIndex: number
}

/** A sealed block. It is canonical from `since` until `until` (both in ms since the beginning of the world). */
export type Block = {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestamp: number
  readonly txs: readonly Tx[]
  readonly logs: readonly Placed[]
  readonly since: number
  until: number
}

/** A block while it is built: what is pre-confirmed, and since when each transaction is. */
export type Building = {
  readonly number: number
  readonly parentHash: Hex
  readonly timestamp: number
  readonly txs: Tx[]
  readonly shownAt: number[]
  readonly since: number
  until: number
  /** From then on nothing of it is shown: a flashblock was lost on the way. */
  lostAt: number
  /** Its builder gave up; what it had shown never becomes a block as it stands. */
  abandoned: boolean
}

export const hex = (digits: number, value: number | bigint): Hex => `0x${value.toString(16).padStart(digits, '0')}`
const keyOf = (block: number, tx: Hex, logIndex: number): string => `${block}-${tx}-${logIndex}`

/** Gives each log its place: indexes count over the whole block, whoever spoke. */
export function place({ number, timestamp }: Pick<Block, 'number' | 'timestamp'>, txs: readonly Tx[]): Placed[] {
  const placed: Placed[] = []
  for (const [txIndex, tx] of txs.entries()) {
    for (const content of tx.logs) {
      const logIndex = placed.length
      const key = keyOf(number, tx.hash, logIndex)
      placed.push({ key, content, block: number, timestamp, tx: tx.hash, txIndex, logIndex })
    }
  }
  return placed
}
