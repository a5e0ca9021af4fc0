import { type Hex, quantity, ZERO_WORD } from '../../lib/hex.ts'
import { AccountState, etherKey, nonceKey, type StateValues, type StateWrite, valueAfter } from './account-state.ts'
import type { DevnetBlock, DevnetBlockTime, PendingDevnetBlock, RunTransaction } from './chain-types.ts'

export const GAS_PRICE = 6_000_000n

/** A chain as it is at one moment. Nothing changes it: what moves the chain returns another one, which shares its blocks. */
export class Chain {
  readonly genesis: DevnetBlock
  /** Sealed blocks, oldest first. The first one is only the parent of the oldest that is kept. */
  readonly blocks: readonly DevnetBlock[]
  readonly pending: PendingDevnetBlock

  private constructor(genesis: DevnetBlock, blocks: readonly DevnetBlock[], pending: PendingDevnetBlock) {
    this.genesis = genesis
    this.blocks = blocks
    this.pending = pending
  }

  /** Starts after a block. The next one has this time. */
  static after(parent: DevnetBlock, next: DevnetBlockTime, genesis = parent): Chain {
    return new Chain(genesis, [parent], emptyBlockAfter(parent, next))
  }

  get head(): DevnetBlock {
    return this.blocks.at(-1) ?? this.genesis
  }

  get oldest(): number {
    return (this.blocks[0]?.number ?? 0) + 1
  }

  block(number: number): DevnetBlock | undefined {
    if (number === this.genesis.number) return this.genesis
    return number < this.oldest ? undefined : this.blocks[number - this.oldest + 1]
  }

  blockOfHash(hash: Hex): DevnetBlock | undefined {
    return (
      this.blocks.findLast((block, index) => block.hash === hash && index > 0) ??
      (this.genesis.hash === hash ? this.genesis : undefined)
    )
  }

  /** Reads the state after a block. That before the oldest kept block is known too, because that block can be undone. */
  valueAt(key: string, number: number | 'pending'): bigint {
    const block = number === 'pending' ? this.pending : (this.blocks[number - this.oldest + 1] ?? this.block(number))
    return block?.state.read(key) ?? 0n
  }

  /** Shows a flashblock: executes more transactions in the pending block. */
  show(transactions: readonly RunTransaction[]): Chain {
    const pending = execute(this.pending, transactions)
    return new Chain(this.genesis, this.blocks, { ...pending, flashblocks: pending.flashblocks + 1 })
  }

  /** Seals the pending block. The next one has this time. Forgets all but the `kept` newest blocks. */
  seal(hash: Hex, next: DevnetBlockTime, kept = Number.POSITIVE_INFINITY): Chain {
    const { flashblocks: _, ...built } = this.pending
    const block = { ...built, hash, logs: built.logs.map((log) => ({ ...log, blockHash: hash })) }
    return new Chain(this.genesis, [...this.blocks.slice(-kept), block], emptyBlockAfter(block, next))
  }

  /** Puts blocks before the newest one, and gives that one another state, as if more had happened. The next block is empty. */
  withPast(past: readonly DevnetBlock[], values: StateValues, next: DevnetBlockTime): Chain {
    const head = { ...this.head, state: new AccountState(values) }
    return new Chain(this.genesis, [...past, head], emptyBlockAfter(head, next))
  }

  /** Goes back to a block, and begins the one after it with these transactions. */
  backTo(number: number, next: DevnetBlockTime, transactions: readonly RunTransaction[] = []): Chain {
    const blocks = this.blocks.slice(0, number - this.oldest + 2)
    return new Chain(this.genesis, blocks, execute(emptyBlockAfter(blocks.at(-1) ?? this.genesis, next), transactions))
  }
}

/** A block before which the chain does not begin to keep blocks. */
export const anchorBlock = (number: number, time: DevnetBlockTime, hash: Hex, values: StateValues): DevnetBlock => {
  return { number, ...time, hash, parentHash: ZERO_WORD, transactions: [], logs: [], state: new AccountState(values) }
}

const emptyBlockAfter = ({ number, hash, state }: DevnetBlock, time: DevnetBlockTime): PendingDevnetBlock => {
  const place = { number: number + 1, ...time, hash: ZERO_WORD, parentHash: hash }
  return { ...place, transactions: [], logs: [], state: state.next(), flashblocks: 0 }
}

/** Executes more transactions in a block: places their logs, and changes the state. */
const execute = (block: PendingDevnetBlock, runs: readonly RunTransaction[]): PendingDevnetBlock => {
  const { number, timestamp, timestampMs } = block
  const [transactions, logs, written] = [[...block.transactions], [...block.logs], new Map<string, bigint>()]
  const readState = (key: string) => written.get(key) ?? block.state.read(key)
  for (const run of runs) {
    const transaction = run({ readState, timestamp })
    const place = {
      blockHash: ZERO_WORD,
      blockNumber: quantity(number),
      blockTimestamp: quantity(timestamp),
      ...(timestampMs !== undefined && { blockTimestampMs: quantity(timestampMs) }),
      transactionHash: transaction.hash,
      transactionIndex: quantity(transactions.length),
    }
    transactions.push(transaction)
    for (const log of transaction.logs) logs.push({ ...log, ...place, logIndex: quantity(logs.length), removed: false })
    const fee = BigInt(transaction.gasUsed) * GAS_PRICE
    const writes: readonly StateWrite[] = [
      { key: nonceKey(transaction.from), change: (count: bigint) => count + 1n },
      // A sender without ether pays nothing, so a test may send from any address without funding it.
      { key: etherKey(transaction.from), change: (wei: bigint) => (wei < fee ? wei : wei - fee) },
      ...transaction.writes,
    ]
    for (const write of writes) written.set(write.key, valueAfter(write, readState))
  }
  return { ...block, transactions, logs, state: block.state.with(written) }
}
