import { Subject } from 'rxjs'
import { anchorBlock, Chain } from '../../src/devnet/chain/chain.ts'
import type { DevnetBlock, DevnetLog, PendingDevnetBlock } from '../../src/devnet/chain/chain-types.ts'
import type { Hex } from '../../src/lib/hex.ts'
import { NodeView } from './node-view.ts'
import { type PlacedLog, placedLog } from './placed-logs.ts'
import { initialValues } from './simulated-tokens.ts'
import { hex, type SimulatedTx } from './simulated-transactions.ts'
import type { Settings } from './simulation-settings.ts'
import type { VirtualClock } from './virtual-clock.ts'

/** A sealed block, with its logs as laws read them. It is canonical from `canonicalFrom` until `canonicalUntil` (ms since the simulation began). */
export type SimulatedBlock = Omit<DevnetBlock, 'logs'> & {
  readonly onChain: DevnetBlock
  readonly logs: readonly PlacedLog[]
  readonly canonicalFrom: number
  canonicalUntil: number
}

/** A block while it is built: what it was, and since when. */
export type PendingBlock = {
  readonly number: number
  readonly timestamp: number
  readonly versions: { readonly at: number; readonly block: PendingDevnetBlock }[]
  readonly startedAt: number
  endedAt: number
  /** From then on nothing of the block is shown: a flashblock was lost. */
  hiddenFrom: number
  /** The builder gave up: what it had shown never becomes a block as it stands. */
  abandoned: boolean
}

/** What the chain does, when it does it. */
export type ChainEvent =
  | { readonly type: 'shown'; readonly pending: PendingDevnetBlock; readonly logs: readonly DevnetLog[] }
  | { readonly type: 'sealed'; readonly block: SimulatedBlock }
  | { readonly type: 'reorganised'; readonly removed: readonly SimulatedBlock[]; readonly added: readonly SimulatedBlock[] }

/** The chain and its heads from one moment on. */
export type Watermarks = {
  readonly at: number
  readonly chain: Chain
  readonly number: number
  readonly safe: number
  readonly finalized: number
}

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
  #now: Chain

  constructor(settings: Settings, clock: VirtualClock) {
    this.#settings = settings
    this.#clock = clock
    const { firstHead } = settings
    const timeOf = (number: number) => ({ timestamp: Math.floor((clock.startsAt - (firstHead - number) * this.blockMs) / 1_000) })
    const first = anchorBlock(this.first, timeOf(this.first), this.#newHash(this.first), initialValues)
    this.#now = Chain.after(first, timeOf(this.first))
    this.#record(first, Number.NEGATIVE_INFINITY)
    for (let number = this.first + 1; number <= firstHead; number += 1)
      this.addBlock({ ...timeOf(number), txs: [] }, Number.NEGATIVE_INFINITY)
    this.markHead(Number.NEGATIVE_INFINITY)
  }

  get blockMs(): number {
    return this.#settings.mode === 'flash' ? SLOT_MS * SLOTS_PER_BLOCK : SLOT_MS
  }

  /** The chain as it is now. */
  get now(): Chain {
    return this.#now
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

  /** Seals a block with these transactions on the newest one. */
  addBlock(
    { timestamp, txs }: { readonly timestamp: number; readonly txs: readonly SimulatedTx[] },
    canonicalFrom = this.#clock.elapsedMs,
  ): SimulatedBlock {
    const { head, pending } = this.#now
    const { number } = head
    const isAsShown = pending.timestamp === timestamp && isSameList(pending.transactions, txs)
    const built = isAsShown ? this.#now : this.#now.backTo(number, { timestamp }, runsOf(txs))
    this.#now = built.seal(this.#newHash(number + 1), { timestamp })
    return this.#record(this.#now.head, canonicalFrom)
  }

  #newHash(number: number): Hex {
    const others = this.blocksByNumber.get(number) ?? []
    return hex(64, (BigInt(number) << 32n) + 0xb10cn * 2n ** 128n + BigInt(others.length))
  }

  #record(onChain: DevnetBlock, canonicalFrom: number): SimulatedBlock {
    const logs = onChain.logs.map(placedLog)
    const block = { ...onChain, onChain, logs, canonicalFrom, canonicalUntil: Number.POSITIVE_INFINITY }
    this.blocksByNumber.set(block.number, [...(this.blocksByNumber.get(block.number) ?? []), block])
    this.blocksByHash.set(block.hash, block)
    return block
  }

  /** Shows the newest block as the head. */
  markHead(at = this.#clock.elapsedMs): void {
    const last = this.watermarks.at(-1)
    const { safeLag, finalizedLag } = this.#settings
    const { number } = this.#now.head
    const stride = (lag: number) => Math.floor((number - lag) / STRIDE_BLOCKS) * STRIDE_BLOCKS
    this.watermarks.push({
      at,
      chain: this.#now,
      number,
      safe: Math.max(last?.safe ?? 0, stride(safeLag)),
      finalized: Math.max(last?.finalized ?? 0, stride(safeLag + finalizedLag)),
    })
  }

  /** Begins the next block. `keptTxs` were shown before in the same places; if `dark`, nothing of it is shown. */
  beginBlock(keptTxs: readonly SimulatedTx[], dark: boolean): void {
    const { head } = this.#now
    const { elapsedMs } = this.#clock
    const before = this.pendingBlocks.at(-1)
    if (before && before.endedAt > elapsedMs) before.endedAt = elapsedMs
    const timestamp = Math.max(head.timestamp, Math.floor((this.#clock.now() + this.blockMs) / 1_000))
    this.pendingBlocks.push({
      number: head.number + 1,
      timestamp,
      versions: [],
      startedAt: elapsedMs,
      endedAt: Number.POSITIVE_INFINITY,
      hiddenFrom: dark ? elapsedMs : Number.POSITIVE_INFINITY,
      abandoned: false,
    })
    this.#now = this.#now.backTo(head.number, { timestamp })
    // They are shown again, because the new block may have another time.
    this.showTransactions(keptTxs)
  }

  /** Shows more transactions of the pending block. Returns their logs. */
  showTransactions(txs: readonly SimulatedTx[]): readonly DevnetLog[] {
    this.#now = this.#now.show(runsOf(txs))
    const { pending } = this.#now
    this.pendingBlock.versions.push({ at: this.#clock.elapsedMs, block: pending })
    const hashes = new Set(txs.map(({ hash }) => hash))
    const newLogs = pending.logs.filter(({ transactionHash }) => hashes.has(transactionHash))
    for (const log of newLogs.map(placedLog)) {
      appendTo(this.announced, log.key, log)
      appendTo(this.announcedByTransaction, `${log.block} ${log.tx}`, log)
    }
    return newLogs
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
    if (removed.length === 0) return removed
    this.#now = this.#now.backTo(to, { timestamp: this.#now.pending.timestamp })
    this.markHead()
    return removed
  }
}

const isSameList = <T>(one: readonly T[], other: readonly T[]): boolean =>
  one.length === other.length && one.every((item, nth) => item === other[nth])

const runsOf = (txs: readonly SimulatedTx[]) => txs.map(({ run }) => run)

function appendTo(shown: Map<string, PlacedLog[]>, name: string, log: PlacedLog): void {
  const before = shown.get(name)
  if (before) before.push(log)
  else shown.set(name, [log])
}
