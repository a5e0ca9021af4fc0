import type { Block, Deed, Fate, Log, Pending, Transaction } from './block.ts'
import { made, type Plan } from './deferred-tx.ts'
import { Lineage } from './hashes.ts'
import { type Hex, quantity, ZERO_WORD } from './hex.ts'
import { etherOf, nonceOf, State, type Values } from './state.ts'

/** When block 0 was; block n is `n` block times later, so a chain started again stands where it would have stood. */
export const GENESIS_MS = Date.UTC(2020, 0, 1)

/** How many sealed blocks are kept; what is older reads as on a pruned node. */
const HISTORY_BOUND = 2_048

/** What one unit of gas costs, in wei; the fee never moves here. */
export const GAS_PRICE = 6_000_000n

/** What a chain is made of; two chains with the same one are the same chain. */
export type Genesis = { salt: string; blockMs: number; opening: Values }

type Draft = Pending & { transactions: Transaction[]; logs: Log[] }
type Sealed = Block & { before: Values }

/** The chain in the box: the blocks, the one being built, and what every account holds in each. */
export class Chain {
  #genesis: Genesis
  #lineage: Lineage
  #state: State
  #sealed = new Map<number, Sealed>()
  #numbers = new Map<Hex, number>()
  #origin: Block
  #head: Block
  #pending: Draft
  #carried: Transaction[] = []

  /** Begins after the block `number`, where the state is `opening`; `deeds` are that block's, for its hash alone. */
  constructor(genesis: Genesis, from: { number: number; deeds: readonly Deed[]; opening: Values }) {
    this.#genesis = genesis
    this.#lineage = new Lineage(genesis.salt)
    this.#state = new State(from.opening)
    this.#origin = this.#boundary(0, [])
    this.#head = this.#boundary(from.number, from.deeds)
    this.#pending = this.#next()
  }

  /** The newest sealed block. */
  get head(): Block {
    return this.#head
  }

  /** The block being built: its hash is zero, and so are its logs' block hashes. */
  get pending(): Pending {
    return this.#pending
  }

  /** The oldest block that is still kept, but for block 0. */
  get oldest(): number {
    return this.#head.number - this.#sealed.size + 1
  }

  /** A sealed block, while it is kept. */
  block(number: number): Block | undefined {
    return number === 0 ? this.#origin : this.#sealed.get(number)
  }

