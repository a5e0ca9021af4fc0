import type { Log } from '../chain/logs/log-schema.ts'
import type { OpenKeys, SealedBlock } from '../chain/sealed/block-logs.ts'
import { RECENT_BLOCKS_BOUND } from '../chain/sealed/recent-blocks.ts'
import type { ChainEvent } from '../chain/source/source.ts'
import type { Hex } from '../protocol/fields.ts'
import { isSameLog, logToJson } from './log-json.ts'
import { type SubscriberIndex, type Subscription, SubscriptionNotice } from './subscriber-index.ts'

/** What the logs that are remembered may hold; beyond it what is pre-confirmed is told when it is sealed. */
const LOGS_BOUND_BYTES = 32 * 2 ** 20
/** No block is pre-confirmed so far above the newest settled one. */
const AHEAD_BOUND_BLOCKS = 100_000
/** Doubts that are remembered by where they begin. */
const DOUBTS_BOUND = 64
/** What a log takes beside its data. */
const LOG_BYTES = 1_024

/** A log that was told, as which one of all that were told, and with which hash: null while it was pre-confirmed. */
type SentLog = { readonly log: Log; readonly index: number; readonly hash: Hex | null }

/** What was told of a block: to those who hear what is pre-confirmed, and to those who hear what is sealed. */
type SentBlock = {
  readonly pending: Map<string, SentLog>
  readonly sealed: Map<string, SentLog>
  /** The hash that it was sealed under last, and how often the chain had been doubted by then. */
  hash: Hex | null
  doubts: number
}

type Options = {
  readonly subscribers: SubscriberIndex
  /** Whose logs are told. */
  readonly isListed: (address: Hex) => boolean
}

/**
 * The logs as a node sends them, and as none does: each once, in the order in which they were heard, and once more with
 * `removed: true` when it turns out that one is not so.
 */
export class LogFeed implements OpenKeys {
  readonly sealedInPreviousRun = []
  readonly #options: Options
  readonly #blocks = new Map<number, SentBlock>()
  #bytes = 0
  /** How many were told. */
  #sentCount = 0
  /** From where on somebody said that what was sealed may be no more; the newest doubts, and how many there were. */
  readonly #doubtedFrom: number[] = []
  #doubtCount = 0
  /** Whether what is told now is caught up. */
  #isLate = false
  /** Up to here nothing can be pre-confirmed any more. */
  #newestSettled: number | null = null
  /** The first head that was heard of: what was sealed before it is nobody's news. */
  #firstHead: number | null = null
  #head: number | null = null

  constructor(options: Options) {
    this.#options = options
  }

  /** From where on somebody hears who begins to listen now. */
  get subscriptionStart(): Pick<Subscription, 'firstIndex' | 'head' | 'beforeReorg'> {
    return { firstIndex: this.#sentCount, head: this.#head, beforeReorg: null }
  }

  at(number: number) {
    return [...(this.#blocks.get(number)?.pending.values() ?? [])].map(({ log }) => ({
      key: log.key,
      address: log.address,
      tx: log.transactionHash,
    }))
  }

