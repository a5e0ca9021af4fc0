import { BoundedMap } from '../../bounded-map.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { Log } from '../logs/log-schema.ts'
import type { SealedBlock } from '../sealed/block-logs.ts'

/** After this many sealed logs in a row that were never pushed, the stream is unhealthy. */
const MISSED_LOGS_BOUND = 3
/** The logs of a single block may be lost together, so alone they count only after this. */
const SINGLE_BLOCK_GRACE_MS = 10_000
/** Blocks kept: more than a node pre-confirms at a time. */
const REMEMBERED_BLOCKS_BOUND = 256

/** Excused logs kept per block. */
const EXCUSED_KEYS_BOUND = 10_000

/** Whether a log of the block was pushed in time, which logs are excused, and how many counted as missed. */
type BlockEvidence = { wasPushed: boolean; readonly excusedKeys: Set<string>; countedLogs: number; hash: Hex | null }

/** Counts sealed logs that were never pushed: the only evidence that separates a dead stream from a quiet market. */
export class MissedLogCounter {
  readonly #blocks = new BoundedMap<number, BlockEvidence>(REMEMBERED_BLOCKS_BOUND)
  #isListening = false
  /** The block being built when the subscription began; null before the first head. */
  #partialBlock: number | null = null
  /** Whether that block was polled, so that its logs from before the subscription are excused. */
  #isPartialBlockRead = false
  #missedLogs = 0
  #missedBlocks = 0
  #missedSince = 0
  #lateLogs = 0

  /** Starts over for a new subscription: earlier pushes prove nothing about it. */
  start(): void {
    this.#isListening = true
    this.#isPartialBlockRead = false
    this.#partialBlock = null
    this.#reset()
  }

  /** The first head after the start shows which block was being built. */
  headReceived(head: number): void {
    this.#partialBlock ??= head + 1
  }

  /** A log was polled: it may be older than the subscription. */
  excuse({ blockNumber, key }: Log): void {
    const { excusedKeys } = this.#evidenceOf(blockNumber)
    if (excusedKeys.size < EXCUSED_KEYS_BOUND) excusedKeys.add(key)
  }

  /** All logs that were pre-confirmed before the subscription are excused now. */
  pendingPolled(): void {
    this.#isPartialBlockRead = true
  }

  stop(): void {
    this.#isListening = false
    this.#blocks.clear()
    this.#reset()
  }

  /** A log was pushed before its block was sealed. */
  logPushed(log: Log): void {
    this.#evidenceOf(log.blockNumber).wasPushed = true
    this.#reset()
  }

  /** A log was pushed long after its block was sealed. */
  lateLogPushed(): void {
    this.#lateLogs += 1
  }

  /** Counts the logs of a settled block if none of them was pushed. */
  blockSealed({ number, hash, logs, via }: SealedBlock, now: number): void {
    if (!this.#isListening || via === 'backfill' || number < this.#firstCountedBlock) return
    const block = this.#evidenceOf(number)
    const isResettled = block.hash !== null && block.hash !== hash
    const newLogs = logs.filter(({ key }) => !block.excusedKeys.has(key)).length - block.countedLogs
    block.hash = hash
    block.countedLogs = Math.max(block.countedLogs, block.countedLogs + newLogs)
    // A block that replaces another after a reorganisation is no evidence.
    if (isResettled || newLogs <= 0) return
    if (block.wasPushed) return this.#reset()
    if (this.#missedLogs === 0) this.#missedSince = now
    this.#missedLogs += newLogs
    this.#missedBlocks += 1
  }

  #evidenceOf(number: number): BlockEvidence {
    const existing = this.#blocks.get(number)
    if (existing) return existing
    const block = { wasPushed: false, excusedKeys: new Set<string>(), countedLogs: 0, hash: null }
    this.#blocks.set(number, block)
    return block
  }

  /** The first block that is evidence. */
  get #firstCountedBlock(): number {
    return this.#partialBlock === null ? Number.POSITIVE_INFINITY : this.#partialBlock + (this.#isPartialBlockRead ? 0 : 1)
  }

  /** The health of the stream by the evidence so far. */
  health(now: number): 'ok' | 'silent' | 'behind' {
    if (this.#missedLogs < MISSED_LOGS_BOUND) return 'ok'
    if (this.#missedBlocks < 2 && now - this.#missedSince < SINGLE_BLOCK_GRACE_MS) return 'ok'
    return this.#lateLogs > 0 ? 'behind' : 'silent'
  }

  #reset(): void {
    this.#missedLogs = 0
    this.#missedBlocks = 0
    this.#lateLogs = 0
  }
}
