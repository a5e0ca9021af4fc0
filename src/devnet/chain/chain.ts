import { type Hex, quantity, ZERO_WORD } from '../../lib/hex.ts'
import { AccountState, etherKey, nonceKey, type StateValues } from './account-state.ts'
import type {
  DeferredTransaction,
  DevnetBlock,
  DevnetLog,
  DevnetTransaction,
  PendingDevnetBlock,
  TransactionOutcome,
  UnsignedTransaction,
} from './chain-types.ts'
import { ChainHashes } from './hashes.ts'

/** Time of block 0. Block n is n block times later, so a devnet that restarts has the head that it would have without a stop. */
export const GENESIS_MS = Date.UTC(2020, 0, 1)
/** Number of sealed blocks that are kept. Older blocks read as on a pruned node. */
const HISTORY_BOUND = 2_048
export const GAS_PRICE = 6_000_000n

/** The values from which a chain starts. `salt` is a part of every hash. */
export type Genesis = { salt: string; blockMs: number; initialState: StateValues }

type PendingBlockDraft = PendingDevnetBlock & { transactions: DevnetTransaction[]; logs: DevnetLog[] }
type SealedDevnetBlock = DevnetBlock & { valuesBefore: StateValues }

export class Chain {
  #genesis: Genesis
  #hashes: ChainHashes
  #state: AccountState
  #sealed = new Map<number, SealedDevnetBlock>()
  #genesisBlock: DevnetBlock
  #head: DevnetBlock
  #pending: PendingBlockDraft
  #movedTransactions: DevnetTransaction[] = []

  /** Starts after the block `startAfter.number`, with its state. The transactions of that block only determine its hash. */
  constructor(
    genesis: Genesis,
    startAfter: { number: number; transactions: readonly UnsignedTransaction[]; initialState: StateValues },
  ) {
    this.#genesis = genesis
    this.#hashes = new ChainHashes(genesis.salt)
    this.#state = new AccountState(startAfter.initialState)
    this.#genesisBlock = this.#createAnchorBlock(0, [])
    this.#head = this.#createAnchorBlock(startAfter.number, startAfter.transactions)
    this.#pending = this.#createPending()
  }

  get head(): DevnetBlock {
    return this.#head
  }

  get pending(): PendingDevnetBlock {
    return this.#pending
  }

  get oldest(): number {
    return this.#head.number - this.#sealed.size + 1
  }

  block(number: number): DevnetBlock | undefined {
    return number === 0 ? this.#genesisBlock : this.#sealed.get(number)
  }