  blockOfHash(hash: Hex): Block | undefined {
    if (hash === this.#origin.hash) return this.#origin
    const number = this.#numbers.get(hash)
    return number === undefined ? undefined : this.#sealed.get(number)
  }

  /** What was held under a key once a block was sealed, or is held with what is pre-confirmed. */
  held(key: string, at: number | 'pending'): bigint {
    if (at === 'pending') return this.#state.pending(key)
    if (at === 0) return this.#genesis.opening.get(key) ?? 0n
    for (let number = at + 1; number <= this.#head.number; number++) {
      const before = this.#sealed.get(number)?.before.get(key)
      if (before !== undefined) return before
    }
    return this.#state.sealed(key)
  }

  /** Makes the next flashblock; returns the logs that it adds. */
  flash(deeds: readonly (Deed | Plan)[]): readonly Log[] {
    const first = this.#pending.logs.length
    this.#pending.flashes += 1
    for (const transaction of this.#carried.splice(0)) this.#include(this.#pending, transaction)
    const held = (key: string) => this.#state.pending(key)
    for (const one of deeds) {
      const deed = made(one, { held, timestamp: this.#pending.timestamp })
      this.#include(this.#pending, this.#sign(deed))
    }
    return this.#pending.logs.slice(first)
  }

  /** Seals the block being built and begins the next. */
  seal(fateOf: (transaction: Transaction) => Fate = () => 'kept'): Block {
    const told = this.#pending.transactions
    const kept = this.#befall(told, fateOf)
    const whole = kept.length === told.length && kept.every((transaction, at) => transaction === told[at])
    if (!whole) this.#pending = this.#again(this.#next(), kept)
    if (!whole || kept.some((transaction) => transaction.injected)) this.#lineage.part(kept)
    return this.#close()
  }

  /** Replaces the newest sealed blocks by others of the same numbers. */
  reorg(
    depth: number,
    fateOf: (transaction: Transaction) => Fate = () => 'kept',
  ): { removed: readonly Log[]; blocks: readonly Block[] } {
    const old = [...this.#sealed.values()].slice(-depth)
    const [first] = old
    if (!first || depth < 1 || old.length < depth) {
      throw new Error(`cannot replace ${depth} blocks: only 1 to ${this.#sealed.size}`)
    }
    const told = this.#pending.transactions
    this.#state.discard()
    for (const block of old.toReversed()) {
      this.#state.unseal(block.before)
      this.#sealed.delete(block.number)
      this.#numbers.delete(block.hash)
    }
    this.#head = this.#sealed.get(first.number - 1) ?? this.#boundaryBefore(first)
    const blocks = old.map((block) => {
      const kept = this.#befall(block.transactions, fateOf)
      this.#pending = this.#again(this.#next(), kept)
      this.#lineage.part(kept, 'reorg')
      return this.#close()
    })
    this.#pending = this.#again(this.#next(), told)
    return { removed: old.flatMap((block) => block.logs).map((log) => ({ ...log, removed: true })), blocks }
  }

  /** The transactions that stay in their block, with the logs that they have there; what is moved waits for the next flashblock. */
  #befall(transactions: readonly Transaction[], fateOf: (transaction: Transaction) => Fate): readonly Transaction[] {
    return transactions.flatMap((transaction) => {
      const fate = fateOf(transaction)
      if (fate === 'moved') this.#carried.push(transaction)
      if (fate === 'moved' || fate === 'dropped') return []
      return [fate === 'kept' ? transaction : { ...transaction, logs: fate.logs }]
    })
  }

  #close(): Block {
    const { flashes: _, ...built } = this.#pending
    const { number } = built
    const hash = this.#lineage.hashOf(number, built.transactions)
    const logs = built.logs.map((log) => ({ ...log, blockHash: hash }))
    const block = { ...built, hash, logs, before: this.#state.seal() }
    this.#sealed.set(number, block)
    this.#numbers.set(hash, number)
    this.#head = block
    this.#forget(number - HISTORY_BOUND)
    this.#pending = this.#next()
    return block
  }

  #forget(number: number): void {
    const block = this.#sealed.get(number)
    if (!block) return
    this.#sealed.delete(number)
    this.#numbers.delete(block.hash)
  }

  #next(): Draft {
    const number = this.#head.number + 1
    return {
      number,
      ...this.#timeOf(number),
      hash: ZERO_WORD,
      parentHash: this.#head.hash,
      transactions: [],
      logs: [],
      flashes: 0,
    }
  }

  /** The same transactions once more, from the sealed state: what was left out takes its place and its effects along. */
  #again(draft: Draft, transactions: readonly Transaction[]): Draft {
    this.#state.discard()
    for (const transaction of transactions) this.#include(draft, transaction)
    return draft
  }

  #include(draft: Draft, transaction: Transaction): void {
    const transactionIndex = quantity(draft.transactions.length)
    draft.transactions.push(transaction)
    for (const log of transaction.logs) {
      draft.logs.push({
        ...log,
        blockHash: ZERO_WORD,
        blockNumber: quantity(draft.number),
        blockTimestamp: quantity(draft.timestamp),
        ...(draft.timestampMs !== undefined && { blockTimestampMs: quantity(draft.timestampMs) }),
        transactionHash: transaction.hash,
        transactionIndex,
        logIndex: quantity(draft.logs.length),
        removed: false,
      })
    }
    const fee = BigInt(transaction.gasUsed) * GAS_PRICE
    this.#state.write({ key: nonceOf(transaction.from), change: (count) => count + 1n })
    // Who has no ether is sponsored: a test may send from any address without funding it.
    this.#state.write({ key: etherOf(transaction.from), change: (wei) => (wei < fee ? wei : wei - fee) })
    for (const write of transaction.writes) this.#state.write(write)
  }

  #sign(deed: Deed): Transaction {
    const { number, transactions } = this.#pending
    const hash = deed.injected ?? this.#lineage.nameOf(number, transactions.length, deed)
    return { ...deed, hash, nonce: this.#state.pending(nonceOf(deed.from)) }
  }

  #timeOf(number: number): Pick<Block, 'timestamp' | 'timestampMs'> {
    const timestampMs = GENESIS_MS + number * this.#genesis.blockMs
    const timestamp = Math.floor(timestampMs / 1_000)
    return this.#genesis.blockMs < 1_000 ? { timestamp, timestampMs } : { timestamp }
  }

  #boundary(number: number, deeds: readonly Deed[]): Block {
    const hashes = deeds.map((deed, index) => ({ hash: this.#lineage.nameOf(number, index, deed) }))
    const hash = this.#lineage.hashOf(number, hashes)
    return { number, ...this.#timeOf(number), hash, parentHash: ZERO_WORD, transactions: [], logs: [] }
  }

  #boundaryBefore(first: Block): Block {
    const number = first.number - 1
    return { ...this.#origin, number, ...this.#timeOf(number), hash: first.parentHash }
  }
}
