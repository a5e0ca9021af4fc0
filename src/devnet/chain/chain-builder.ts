import type { Hex } from '../../lib/hex.ts'
import { nonceKey, type StateValues } from './account-state.ts'
import { anchorBlock, Chain } from './chain.ts'
import type {
  DeferredTransaction,
  DevnetBlock,
  DevnetBlockTime,
  DevnetLog,
  DevnetTransaction,
  RunTransaction,
  TransactionOutcome,
  UnsignedTransaction,
} from './chain-types.ts'
import { digest } from './hashes.ts'

/** Time of block 0. Block n is n block times later, so a devnet that restarts has the head that it would have without a stop. */
export const GENESIS_MS = Date.UTC(2020, 0, 1)
/** Least number of sealed blocks that are kept. Older blocks read as on a pruned node. */
const HISTORY_BLOCKS = 2_048

/** The values from which a chain starts. `salt` is a part of every hash. */
type Genesis = { salt: string; blockMs: number; initialState: StateValues }

/** The block after which a chain starts, with its state. */
type Start = { number: number; state: StateValues; keptBlocks: number }

type Outcomes = (transaction: DevnetTransaction) => TransactionOutcome

/**
 * Holds the present chain, and moves it: gives blocks their hashes and times, and transactions their fates. The seed
 * determines the hashes until a test or a fault changes the chain.
 */
export class ChainBuilder {
  /** The chain as it is now. */
  chain: Chain
  readonly #genesis: Genesis
  readonly #keptBlocks: number
  #divergence = ''
  #movedTransactions: DevnetTransaction[] = []

  constructor(genesis: Genesis, { number, state, keptBlocks }: Start) {
    this.#genesis = genesis
    this.#keptBlocks = Math.max(keptBlocks, HISTORY_BLOCKS)
    const anchor = anchorBlock(number, this.#timeOf(number), this.#blockHash(number), state)
    const first = anchorBlock(0, this.#timeOf(0), this.#blockHash(0), genesis.initialState)
    this.chain = Chain.after(anchor, this.#timeOf(number + 1), first)
  }

  /** Adds sealed blocks up to a number, with these transactions alone. The last one leaves this state behind. */
  outline(until: number, transactionsOf: (block: number) => readonly DeferredTransaction[], state: StateValues): void {
    const past: DevnetBlock[] = []
    while (this.chain.head.number < until) {
      past.push(this.chain.head)
      const { number } = this.chain.pending
      this.makeFlashblock(transactionsOf(number))
      this.chain = this.chain.seal(this.#blockHash(number), this.#timeOf(number + 1), 1)
    }
    this.chain = this.chain.withPast(past, state, this.#timeOf(until + 1))
  }

  makeFlashblock(transactions: readonly DeferredTransaction[]): readonly DevnetLog[] {
    const { number, transactions: earlier, logs } = this.chain.pending
    const moved = this.#movedTransactions.splice(0)
    const runs = transactions.map((build, at) => this.#signed(build, number, earlier.length + moved.length + at))
    this.chain = this.chain.show([...moved.map(({ run }) => run), ...runs])
    return this.chain.pending.logs.slice(logs.length)
  }

  seal(outcomeOf: Outcomes = () => 'kept'): DevnetBlock {
    const preconfirmed = this.chain.pending.transactions
    const scheduled = this.#applyOutcomes(preconfirmed, ({ sealedAs = 'kept' }) => sealedAs)
    const kept = this.#applyOutcomes(scheduled, outcomeOf)
    if (!isSameList(kept, preconfirmed)) this.#begin(this.chain.head.number, kept)
    const isAltered = !isSameList(kept, scheduled) || kept.some(({ injectedHash }) => injectedHash)
    return this.#sealPending(isAltered ? 'injected' : undefined)
  }

  /** Replaces the newest sealed blocks by new ones with the same numbers. */
  reorg(depth: number, outcomeOf: Outcomes): { removed: readonly DevnetLog[]; blocks: readonly DevnetBlock[] } {
    const { blocks, pending } = this.chain
    if (depth < 1 || depth >= blocks.length) throw new Error(`cannot replace ${depth} blocks: only 1 to ${blocks.length - 1}`)
    const replaced = blocks.slice(-depth)
    const added = replaced.map(({ number, transactions }) => {
      this.#begin(number - 1, this.#applyOutcomes(transactions, outcomeOf))
      return this.#sealPending('reorg')
    })
    this.#begin(this.chain.head.number, pending.transactions)
    return { removed: replaced.flatMap(({ logs }) => logs).map((log) => ({ ...log, removed: true })), blocks: added }
  }

  /** Begins the block after this one, with only these transactions. All others lose their index and their effects. */
  #begin(parent: number, transactions: readonly DevnetTransaction[]): void {
    const runs = transactions.map(({ run }) => run)
    this.chain = this.chain.backTo(parent, this.#timeOf(parent + 1), runs)
  }

  /** `reason` tells why its hash, and every later one, differs from the hash that the seed determines. */
  #sealPending(reason: string | undefined): DevnetBlock {
    const { number, transactions } = this.chain.pending
    if (reason)
      this.#divergence = digest(this.#divergence, reason, ...transactions.flatMap(({ hash, logs }) => [hash, JSON.stringify(logs)]))
    this.chain = this.chain.seal(this.#blockHash(number), this.#timeOf(number + 1), this.#keptBlocks)
    return this.chain.head
  }

  /** Returns the transactions that stay in their block. A moved transaction waits for the next flashblock. */
  #applyOutcomes(transactions: readonly DevnetTransaction[], outcomeOf: Outcomes): readonly DevnetTransaction[] {
    return transactions.flatMap((transaction) => {
      const outcome = outcomeOf(transaction)
      if (outcome === 'moved') this.#movedTransactions.push(transaction)
      if (outcome === 'moved' || outcome === 'dropped') return []
      return [outcome === 'kept' ? transaction : altered(transaction, outcome)]
    })
  }

  /** Gives a transaction its hash and nonce when it is first shown. */
  #signed(build: DeferredTransaction, block: number, index: number): RunTransaction {
    return (context) => {
      const unsigned = build(context)
      const hash = unsigned.injectedHash ?? this.#transactionHash(block, index, unsigned)
      const run: RunTransaction = (later) => {
        const { logs, writes } = build(later)
        return { ...transaction, logs, writes }
      }
      const transaction = { ...unsigned, hash, nonce: context.readState(nonceKey(unsigned.from)), run }
      return transaction
    }
  }

  #transactionHash(block: number, index: number, { from, to, input }: UnsignedTransaction): Hex {
    return digest(this.#genesis.salt, 'transaction', this.#divergence, block, index, from, to, input)
  }

  // Omits the parent and the transactions, so that the hash of a block is known without a replay from block 0.
  #blockHash(block: number): Hex {
    return digest(this.#genesis.salt, 'block', this.#divergence, block)
  }

  #timeOf(number: number): DevnetBlockTime {
    const timestampMs = GENESIS_MS + number * this.#genesis.blockMs
    const timestamp = Math.floor(timestampMs / 1_000)
    return this.#genesis.blockMs < 1_000 ? { timestamp, timestampMs } : { timestamp }
  }
}

/** The transaction with another outcome, wherever it lands. */
const altered = (transaction: DevnetTransaction, outcome: Exclude<TransactionOutcome, string>): DevnetTransaction => ({
  ...transaction,
  ...outcome,
  run: (context) => altered(transaction.run(context), outcome),
})

const isSameList = (one: readonly DevnetTransaction[], other: readonly DevnetTransaction[]): boolean =>
  one.length === other.length && one.every((transaction, at) => transaction === other[at])
