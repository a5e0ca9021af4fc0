import { BoundedMap } from '../../bounded-map.ts'
import type { Hex } from '../../protocol/fields.ts'
import type { Log } from '../logs/log-schema.ts'
import type { SealedBlock } from '../sealed/block-logs.ts'

/** So many sealed logs in a row that were never announced speak against whoever should have announced them. */
const MISSED_LOGS_BOUND = 3
/** Logs of one block may be lost together; then they speak only after this. */
const SINGLE_BLOCK_GRACE_MS = 10_000
/** Blocks remembered: more than a node pre-confirms at a time. */
const REMEMBERED_BLOCKS_BOUND = 256

/** Logs of one block that were found by asking; beyond it they are not excused. */
const EXCUSED_KEYS_BOUND = 10_000

/** What is known of one block: whether anything of it was pushed in time, and how much of it has been held against that. */
type BlockEvidence = { wasPushed: boolean; readonly excusedKeys: Set<string>; countedLogs: number; hash: Hex | null }

/** Watches whether what is sealed had been pushed before: the only evidence that tells a dead stream from a quiet market. */
export class MissedLogCounter {
  readonly #blocks = new BoundedMap<number, BlockEvidence>(REMEMBERED_BLOCKS_BOUND)
  #isListening = false
  /** The block that was being built when the subscription began; null until a head is known. */
  #partialBlock: number | null = null
  /** Whether it is known what that block held by then: the keys that nobody can be blamed for. */
  #isPartialBlockRead = false
  #missedLogs = 0
  #missedBlocks = 0
  #missedSince = 0
  #lateLogs = 0

  /** Listens from now on, or to others: what was pushed before is no measure for them. */
  start(): void {
    this.#isListening = true
    this.#isPartialBlockRead = false
    this.#partialBlock = null
    this.#reset()
  }

  /** A head was told: the first one since it listens says which block may have been being built by then. */
  headReceived(head: number): void {
    this.#partialBlock ??= head + 1
  }

  /** A log was found by asking: it may have been there before the subscription was. */
  excuse({ blockNumber, key }: Log): void {
    const { excusedKeys } = this.#evidenceOf(blockNumber)
    if (excusedKeys.size < EXCUSED_KEYS_BOUND) excusedKeys.add(key)
  }

  /** Whatever had been pre-confirmed before the subscription is excused now. */
  pendingPolled(): void {
    this.#isPartialBlockRead = true
  }

  stop(): void {
    this.#isListening = false
    this.#blocks.clear()
    this.#reset()
  }

  /** A log was pushed while its block could still be open. */
  logPushed(log: Log): void {
    this.#evidenceOf(log.blockNumber).wasPushed = true
    this.#reset()
  }

  /** A log was pushed whose block had long been sealed. */
  lateLogPushed(): void {
    this.#lateLogs += 1
  }

  /** A block was settled: had any of its logs been announced? */
  blockSealed({ number, hash, logs, via }: SealedBlock, now: number): void {
    if (!this.#isListening || via === 'backfill' || number < this.#firstCountedBlock) return
    const block = this.#evidenceOf(number)
    const isResettled = block.hash !== null && block.hash !== hash
    const newLogs = logs.filter(({ key }) => !block.excusedKeys.has(key)).length - block.countedLogs
    block.hash = hash
    block.countedLogs = Math.max(block.countedLogs, block.countedLogs + newLogs)
    // What is settled anew after a reorganisation says nothing of who announced it.
    if (isResettled || newLogs <= 0) return
    if (block.wasPushed) return this.#reset()
    if (this.#missedLogs === 0) this.#missedSince = now
    this.#missedLogs += newLogs
    this.#missedBlocks += 1
  }

  #evidenceOf(number: number): BlockEvidence {
    const known = this.#blocks.get(number)
    if (known) return known
    const block = { wasPushed: false, excusedKeys: new Set<string>(), countedLogs: 0, hash: null }
    this.#blocks.set(number, block)
    return block
  }

  /** The first block that says something. */
  get #firstCountedBlock(): number {
    return this.#partialBlock === null
      ? Number.POSITIVE_INFINITY
      : this.#partialBlock + (this.#isPartialBlockRead ? 0 : 1)
  }

  /** What the evidence says of the stream now. */
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
