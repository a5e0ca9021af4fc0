import { type Hex, quantity, ZERO_WORD } from '../../../lib/hex.ts'
import { nextTurn, runAtOnce, runForTurn, type Steps } from '../../../lib/turns.ts'
import { FAR_AHEAD_BLOCKS, RECENT_BLOCKS_BOUND } from '../../chain/blocks/block-bounds.ts'
import type { SealedBlock } from '../../chain/blocks/sealed-block.ts'
import { matchesAny } from '../../chain/logs/log-filter.ts'
import { hasContent, type Log } from '../../chain/logs/log-parser.ts'
import type { ChainEvent } from '../../chain/source/source.ts'
import type { Subscription, SubscriptionGroups } from './subscription-groups.ts'
import { SubscriptionNotice } from './subscription-notice.ts'

/** Limit of the memory for sent logs. Beyond it, a pre-confirmed log is sent only when it is sealed. */
const LOGS_BOUND_BYTES = 32 * 2 ** 20
/** Number of newest reorgs to remember. */
const DOUBTS_BOUND = 64
/** Limit of events that wait while a large one is sent over several turns. Beyond it, all are sent at once. */
const QUEUE_BOUND = 1_000
/** Memory of a sent log in addition to its data. */
const LOG_BYTES = 1_024

/** A sent log, its index among all sent logs, and its block hash: null while pre-confirmed. */
type SentLog = { readonly log: Log; readonly index: number; readonly hash: Hex | null }

/** The sent logs of a block: to subscribers of pendingLogs, and to subscribers of logs. */
type SentBlock = {
  readonly pending: Map<string, SentLog>
  readonly sealed: Map<string, SentLog>
  /** Hash with which the block was last settled; null before. `doubts` is the number of reorgs until then. */
  hash: Hex | null
  doubts: number
}

type Options = { readonly subscribers: SubscriptionGroups; readonly isListed: (address: Hex) => boolean }

/**
 * Sends each log once, in order of arrival, and once more with `removed: true` if it proves wrong. Nodes themselves repeat
 * logs and miss removals.
 */
export class LogNotifier {
  readonly #options: Options
  readonly #blocks = new Map<number, SentBlock>()
  readonly #queue: ChainEvent[] = []
  /** The steps that handle the queued events; null if none is queued. */
  #steps: Steps<void> | null = null
  #bytes = 0
  #sentCount = 0
  /** The first replaced block of each remembered reorg. `#doubtCount` is the number of all reorgs. */
  readonly #doubtedFrom: number[] = []
  #doubtCount = 0
  /** The value of `#doubtCount` when a block was last settled. */
  #doubtsAtSettling = 0
  /** Whether the logs that are being sent were read by backfill. */
  #isLate = false
  /** Blocks up to this one are settled, so none of their logs can be pre-confirmed. */
  #newestSettled: number | null = null
  /** The first received head. Logs that were sealed before it are not new to any subscriber. */
  #firstHead: number | null = null
  #head: number | null = null

  constructor(options: Options) {
    this.#options = options
  }