  publishedBlocksBetween(from: number, to: number): readonly number[] {
    const sent = [...this.#blocks].filter(([number, { pending }]) => number >= from && number <= to && pending.size > 0)
    return sent.map(([number]) => number).sort((a, b) => a - b)
  }

  receive(event: ChainEvent): void {
    switch (event.type) {
      case 'log':
        return this.#receivePreconfirmed(event.log)
      case 'head':
        if (event.sealed === null) return
        this.#firstHead ??= event.sealed
        this.#head = Math.max(event.sealed, this.#head ?? 0)
        return
      case 'cursor':
        this.#newestSettled = event.cursor.number
        return
      case 'doubted':
        this.#doubtCount += 1
        this.#doubtedFrom.push(event.from)
        if (this.#doubtedFrom.length > DOUBTS_BOUND) this.#doubtedFrom.shift()
        if (this.#head !== null) this.#head = Math.min(this.#head, event.from - 1)
        return this.#options.subscribers.rollBack(event.from, this.#sentCount)
      case 'sealed':
        this.#newestSettled = event.newest
        for (const block of event.blocks) this.#settle(block)
        return this.#evict()
      default:
    }
  }

  #receivePreconfirmed(log: Log): void {
    const { key, address, blockNumber } = log
    const ahead = blockNumber - (this.#newestSettled ?? blockNumber - 1)
    if (ahead <= 0 || ahead > AHEAD_BOUND_BLOCKS) return
    if (!this.#options.isListed(address) || this.#blocks.get(blockNumber)?.pending.has(key)) return
    if (this.#bytes >= LOGS_BOUND_BYTES) return
    this.#publish('pending', blockNumber, { log, index: this.#sentCount, hash: null })
  }

  #settle(block: SealedBlock): void {
    const { number, hash } = block
    this.#isLate = block.via === 'backfill'
    const queried = new Set(block.addresses)
    const listedLogs = block.logs.filter(({ address }) => this.#options.isListed(address))
    const settledLogs = new Map(block.logs.map((log) => [log.key, log]))
    const sentBlock = this.#blocks.get(number)
    if (sentBlock?.hash && sentBlock.hash !== hash) this.#rollBack(number)
    for (const sentLog of [...(sentBlock?.pending.values() ?? [])].filter(({ log }) => queried.has(log.address))) {
      const settledLog = settledLogs.get(sentLog.log.key)
      if (!settledLog || !isSameLog(settledLog, sentLog.log)) this.#remove('pending', number, sentLog)
    }
    for (const log of listedLogs) {
      for (const kind of ['pending', 'sealed'] as const) {
        if (!this.#blocks.get(number)?.[kind].has(log.key))
          this.#publish(kind, number, { log, index: this.#sentCount, hash })
      }
    }
    const settledBlock = this.#blocks.get(number)
    if (settledBlock) Object.assign(settledBlock, { hash, doubts: this.#doubtCount })
    this.#isLate = false
  }

  /**
   * The blocks from this one on are no more; what was told of them as sealed was not so. Those that were settled since the
   * chain was doubted stand: the newest are settled first, and what lies deeper beside them.
   */
  #rollBack(from: number): void {
    const later = [...this.#blocks]
      .filter(([number, { doubts }]) => number === from || (number > from && this.#isDoubted(number, doubts)))
      .sort(([a], [b]) => a - b)
    for (const [number, { sealed }] of later)
      for (const sentLog of sealed.values()) this.#remove('sealed', number, sentLog)
  }

  /** Whether a block was doubted since there were so many doubts. Of those that are forgotten, all reached it. */
  #isDoubted(number: number, sinceCount: number): boolean {
    const forgotten = this.#doubtCount - this.#doubtedFrom.length
    return sinceCount < forgotten || this.#doubtedFrom.slice(sinceCount - forgotten).some((from) => from <= number)
  }

  #publish(kind: 'pending' | 'sealed', number: number, sentLog: SentLog): void {
    const block = this.#blocks.get(number) ?? { pending: new Map(), sealed: new Map(), hash: null, doubts: 0 }
    this.#blocks.set(number, block)
    block[kind].set(sentLog.log.key, sentLog)
    this.#sentCount += 1
    this.#bytes += bytesOf(sentLog)
    this.#notify(kind, number, sentLog, false)
  }

  #remove(kind: 'pending' | 'sealed', number: number, sentLog: SentLog): void {
    this.#blocks.get(number)?.[kind].delete(sentLog.log.key)
    this.#bytes -= bytesOf(sentLog)
    this.#notify(kind, number, sentLog, true)
  }

  /** Says it to those who were there when it was told, and whose news it was. */
  #notify(kind: 'pending' | 'sealed', number: number, { log, index, hash }: SentLog, removed: boolean): void {
    const notice = new SubscriptionNotice(logToJson(log, { blockHash: hash, removed }), this.#isLate)
    this.#options.subscribers.publishLog(
      kind === 'pending' ? 'pendingLogs' : 'logs',
      log,
      notice,
      (subscription) =>
        subscription.firstIndex <= index &&
        (hash === null || number > (headAt(subscription, index) ?? this.#firstHead ?? -1)),
    )
  }

  /** Forgets what no reorganisation reaches, and what there is no room for; what is not settled yet is never forgotten. */
  #evict(): void {
    const newest = this.#newestSettled ?? 0
    for (const [number, block] of this.#blocks) {
      const isOverBudget = this.#bytes > LOGS_BOUND_BYTES / 2
      if (number > newest || (number >= newest - RECENT_BLOCKS_BOUND && !isOverBudget)) continue
      for (const sentLog of [...block.pending.values(), ...block.sealed.values()]) this.#bytes -= bytesOf(sentLog)
      this.#blocks.delete(number)
    }
  }
}

/** The head of a subscription as it was when something was told. */
const headAt = ({ head, beforeReorg }: Subscription, index: number): number | null =>
  beforeReorg !== null && index < beforeReorg.sentCount ? beforeReorg.head : head

const bytesOf = ({ log }: SentLog): number => LOG_BYTES + log.data.length