  blockOfHash(hash: Hex): DevnetBlock | undefined {
    return [this.#genesisBlock, ...this.#sealed.values()].find((block) => block.hash === hash)
  }

  valueAt(key: string, stateBlock: number | 'pending'): bigint {
    if (stateBlock === 'pending') return this.#state.readPending(key)
    if (stateBlock === 0) return this.#genesis.initialState.get(key) ?? 0n
    for (let number = stateBlock + 1; number <= this.#head.number; number++) {
      const valueBefore = this.#sealed.get(number)?.valuesBefore.get(key)
      if (valueBefore !== undefined) return valueBefore
    }
    return this.#state.readSealed(key)
  }

  makeFlashblock(transactions: readonly DeferredTransaction[]): readonly DevnetLog[] {
    const firstNewLog = this.#pending.logs.length
    this.#pending.flashblocks += 1
    for (const transaction of this.#movedTransactions.splice(0)) this.#execute(this.#pending, transaction)
    const context = { readState: (key: string) => this.#state.readPending(key), timestamp: this.#pending.timestamp }
    for (const build of transactions) this.#execute(this.#pending, this.#addHashAndNonce(build(context)))
    return this.#pending.logs.slice(firstNewLog)
  }

  seal(outcomeOf: (transaction: DevnetTransaction) => TransactionOutcome = () => 'kept'): DevnetBlock {
    const preconfirmed = this.#pending.transactions
    const scheduled = this.#applyOutcomes(preconfirmed, ({ sealedAs = 'kept' }) => sealedAs)
    const kept = this.#applyOutcomes(scheduled, outcomeOf)
    if (!isSameList(kept, preconfirmed)) this.#pending = this.#reexecute(this.#createPending(), kept)
    if (!isSameList(kept, scheduled) || kept.some((transaction) => transaction.injectedHash)) this.#hashes.diverge(kept)
    return this.#sealPending()
  }

  /** Replaces the newest sealed blocks by new ones with the same numbers. */
  reorg(
    depth: number,
    outcomeOf: (transaction: DevnetTransaction) => TransactionOutcome,
  ): { removed: readonly DevnetLog[]; blocks: readonly DevnetBlock[] } {
    const replaced = [...this.#sealed.values()].slice(-depth)
    const [first] = replaced
    if (!first || depth < 1 || replaced.length < depth) {
      throw new Error(`cannot replace ${depth} blocks: only 1 to ${this.#sealed.size}`)
    }
    const preconfirmed = this.#pending.transactions
    this.#state.discard()
    for (const block of replaced.toReversed()) {
      this.#state.unseal(block.valuesBefore)
      this.#sealed.delete(block.number)
    }
    const number = first.number - 1
    const anchorBlock = { ...this.#genesisBlock, number, ...this.#timestampsOf(number), hash: first.parentHash }
    this.#head = this.#sealed.get(number) ?? anchorBlock
    const blocks = replaced.map((block) => {
      const kept = this.#applyOutcomes(block.transactions, outcomeOf)
      this.#pending = this.#reexecute(this.#createPending(), kept)
      this.#hashes.diverge(kept, 'reorg')
      return this.#sealPending()
    })
    this.#pending = this.#reexecute(this.#createPending(), preconfirmed)
    return { removed: replaced.flatMap((block) => block.logs).map((log) => ({ ...log, removed: true })), blocks }
  }

  /** Returns the transactions that stay in their block. A moved transaction waits for the next flashblock. */
  #applyOutcomes(
    transactions: readonly DevnetTransaction[],
    outcomeOf: (transaction: DevnetTransaction) => TransactionOutcome,
  ): readonly DevnetTransaction[] {
    return transactions.flatMap((transaction) => {
      const outcome = outcomeOf(transaction)
      if (outcome === 'moved') this.#movedTransactions.push(transaction)
      if (outcome === 'moved' || outcome === 'dropped') return []
      return [outcome === 'kept' ? transaction : { ...transaction, ...outcome }]
    })
  }

  #sealPending(): DevnetBlock {
    const { flashblocks: _, ...built } = this.#pending
    const { number } = built
    const hash = this.#hashes.blockHash(number, built.transactions)
    const logs = built.logs.map((log) => ({ ...log, blockHash: hash }))
    const block = { ...built, hash, logs, valuesBefore: this.#state.seal() }
    this.#sealed.set(number, block)
    this.#head = block
    this.#sealed.delete(number - HISTORY_BOUND)
    this.#pending = this.#createPending()
    return block
  }

  #createPending(): PendingBlockDraft {
    const number = this.#head.number + 1
    return {
      number,
      ...this.#timestampsOf(number),
      hash: ZERO_WORD,
      parentHash: this.#head.hash,
      transactions: [],
      logs: [],
      flashblocks: 0,
    }
  }

  /** Executes only these transactions, from the sealed state. All others lose their index and their effects. */
  #reexecute(draft: PendingBlockDraft, transactions: readonly DevnetTransaction[]): PendingBlockDraft {
    this.#state.discard()
    for (const transaction of transactions) this.#execute(draft, transaction)
    return draft
  }

  #execute(draft: PendingBlockDraft, transaction: DevnetTransaction): void {
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
    this.#state.write({ key: nonceKey(transaction.from), change: (count) => count + 1n })
    // A sender without ether pays nothing, so a test may send from any address without funding it.
    this.#state.write({ key: etherKey(transaction.from), change: (wei) => (wei < fee ? wei : wei - fee) })
    for (const write of transaction.writes) this.#state.write(write)
  }

  #addHashAndNonce(unsigned: UnsignedTransaction): DevnetTransaction {
    const { number, transactions } = this.#pending
    const hash = unsigned.injectedHash ?? this.#hashes.transactionHash(number, transactions.length, unsigned)
    return { ...unsigned, hash, nonce: this.#state.readPending(nonceKey(unsigned.from)) }
  }

  #timestampsOf(number: number): Pick<DevnetBlock, 'timestamp' | 'timestampMs'> {
    const timestampMs = GENESIS_MS + number * this.#genesis.blockMs
    const timestamp = Math.floor(timestampMs / 1_000)
    return this.#genesis.blockMs < 1_000 ? { timestamp, timestampMs } : { timestamp }
  }

  #createAnchorBlock(number: number, transactions: readonly UnsignedTransaction[]): DevnetBlock {
    const hashes = transactions.map((transaction, index) => ({ hash: this.#hashes.transactionHash(number, index, transaction) }))
    const hash = this.#hashes.blockHash(number, hashes)
    return { number, ...this.#timestampsOf(number), hash, parentHash: ZERO_WORD, transactions: [], logs: [] }
  }
}

const isSameList = (one: readonly DevnetTransaction[], other: readonly DevnetTransaction[]): boolean =>
  one.length === other.length && one.every((transaction, at) => transaction === other[at])
