import type { Hex } from '../../protocol/fields.ts'
import type { Log } from '../logs/log-schema.ts'
import type { SealedBlock } from '../sealed/block-logs.ts'

/** So many sealed logs in a row that were never announced speak against whoever should have announced them. */
const UNANNOUNCED_BOUND = 3
/** Logs of one block may be lost together; then they speak only after this. */
const LONE_BLOCK_MS = 10_000
/** Blocks remembered: more than a node pre-confirms at a time. */
const BLOCKS_BOUND = 256

/** Logs of one block that were found by asking; beyond it they are not excused. */
const EXCUSED_BOUND = 10_000

/** What is known of one block: whether anything of it was pushed in time, and how much of it has been held against that. */
type Weighed = { announced: boolean; readonly excused: Set<string>; weighed: number; hash: Hex | null }

/** Watches whether what is sealed had been pushed before: the only evidence that tells a dead stream from a quiet market. */
export class Witness {
  readonly #blocks = new Map<number, Weighed>()
  #listening = false
  /** The block that was being built when the subscription began; null until a head is known. */
  #half: number | null = null
  /** Whether it is known what that block held by then: the keys that nobody can be blamed for. */
  #looked = false
  #missed = 0
  #missedBlocks = 0
  #missedSince = 0
  #tooLate = 0

  /** Listens from now on, or to others: what was pushed before is no measure for them. */
  begins(): void {
    this.#listening = true
    this.#looked = false
    this.#half = null
    this.#forgive()
  }

  /** A head was told: the first one since it listens says which block may have been being built by then. */
  headed(head: number): void {
    this.#half ??= head + 1
  }

  /** A log was found by asking: it may have been there before the subscription was. */
  excuse({ blockNumber, key }: Log): void {
    const { excused } = this.#block(blockNumber)
    if (excused.size < EXCUSED_BOUND) excused.add(key)
  }

  /** Whatever had been pre-confirmed before the subscription is excused now. */
  looked(): void {
    this.#looked = true
  }

  ends(): void {
    this.#listening = false
    this.#blocks.clear()
    this.#forgive()
  }

  /** A log was pushed while its block could still be open. */
  announced(log: Log): void {
    this.#block(log.blockNumber).announced = true
    this.#forgive()
  }

  /** A log was pushed whose block had long been sealed. */
  tooLate(): void {
    this.#tooLate += 1
  }

  /** A block was settled: had any of its logs been announced? */
  sealed({ number, hash, logs, via }: SealedBlock, now: number): void {
    if (!this.#listening || via === 'backfill' || number < this.#first) return
    const block = this.#block(number)
    const anew = block.hash !== null && block.hash !== hash
    const fresh = logs.filter(({ key }) => !block.excused.has(key)).length - block.weighed
    block.hash = hash
    block.weighed = Math.max(block.weighed, block.weighed + fresh)
    // What is settled anew after a reorganisation says nothing of who announced it.
    if (anew || fresh <= 0) return
    if (block.announced) return this.#forgive()
    if (this.#missed === 0) this.#missedSince = now
    this.#missed += fresh
    this.#missedBlocks += 1
  }

  #block(number: number): Weighed {
    const known = this.#blocks.get(number)
    if (known) return known
    const block = { announced: false, excused: new Set<string>(), weighed: 0, hash: null }
    this.#blocks.set(number, block)
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= BLOCKS_BOUND) break
      this.#blocks.delete(oldest)
    }
    return block
  }

  /** The first block that says something. */
  get #first(): number {
    return this.#half === null ? Number.POSITIVE_INFINITY : this.#half + (this.#looked ? 0 : 1)
  }

  /** What the evidence says of the stream now. */
  says(now: number): 'ok' | 'silent' | 'behind' {
    if (this.#missed < UNANNOUNCED_BOUND) return 'ok'
    if (this.#missedBlocks < 2 && now - this.#missedSince < LONE_BLOCK_MS) return 'ok'
    return this.#tooLate > 0 ? 'behind' : 'silent'
  }

  #forgive(): void {
    this.#missed = 0
    this.#missedBlocks = 0
    this.#tooLate = 0
  }
}
