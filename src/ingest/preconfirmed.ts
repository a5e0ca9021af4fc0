import { type DecodedLog, decodeLogs } from '../chain/logs/fold-transaction.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { IngestContext } from './context.ts'
import { enrich, type PublishContext } from './enrich.ts'
import { contentOf, detailOf, factLocation } from './fact.ts'
import type { PublishedFact } from './ledger.ts'
import { PendingLogs, type ReceivedLog } from './pending-logs.ts'

/** The blocks before were often sealed a moment ago and are just being settled: what they hold was pre-confirmed, too. */
const LIVE_BLOCKS = 2

/** Tells what is pre-confirmed: at once, with what was heard of its transaction before, and owed an end. */
export class PreconfirmedHandler {
  readonly #context: IngestContext
  readonly #pendingLogs = new PendingLogs()

  constructor(context: IngestContext) {
    this.#context = context
  }

  /** What is settled is pre-confirmed no more. */
  forgetSettled(newest: number): void {
    this.#pendingLogs.forgetSettled(newest)
  }

  /** Logs of one transaction. Whether something was told that had not been. */
  publish(logs: readonly ReceivedLog[]): boolean {
    const { tokenState } = this.#context
    for (const { log } of logs) this.#applyRound(log)
    const newLogs = logs.filter(
      (received) => !tokenState.isFeedAddress(received.log.address) && this.#isNewLog(received),
    )
    const [first] = newLogs
    if (!first) return false
    for (const { log } of newLogs) this.#context.observeBlockTime(blockTimeOf(log), LIVE_BLOCKS)
    const knownKeys = new Set(this.#pendingLogs.ofTransaction(first.log).keys())
    for (const received of newLogs) this.#pendingLogs.add(received)
    const transaction = this.#pendingLogs.ofTransaction(first.log)
    const { decodedLogs } = decodeLogs([...transaction.values()].map(({ log }) => log))
    let hasPublished = false
    for (const decodedLog of decodedLogs) {
      if (this.#mustWait(decodedLog, transaction)) continue
      const { log, via, receivedAt } = transaction.get(decodedLog.log.key) ?? first
      const isChanged = tokenState.applyLog(decodedLog)
      const publishContext = this.#context.publishContext({ via, sealed: false, late: false, receivedAt })
      if (this.#publish(decodedLog, publishContext, knownKeys.has(log.key))) hasPublished = true
      this.#context.observeBlockTime(blockTimeOf(log), LIVE_BLOCKS)
      if (isChanged) this.#context.correctMultipliers(log.address, () => true)
      tokenState.advancePosition({ block: log.blockNumber, logIndex: log.logIndex })
    }
    return hasPublished
  }

  /** A round of a feed: what is settled by now has been told with its block, or is not so. */
  #applyRound(log: Log): void {
    const { settled } = this.#context.ledger
    if (settled === null || log.blockNumber > settled) this.#context.tokenState.applyRoundLog(log)
  }

  /** Whether a log is of a listed token, and says something that was not heard before. */
  #isNewLog({ log, via }: ReceivedLog): boolean {
    const { count, ledger } = this.#context
    const token = this.#context.findToken(log.address)
    if (!token || token.state === 'delisted') {
      count.unlisted()
      return false
    }
    const before = this.#pendingLogs.ofTransaction(log).get(log.key)
    // Of polls the first wins: behind one name may stand several nodes, and each would take back what the other said.
    const isRepeat = before !== undefined && (via !== 'pendingLogs' || isSameLog(before.log, log))
    const published = ledger.find(log.blockNumber, log.key)
    const isOpen = published
      ? published.state === 'open'
      : before !== undefined || ledger.canPublish(log.blockNumber, log.key)
    if (!isRepeat && isOpen) return true
    count.repeated()
    return false
  }

  /**
   * Whether a saying is told only when more is heard, or when its block is settled: an announcement whose end did not come
   * yet, and what is part of something else that a former life told.
   */
  #mustWait({ log, decoded, isClosed }: DecodedLog, transaction: ReadonlyMap<string, unknown>): boolean {
    if (decoded.event === 'Announcement') return !isClosed
    const isPart = decoded.event === 'Memo' || decoded.event === 'Seized' || decoded.event === 'EndAnnouncement'
    return isPart && this.#context.ledger.hasOtherKeys(log.transactionHash, transaction)
  }

  /** `known`: the log itself was heard before, and what is new is what was heard with it. Whether its key is new. */
  #publish(decodedLog: DecodedLog, publishContext: PublishContext, isKnownLog: boolean): boolean {
    const { count, ledger, outbox } = this.#context
    const { log } = decodedLog
    const token = this.#context.findToken(log.address)
    if (!token) return false
    const draft = enrich(decodedLog, token, publishContext)
    const [content, detail] = [contentOf(draft), detailOf(draft)]
    const before = ledger.find(log.blockNumber, log.key)
    if (!before) {
      const { symbol, type } = draft
      const published: PublishedFact = {
        ...factLocation(draft),
        symbol,
        type,
        content,
        detail,
        state: 'open',
        seq: outbox.nextSeq,
      }
      outbox.publish(draft)
      ledger.add(log.blockNumber, published, this.#context.tapeEnd)
      this.#context.noteOpenKey(published, log.blockNumber)
      return true
    }
    const isSame = content === before.content && detail === before.detail
    const canAmend = isKnownLog || publishContext.via === 'pendingLogs'
    if (!isSame && canAmend && draft.address === before.address) {
      this.#context.amend(before, before.type, draft)
      this.#context.noteOpenKey(before, log.blockNumber)
    } else if (!(isSame && isKnownLog)) count.repeated()
    return false
  }
}

const blockTimeOf = ({ blockNumber, blockTimestamp }: Log) => ({ number: blockNumber, timestamp: blockTimestamp })

const isSameLog = (one: Log, other: Log): boolean =>
  one.address === other.address && one.data === other.data && one.topics.join() === other.topics.join()
