import type { Hex } from '../../src/protocol/fields.ts'
import { type Books, type Call, said } from './contract-state.ts'
import type { Meaning } from './token-event-logs.ts'

/** What a contract said, wherever it comes to stand; what it means, where that is more than a movement. */
export type Content = {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly means?: Meaning
}

/** Some of what a transaction says is known only where it comes to stand. */
export type Tx = { readonly hash: Hex; readonly logs: readonly (Content | Call)[] }

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
  /** What the contracts hold after it. */
  readonly after: Books
  readonly since: number
  until: number
}

/** A block while it is built: what is pre-confirmed, and since when each transaction is. */
export type Building = {
  readonly number: number
  readonly parentHash: Hex
  readonly timestamp: number
  /** What the contracts held when it began. */
  readonly before: Books
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

type Beginning = Pick<Building, 'number' | 'timestamp' | 'before'>

/** Lets transactions happen, and gives each log its place: indexes count over the whole block, whoever spoke. */
export function happen({ number, timestamp, before }: Beginning, txs: readonly Tx[]) {
  const logs: Placed[] = []
  let after = before
  for (const [txIndex, tx] of txs.entries()) {
    for (const one of tx.logs) {
      const { books, contents } = said(after, one, timestamp)
      after = books
      for (const content of contents) {
        const logIndex = logs.length
        const key = keyOf(number, tx.hash, logIndex)
        logs.push({ key, content, block: number, timestamp, tx: tx.hash, txIndex, logIndex })
      }
    }
  }
  return { logs, after }
}

export const place = (beginning: Beginning, txs: readonly Tx[]): readonly Placed[] => happen(beginning, txs).logs
