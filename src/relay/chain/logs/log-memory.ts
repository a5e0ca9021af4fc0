import { getOrAdd } from '../../../lib/bounded-map.ts'
import type { Hex } from '../../../lib/hex.ts'
import type { Ingest } from '../../../protocol/fields.ts'
import { type DecodedEvent, decodeLog } from './event-decoder.ts'
import { type DecodedLog, foldAlone, foldLogs, isFarRelated, isRelated } from './fold-logs.ts'
import { hasContent, type Log } from './log-parser.ts'

export type ReceivedLogs = { readonly logs: readonly Log[]; readonly via: Ingest['source']; readonly receivedAt: number }

/** A pre-confirmed log that is new, or whose meaning another log of its transaction changed. */
export type PendingLog = {
  readonly decodedLog: DecodedLog
  readonly via: Ingest['source']
  readonly receivedAt: number
  readonly isKnown: boolean
  readonly transaction: readonly { readonly log: Log }[]
}

/** Result of folding a batch of logs. `repeated` is the number of received logs that changed nothing. */
type FoldedLogs = { readonly pendingLogs: readonly PendingLog[]; readonly repeated: number }

type SealedLogs = { readonly number: number; readonly hash: Hex; readonly timestamp: number | null; readonly logs: readonly Log[] }
/** The decoded logs of a sealed block, and the logs that are folded into one of them, both in log order. */
export type FoldedBlock = { readonly decodedLogs: readonly DecodedLog[]; readonly parts: readonly Log[] }

/** A received log of an unsettled block. `folded` is null while the log is folded into another one. */
type KnownLog = {
  readonly log: Log
  readonly decoded: DecodedEvent
  readonly via: Ingest['source']
  readonly receivedAt: number
  isNew: boolean
  folded: DecodedLog | null
}

/** For each transaction that a batch changes, the index of the first log that changed. */
type ChangedFrom = Map<KnownLog[], number>

/** Limit of remembered logs. Beyond it, the oldest block is forgotten, and its logs are decoded again when it is settled. */
const LOGS_BOUND = 100_000

/** Decodes each log once, and folds it with the other known logs of its transaction, until the block is settled. */
export class LogMemory {
  readonly #blocks = new Map<number, Map<string, KnownLog[]>>()
  /** Transactions with a log that may change a distant one. Only these are folded again from their first log on. */
  readonly #farRelated = new WeakSet<readonly KnownLog[]>()
  #size = 0
  /** Logs of blocks up to this one are ignored. */
  #settled = Number.NEGATIVE_INFINITY

