import { Subject } from 'rxjs'
import type { Hex } from '../../src/protocol/fields.ts'
import { firstBooks } from './contract-state.ts'
import { View } from './node-view.ts'
import { type Block, type Building, happen, hex, type Placed, place, type Tx } from './simulated-block.ts'
import type { Settings } from './simulation-settings.ts'
import { type Clock, NOON } from './virtual-clock.ts'

/** What the chain does, as it does it. */
export type Deed =
  | { readonly type: 'shown'; readonly building: Building; readonly logs: readonly Placed[] }
  | { readonly type: 'sealed'; readonly block: Block }
  | { readonly type: 'reorganised'; readonly removed: readonly Block[]; readonly added: readonly Block[] }

/** How far the chain was at a time. */
export type Mark = { readonly at: number; readonly number: number; readonly safe: number; readonly finalized: number }

export const SLOT_MS = 200
export const SLOTS_PER_BLOCK = 10
/** So many blocks stand before the world begins. */
const HISTORY_BLOCKS = 300
/** Watermarks move in strides, as batches do. */
const STRIDE_BLOCKS = 6

/** The chain with its whole history: what was sealed when, and what was shown before. The sealed chain is the truth. */
export class Chain {
  readonly deeds = new Subject<Deed>()
  readonly marks: Mark[] = []
  readonly buildings: Building[] = []
  /** Whatever was ever shown as pre-confirmed under a key, oldest first. */
  readonly announced = new Map<string, Placed[]>()
  /** The same by block and transaction. */
  readonly announcedIn = new Map<string, Placed[]>()
  /** Every block that ever was, by its number, oldest first, and by its hash. */
  readonly numbers = new Map<number, Block[]>()
  readonly hashes = new Map<Hex, Block>()
  readonly #settings: Settings
  readonly #clock: Clock

  constructor(settings: Settings, clock: Clock) {
    this.#settings = settings
    this.#clock = clock
    const { firstHead } = settings
    for (let number = Math.max(0, firstHead - HISTORY_BLOCKS); number <= firstHead; number += 1) {
      const timestamp = Math.floor((NOON - (firstHead - number) * this.blockMs) / 1_000)
      this.add({ number, timestamp, txs: [], since: Number.NEGATIVE_INFINITY })
    }
    this.mark(firstHead, Number.NEGATIVE_INFINITY)
  }

  get blockMs(): number {
    return this.#settings.mode === 'flash' ? SLOT_MS * SLOTS_PER_BLOCK : SLOT_MS
  }

  get head(): number {
    return this.#last.number
  }

  get safe(): number {
    return this.#last.safe
  }

  get building(): Building {
    const last = this.buildings.at(-1)
    if (!last) throw new Error('nothing is being built')
    return last
  }

  get #last(): Mark {
    const last = this.marks.at(-1)
    if (!last) throw new Error('a chain without blocks')
    return last
  }

  /** The block of a number on the chain as it is now. */
  block(number: number): Block | undefined {
    return number > this.head ? undefined : this.numbers.get(number)?.at(-1)
  }

  /** The chain as a node shows it that is so far behind. */
  view(behindMs = 0, canonBehindMs = behindMs): View {
    const { frame } = this.#clock
    return new View(this, frame - behindMs, frame - canonBehindMs)
  }

  add({ number, timestamp, txs, since }: Pick<Block, 'number' | 'timestamp' | 'txs' | 'since'>): Block {
    const others = this.numbers.get(number) ?? []
    const parent = this.numbers.get(number - 1)?.at(-1)
    const block: Block = {
      number,
      hash: hex(64, (BigInt(number) << 32n) + 0xb10cn * 2n ** 128n + BigInt(others.length)),
      parentHash: parent?.hash ?? hex(64, 0),
      timestamp,
      txs,
      ...happen({ number, timestamp, before: parent?.after ?? firstBooks }, txs),
      since,
      until: Number.POSITIVE_INFINITY,
    }
    this.numbers.set(number, [...others, block])
    this.hashes.set(block.hash, block)
    return block
  }

  /** The head is here now. */
  mark(number: number, at = this.#clock.frame): void {
    const last = this.marks.at(-1)
    const { safeLag, finalizedLag } = this.#settings
    const stride = (lag: number) => Math.floor((number - lag) / STRIDE_BLOCKS) * STRIDE_BLOCKS
    this.marks.push({
      at,
      number,
      safe: Math.max(last?.safe ?? 0, stride(safeLag)),
      finalized: Math.max(last?.finalized ?? 0, stride(safeLag + finalizedLag)),
    })
  }

  /** Begins the next block. `kept` was shown before in the same places; `dark`: nothing of it will be shown. */
  begin(kept: readonly Tx[], dark: boolean): void {
    const parent = this.block(this.head)
    if (!parent) throw new Error('a head without a block')
    const { frame } = this.#clock
    const before = this.buildings.at(-1)
    if (before && before.until > frame) before.until = frame
    this.buildings.push({
      number: parent.number + 1,
      parentHash: parent.hash,
      timestamp: Math.max(parent.timestamp, Math.floor((NOON + frame + this.blockMs) / 1_000)),
      before: parent.after,
      txs: [],
      shownAt: [],
      since: frame,
      until: Number.POSITIVE_INFINITY,
      lostAt: dark ? frame : Number.POSITIVE_INFINITY,
      abandoned: false,
    })
    // Shown again under a block that may have another time.
    this.show(kept)
  }

  /** Adds to what is shown of the block that is being built. */
  show(txs: readonly Tx[]): readonly Placed[] {
    const { building } = this
    for (const tx of txs) {
      building.txs.push(tx)
      building.shownAt.push(this.#clock.frame)
    }
    const fresh = new Set(txs.map(({ hash }) => hash))
    const logs = place(building, building.txs).filter(({ tx }) => fresh.has(tx))
    for (const log of logs) {
      add(this.announced, log.key, log)
      add(this.announcedIn, `${log.block} ${log.tx}`, log)
    }
    return logs
  }

  /** Its builder gives up what is being built. */
  abandon(): Building {
    const { building } = this
    building.until = this.#clock.frame
    building.abandoned = true
    return building
  }

  /** Goes back to a block; answers those that are no longer canonical, oldest first. */
  cut(to: number): readonly Block[] {
    const removed: Block[] = []
    for (let number = to + 1; number <= this.head; number += 1) {
      const block = this.block(number)
      if (!block) throw new Error(`no block ${number}`)
      block.until = this.#clock.frame
      removed.push(block)
    }
    if (removed.length > 0) this.mark(to)
    return removed
  }
}

function add(shown: Map<string, Placed[]>, name: string, log: Placed): void {
  const before = shown.get(name)
  if (before) before.push(log)
  else shown.set(name, [log])
}
