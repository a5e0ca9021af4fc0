import { type DecodedLog, decodeLogs } from '../chain/logs/fold-logs.ts'
import type { Log } from '../chain/logs/log-schema.ts'
import type { IngestContext } from './context.ts'
import { enrich, type PublishContext } from './enrich.ts'
import { contentOf, detailOf, factLocation } from './fact.ts'
import type { PublishedFact } from './ledger.ts'
import { PendingLogs, type ReceivedLog } from './pending-logs.ts'

/** How many blocks before a pre-confirmed one may be unsettled: sealed, but not read yet. */
const UNSETTLED_BLOCKS_BOUND = 2

/** Publishes pre-confirmed logs at once, folded with the logs received before of the same transaction. */
export class PreconfirmedHandler {
  readonly #context: IngestContext
  readonly #pendingLogs = new PendingLogs()

  constructor(context: IngestContext) {
    this.#context = context
  }

  forgetSettled(newest: number): void {
    this.#pendingLogs.forgetSettled(newest)
  }

  /** Takes logs of one transaction. Returns whether it published a new key. */
  publish(logs: readonly ReceivedLog[]): boolean {
    const { tokenState } = this.#context
    for (const { log } of logs) this.#applyRound(log)
    const newLogs = logs.filter((received) => !tokenState.isFeedAddress(received.log.address) && this.#isNewLog(received))
    const [first] = newLogs
    if (!first) return false
    for (const { log } of newLogs) this.#context.observeBlockTime(blockTimeOf(log), UNSETTLED_BLOCKS_BOUND)
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
      this.#context.observeBlockTime(blockTimeOf(log), UNSETTLED_BLOCKS_BOUND)
      if (isChanged) this.#context.correctMultipliers(log.address, () => true)
      tokenState.advancePosition({ block: log.blockNumber, logIndex: log.logIndex })
    }
    return hasPublished
  }

  /** Applies a feed round. A settled block has applied its own rounds already, and no others count. */
  #applyRound(log: Log): void {
    const { settled } = this.#context.ledger
    if (settled === null || log.blockNumber > settled) this.#context.tokenState.applyRoundLog(log)
  }

  /** Whether a log is of a listed token and brings something new. */
  #isNewLog({ log, via }: ReceivedLog): boolean {
    const { count, ledger } = this.#context
    const token = this.#context.findToken(log.address)
    if (!token || token.state === 'delisted') {
      count.unlisted()
      return false
    }
    const before = this.#pendingLogs.ofTransaction(log).get(log.key)
    // A poll never changes a log that was received before: two nodes behind one URL would amend each other's logs forever.
    const isRepeat = before !== undefined && (via !== 'pendingLogs' || isSameLog(before.log, log))
    const published = ledger.find(log.blockNumber, log.key)
    const isOpen = published ? published.state === 'open' : before !== undefined || ledger.canPublish(log.blockNumber, log.key)
    if (!isRepeat && isOpen) return true
    count.repeated()
    return false
  }

  /**
   * Whether a decoded log waits for more logs or for its block to be settled: an announcement without its end, or a part
   * of a fact that the previous run published.
   */
  #mustWait({ log, decoded, isClosed }: DecodedLog, transaction: ReadonlyMap<string, unknown>): boolean {
    if (decoded.event === 'Announcement') return !isClosed
    const isPart = decoded.event === 'Memo' || decoded.event === 'Seized' || decoded.event === 'EndAnnouncement'
    return isPart && this.#context.ledger.hasOtherKeys(log.transactionHash, transaction)
  }

  /** `isKnownLog`: only other logs of its transaction are new. Returns whether the key is new. */
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
      const published: PublishedFact = { ...factLocation(draft), symbol, type, content, detail, state: 'open', seq: outbox.nextSeq }
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

const isSameLog = (a: Log, b: Log): boolean => a.address === b.address && a.data === b.data && a.topics.join() === b.topics.join()