  fold(batch: readonly ReceivedLogs[]): FoldedLogs {
    const changed: ChangedFrom = new Map()
    let repeated = 0
    for (const { logs, via, receivedAt } of batch) {
      for (const log of logs) {
        if (!this.#add({ log, via, receivedAt }, changed)) repeated += 1
      }
    }
    const pendingLogs: PendingLog[] = []
    for (const [transaction, from] of changed) {
      foldTransaction(transaction, this.#farRelated.has(transaction) ? 0 : firstAffected(transaction, from), pendingLogs)
    }
    return { pendingLogs, repeated }
  }

  foldBlock({ number, hash, timestamp, logs }: SealedLogs): FoldedBlock {
    const known = this.#blocks.get(number)
    const decoded = logs
      .toSorted((a, b) => a.logIndex - b.logIndex)
      .filter((log, index, sorted) => log.logIndex !== sorted[index + 1]?.logIndex || log.key !== sorted[index + 1]?.key)
      .map((log) => ({
        log: log.blockHash === hash && log.blockTimestamp !== null ? log : withBlock(log, hash, timestamp),
        decoded: findSameLog(known?.get(log.transactionHash), log)?.decoded ?? decodeLog(log),
      }))
    const folded = foldLogs(decoded)
    return {
      decodedLogs: folded.filter((decodedLog) => decodedLog !== null),
      parts: decoded.flatMap(({ log }, index) => (folded[index] ? [] : [log])),
    }
  }

  find(block: number, transaction: string, logIndex: number): Log | undefined {
    const known = this.#blocks.get(block)?.get(transaction)
    const log = known?.[lastIndexUpTo(known, logIndex)]?.log
    return log?.logIndex === logIndex ? log : undefined
  }

  forgetSettled(settled: number): void {
    this.#settled = Math.max(settled, this.#settled)
    for (const block of this.#blocks.keys()) if (block <= settled) this.#forgetBlock(block)
  }

  /** Called after a reorg that may have replaced this block and all above it. Their logs are accepted again. */
  reopenFrom(block: number): void {
    this.#settled = Math.min(this.#settled, block - 1)
  }

  /** Returns whether the log is new, or changes a known log. */
  #add(received: Pick<KnownLog, 'log' | 'via' | 'receivedAt'>, changed: ChangedFrom): boolean {
    const { log, via } = received
    if (log.blockNumber <= this.#settled) return false
    const block = getOrAdd(this.#blocks, log.blockNumber, () => new Map<string, KnownLog[]>())
    const transaction = block.get(log.transactionHash)
    if (!transaction) {
      // An array literal reserves memory for its one element. An empty array that grows reserves memory for 17.
      const first = [knownLogOf(received, true)]
      block.set(log.transactionHash, first)
      this.#noteChange(first, 0, changed)
      this.#count()
      return true
    }
    const index = lastIndexUpTo(transaction, log.logIndex)
    const known = transaction[index]
    const isNew = known?.log.logIndex !== log.logIndex
    // A polled log never replaces a known one: two nodes behind one URL that disagree would cause a change at each poll.
    if (!isNew && (via !== 'pendingLogs' || hasContent(known.log, log))) return false
    const added = knownLogOf(received, isNew)
    const at = isNew ? index + 1 : index
    if (at === transaction.length) transaction.push(added)
    else transaction.splice(at, isNew ? 0 : 1, added)
    this.#noteChange(transaction, at, changed)
    if (isNew) this.#count()
    return true
  }

  #noteChange(transaction: KnownLog[], at: number, changed: ChangedFrom): void {
    const { decoded } = transaction[at] ?? {}
    if (decoded && isFarRelated(decoded)) this.#farRelated.add(transaction)
    changed.set(transaction, Math.min(at, changed.get(transaction) ?? at))
  }

  #count(): void {
    this.#size += 1
    if (this.#size <= LOGS_BOUND) return
    const [oldest] = this.#blocks.keys()
    if (oldest !== undefined) this.#forgetBlock(oldest)
  }

  #forgetBlock(block: number): void {
    for (const transaction of this.#blocks.get(block)?.values() ?? []) this.#size -= transaction.length
    this.#blocks.delete(block)
  }
}

function knownLogOf({ log, via, receivedAt }: Pick<KnownLog, 'log' | 'via' | 'receivedAt'>, isNew: boolean): KnownLog {
  return { log, decoded: decodeLog(log), via, receivedAt, isNew, folded: null }
}

/** Returns the index of the first affected log: a Transfer just before the change may gain or lose its Memo. */
const firstAffected = (transaction: readonly KnownLog[], changedFrom: number): number =>
  transaction[changedFrom - 1]?.decoded.event === 'Transfer' ? changedFrom - 1 : changedFrom

/** Folds a transaction again from this log, and adds the logs with a new meaning. */
function foldTransaction(transaction: readonly KnownLog[], from: number, pendingLogs: PendingLog[]): void {
  const affected = from === 0 ? transaction : transaction.slice(from)
  const folded = affected.some(({ decoded }) => isRelated(decoded)) ? foldLogs(affected) : null
  for (const [index, known] of affected.entries()) {
    const before = known.folded
    known.folded = folded ? (folded[index] ?? null) : foldAlone(known)
    if (known.folded && !isSameFold(before, known.folded)) {
      const { folded: decodedLog, via, receivedAt, isNew } = known
      pendingLogs.push({ decodedLog, via, receivedAt, isKnown: !isNew, transaction })
    }
    known.isNew = false
  }
}

function withBlock(log: Log, blockHash: Hex, timestamp: number | null): Log {
  return { ...log, blockHash, blockTimestamp: log.blockTimestamp ?? timestamp }
}

/** Returns the place of the last log with at most this log index, by binary search; -1 if there is none. */
function lastIndexUpTo(transaction: readonly KnownLog[], logIndex: number): number {
  let from = 0
  let to = transaction.length
  while (from < to) {
    const middle = (from + to) >> 1
    if ((transaction[middle]?.log.logIndex ?? 0) <= logIndex) from = middle + 1
    else to = middle
  }
  return from - 1
}

function findSameLog(transaction: readonly KnownLog[] | undefined, log: Log): KnownLog | undefined {
  const known = transaction?.[lastIndexUpTo(transaction, log.logIndex)]
  return known?.log.key === log.key && hasContent(known.log, log) ? known : undefined
}

const isSameFold = (a: DecodedLog | null, b: DecodedLog): boolean =>
  a === b ||
  (a !== null &&
    a.memo === b.memo &&
    a.isSeized === b.isSeized &&
    a.isClosed === b.isClosed &&
    a.enclosedKeys.join() === b.enclosedKeys.join())
