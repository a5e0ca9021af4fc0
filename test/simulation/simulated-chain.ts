import { Subject } from 'rxjs'
import type { Hex } from '../../src/lib/hex.ts'
import { initialContracts } from './contract-state.ts'
import { NodeView } from './node-view.ts'
import {
  executeTransactions,
  hex,
  type PendingBlock,
  type PlacedLog,
  placeLogs,
  type SimulatedBlock,
  type SimulatedTx,
} from './simulated-block.ts'
import type { Settings } from './simulation-settings.ts'
import { NOON, type VirtualClock } from './virtual-clock.ts'

/** What the chain does, when it does it. */
export type ChainEvent =
  | { readonly type: 'shown'; readonly pendingBlock: PendingBlock; readonly logs: readonly PlacedLog[] }
  | { readonly type: 'sealed'; readonly block: SimulatedBlock }
  | { readonly type: 'reorganised'; readonly removed: readonly SimulatedBlock[]; readonly added: readonly SimulatedBlock[] }

/** The chain's heads at one moment. */
export type Watermarks = { readonly at: number; readonly number: number; readonly safe: number; readonly finalized: number }

export const SLOT_MS = 200
export const SLOTS_PER_BLOCK = 10
/** Blocks that exist before the simulation begins. */
const HISTORY_BLOCKS = 300
/** Safe and finalized heads move in steps, because batches settle several blocks at once. */
const STRIDE_BLOCKS = 6

/** The chain with its whole history: what was sealed when, and what was shown before. The sealed chain is the truth. */
export class SimulatedChain {
  readonly events = new Subject<ChainEvent>()
  readonly watermarks: Watermarks[] = []
  readonly pendingBlocks: PendingBlock[] = []
  /** Everything that was ever shown as pre-confirmed under a key, oldest first. */
  readonly announced = new Map<string, PlacedLog[]>()
  /** The same, by block and transaction. */
  readonly announcedByTransaction = new Map<string, PlacedLog[]>()
  /** Every block there ever was: by number (oldest first), and by hash. */
  readonly blocksByNumber = new Map<number, SimulatedBlock[]>()
  readonly blocksByHash = new Map<Hex, SimulatedBlock>()
  readonly #settings: Settings
  readonly #clock: VirtualClock

  constructor(settings: Settings, clock: VirtualClock) {
    this.#settings = settings
    this.#clock = clock
    const { firstHead } = settings
    for (let number = this.first; number <= firstHead; number += 1) {
      const timestamp = Math.floor((NOON - (firstHead - number) * this.blockMs) / 1_000)
      this.addBlock({ number, timestamp, txs: [], canonicalFrom: Number.NEGATIVE_INFINITY })
    }
    this.markHead(firstHead, Number.NEGATIVE_INFINITY)
  }

  get blockMs(): number {
    return this.#settings.mode === 'flash' ? SLOT_MS * SLOTS_PER_BLOCK : SLOT_MS
  }

  get head(): number {
    return this.#lastWatermarks.number
  }

  /** The head at a moment (ms since the simulation began). */
  headAt(ms: number): number {
    return this.watermarks.findLast(({ at }) => at <= ms)?.number ?? 0
  }

  get safe(): number {
    return this.#lastWatermarks.safe
  }

  get pendingBlock(): PendingBlock {
    const last = this.pendingBlocks.at(-1)
    if (!last) throw new Error('nothing is being built')
    return last
  }