  get subscriptionStart(): Pick<Subscription, 'firstIndex' | 'head' | 'formerHeads'> {
    return { firstIndex: this.#sentCount, head: this.#head, formerHeads: [] }
  }

  /** Handles events in order. A large one takes several turns of the event loop, so that it delays nothing else. */
  receive(event: ChainEvent): void {
    this.#queue.push(event)
    if (this.#steps === null) {
      this.#steps = this.#handleQueue()
      this.#runTurn()
    } else if (this.#queue.length > QUEUE_BOUND) {
      runAtOnce(this.#steps)
      this.#steps = null
    }
  }

  #runTurn(): void {
    if (this.#steps === null) return
    if (runForTurn(this.#steps)) this.#steps = null
    else void nextTurn().then(() => this.#runTurn())
  }

  *#handleQueue(): Steps<void> {
    for (let event = this.#queue.shift(); event; event = this.#queue.shift()) yield* this.#handle(event)
  }

  *#handle(event: ChainEvent): Steps<void> {
    switch (event.type) {
      case 'logs':
        for (const log of event.logs) yield* this.#receivePreconfirmed(log)
        return
      case 'head':
        if (event.sealed === null) return
        this.#firstHead ??= event.sealed
        this.#head = Math.max(event.sealed, this.#head ?? 0)
        return
      case 'cursor':
        this.#newestSettled = event.cursor.number
        return
      case 'reorg':
        // After a wrong suspicion no block is settled again, so it must not remove logs.
        if (!event.isSuspected) this.#addDoubt(event.from)
        if (this.#head !== null) this.#head = Math.min(this.#head, event.from - 1)
        return this.#options.subscribers.rollBack(event.from, this.#sentCount, this.#firstHead)
      case 'sealed':
        this.#newestSettled = event.newest
        for (const block of event.blocks) yield* this.#settle(block)
        this.#doubtsAtSettling = this.#doubtCount
        return this.#evict()
      default:
    }
  }

  *#receivePreconfirmed(log: Log): Steps<void> {
    const { key, address, blockNumber } = log
    const ahead = blockNumber - (this.#newestSettled ?? blockNumber - 1)
    if (ahead <= 0 || ahead > FAR_AHEAD_BLOCKS) return
    if (!this.#options.isListed(address) || this.#blocks.get(blockNumber)?.pending.has(key)) return
    if (this.#bytes >= LOGS_BOUND_BYTES) return
    yield* this.#publish('pending', blockNumber, { log, index: this.#sentCount, hash: null })
  }

  *#settle(block: SealedBlock): Steps<void> {
    const { number, hash } = block
    this.#isLate = block.via === 'backfill'
    const sentBlock = this.#blocks.get(number)
    if (sentBlock?.hash && sentBlock.hash !== hash) yield* this.#rollBack(number)
    if (sentBlock) yield* this.#removeMissing(block, sentBlock)
    for (const log of block.logs) {
      if (!this.#options.isListed(log.address)) continue
      const sent = this.#openBlock(number)
      if (!sent.pending.has(log.key)) yield* this.#publish('pending', number, { log, index: this.#sentCount, hash })
      if (!sent.sealed.has(log.key)) yield* this.#publish('sealed', number, { log, index: this.#sentCount, hash })
    }
    // An empty block too: another one in its place shows that the logs of later blocks are replaced.
    Object.assign(this.#openBlock(number), { hash, doubts: this.#doubtCount })
    this.#isLate = false
  }

  /** Removes the pre-confirmed logs that the settled block does not contain, or contains with other content. */
  *#removeMissing({ number, logs, filters }: SealedBlock, { pending }: SentBlock): Steps<void> {
    const settled = new Set<SentLog>()
    for (const log of logs) {
      const sentLog = pending.get(log.key)
      if (sentLog && hasContent(log, sentLog.log)) settled.add(sentLog)
    }
    if (settled.size === pending.size) return
    for (const sentLog of pending.values())
      if (!settled.has(sentLog) && matchesAny(filters, sentLog.log)) yield* this.#remove('pending', number, sentLog)
  }

  /** Removes the logs sent as sealed in this and later blocks. Blocks that were settled again after the reorg stay. */
  *#rollBack(from: number): Steps<void> {
    const later = [...this.#blocks]
      .filter(([number, { doubts }]) => number === from || (number > from && this.#isDoubted(number, doubts)))
      .sort(([a], [b]) => a - b)
    for (const [number, { sealed }] of later) for (const sentLog of sealed.values()) yield* this.#remove('sealed', number, sentLog)
  }

  /** Remembers a reorg. Several without a settled block between them count as one. */
  #addDoubt(from: number): void {
    if (this.#doubtCount > this.#doubtsAtSettling) {
      this.#doubtedFrom.push(Math.min(from, this.#doubtedFrom.pop() ?? from))
      return
    }
    this.#doubtCount += 1
    this.#doubtedFrom.push(from)
    if (this.#doubtedFrom.length > DOUBTS_BOUND) this.#doubtedFrom.shift()
  }

  /** Whether a reorg after the first `sinceCount` ones replaced a block. Forgotten reorgs count as if they did. */
  #isDoubted(number: number, sinceCount: number): boolean {
    const forgotten = this.#doubtCount - this.#doubtedFrom.length
    return sinceCount < forgotten || this.#doubtedFrom.slice(sinceCount - forgotten).some((from) => from <= number)
  }

  #publish(kind: 'pending' | 'sealed', number: number, sentLog: SentLog): Steps<void> {
    this.#openBlock(number)[kind].set(sentLog.log.key, sentLog)
    this.#sentCount += 1
    this.#bytes += bytesOf(sentLog)
    return this.#notify(kind, number, sentLog, false)
  }

  #openBlock(number: number): SentBlock {
    let block = this.#blocks.get(number)
    if (!block) {
      block = { pending: new Map(), sealed: new Map(), hash: null, doubts: 0 }
      this.#blocks.set(number, block)
    }
    return block
  }

  #remove(kind: 'pending' | 'sealed', number: number, sentLog: SentLog): Steps<void> {
    this.#blocks.get(number)?.[kind].delete(sentLog.log.key)
    this.#bytes -= bytesOf(sentLog)
    return this.#notify(kind, number, sentLog, true)
  }

  /** Notifies the subscriptions that were open when the log was sent and whose range includes its block. */
  #notify(kind: 'pending' | 'sealed', number: number, { log, index, hash }: SentLog, removed: boolean): Steps<void> {
    return this.#options.subscribers.publishLog(
      kind === 'pending' ? 'pendingLogs' : 'logs',
      log,
      () => new SubscriptionNotice(logToJson(log, { blockHash: hash, removed }), this.#isLate),
      (subscription) =>
        subscription.firstIndex <= index && (hash === null || number > (headAt(subscription, index) ?? this.#firstHead ?? -1)),
    )
  }

  /** Forgets settled blocks that no reorg reaches, and more while over half of the memory is used. Unsettled blocks stay. */
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

const headAt = ({ head, formerHeads }: Subscription, index: number): number | null =>
  formerHeads.find(({ sentCount }) => index < sentCount)?.head ?? head

const bytesOf = ({ log }: SentLog): number => LOG_BYTES + log.data.length

/** Returns the log in a node's format. `blockHash` is null while the log is pre-confirmed, even if the upstream gave one. */
function logToJson(log: Log, { blockHash, removed }: { blockHash: Hex | null; removed: boolean }): string {
  const { address, topics, data, blockNumber, blockTimestamp, transactionHash, transactionIndex, logIndex } = log
  return JSON.stringify({
    ...{ address, topics, data },
    blockHash: blockHash ?? ZERO_WORD,
    blockNumber: quantity(blockNumber),
    ...(blockTimestamp !== null && { blockTimestamp: quantity(blockTimestamp) }),
    transactionHash,
    transactionIndex: quantity(transactionIndex),
    logIndex: quantity(logIndex),
    removed,
    ...log.more,
  })
}