  get #lastWatermarks(): Watermarks {
    const last = this.watermarks.at(-1)
    if (!last) throw new Error('a chain without blocks')
    return last
  }

  /** The canonical block of a number. */
  block(number: number): SimulatedBlock | undefined {
    return number > this.head ? undefined : this.blocksByNumber.get(number)?.at(-1)
  }

  /** Whether a reorganisation has replaced a block up to this number. A node that lags behind it shows other blocks from there on. */
  wasReplacedUpTo(number: number): boolean {
    const { elapsedMs } = this.#clock
    return [...this.blocksByNumber].some(
      ([other, blocks]) => other <= number && blocks.some(({ canonicalUntil }) => canonicalUntil <= elapsedMs),
    )
  }

  /** The chain as a node shows it that lags behind by this much. */
  viewBehind(behindMs = 0, sealedBehindMs = behindMs): NodeView {
    const { elapsedMs } = this.#clock
    return new NodeView(this, elapsedMs - behindMs, elapsedMs - sealedBehindMs)
  }

  addBlock({
    number,
    timestamp,
    txs,
    canonicalFrom,
  }: Pick<SimulatedBlock, 'number' | 'timestamp' | 'txs' | 'canonicalFrom'>): SimulatedBlock {
    const others = this.blocksByNumber.get(number) ?? []
    const parent = this.blocksByNumber.get(number - 1)?.at(-1)
    const block: SimulatedBlock = {
      number,
      hash: hex(64, (BigInt(number) << 32n) + 0xb10cn * 2n ** 128n + BigInt(others.length)),
      parentHash: parent?.hash ?? hex(64, 0),
      timestamp,
      txs,
      ...executeTransactions({ number, timestamp, contractsBefore: parent?.after ?? initialContracts }, txs),
      canonicalFrom,
      canonicalUntil: Number.POSITIVE_INFINITY,
    }
    this.blocksByNumber.set(number, [...others, block])
    this.blocksByHash.set(block.hash, block)
    return block
  }

  /** Moves the head. */
  markHead(number: number, at = this.#clock.elapsedMs): void {
    const last = this.watermarks.at(-1)
    const { safeLag, finalizedLag } = this.#settings
    const stride = (lag: number) => Math.floor((number - lag) / STRIDE_BLOCKS) * STRIDE_BLOCKS
    this.watermarks.push({
      at,
      number,
      safe: Math.max(last?.safe ?? 0, stride(safeLag)),
      finalized: Math.max(last?.finalized ?? 0, stride(safeLag + finalizedLag)),
    })
  }

  /** Begins the next block. `keptTxs` were shown before in the same places; if `dark`, nothing of it is shown. */
  beginBlock(keptTxs: readonly SimulatedTx[], dark: boolean): void {
    const parent = this.block(this.head)
    if (!parent) throw new Error('a head without a block')
    const { elapsedMs } = this.#clock
    const before = this.pendingBlocks.at(-1)
    if (before && before.endedAt > elapsedMs) before.endedAt = elapsedMs
    this.pendingBlocks.push({
      number: parent.number + 1,
      parentHash: parent.hash,
      timestamp: Math.max(parent.timestamp, Math.floor((NOON + elapsedMs + this.blockMs) / 1_000)),
      contractsBefore: parent.after,
      txs: [],
      shownAt: [],
      startedAt: elapsedMs,
      endedAt: Number.POSITIVE_INFINITY,
      hiddenFrom: dark ? elapsedMs : Number.POSITIVE_INFINITY,
      abandoned: false,
    })
    // They are shown again, because the new block may have another time.
    this.showTransactions(keptTxs)
  }

  /** Shows more transactions of the pending block. */
  showTransactions(txs: readonly SimulatedTx[]): readonly PlacedLog[] {
    const { pendingBlock } = this
    for (const tx of txs) {
      pendingBlock.txs.push(tx)
      pendingBlock.shownAt.push(this.#clock.elapsedMs)
    }
    const newHashes = new Set(txs.map(({ hash }) => hash))
    const logs = placeLogs(pendingBlock, pendingBlock.txs).filter(({ tx }) => newHashes.has(tx))
    for (const log of logs) {
      appendTo(this.announced, log.key, log)
      appendTo(this.announcedByTransaction, `${log.block} ${log.tx}`, log)
    }
    return logs
  }

  /** The builder gives up the pending block. */
  abandon(): PendingBlock {
    const { pendingBlock } = this
    pendingBlock.endedAt = this.#clock.elapsedMs
    pendingBlock.abandoned = true
    return pendingBlock
  }

  /** The oldest block that it has. */
  get first(): number {
    return Math.max(0, this.#settings.firstHead - HISTORY_BLOCKS)
  }

  /** Rolls back to a block. Returns the blocks that are no longer canonical, oldest first. */
  rollBackTo(to: number): readonly SimulatedBlock[] {
    const removed: SimulatedBlock[] = []
    for (let number = to + 1; number <= this.head; number += 1) {
      const block = this.block(number)
      if (!block) throw new Error(`no block ${number}`)
      block.canonicalUntil = this.#clock.elapsedMs
      removed.push(block)
    }
    if (removed.length > 0) this.markHead(to)
    return removed
  }
}

function appendTo(shown: Map<string, PlacedLog[]>, name: string, log: PlacedLog): void {
  const before = shown.get(name)
  if (before) before.push(log)
  else shown.set(name, [log])
}
