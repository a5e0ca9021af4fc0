import { alterTx, randomTx, type TransactionMix } from './random-transactions.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SimulatedBlock } from './simulated-chain.ts'
import { hex, type SimulatedTx, transactionsOf } from './simulated-transactions.ts'

type ReorgInput = {
  readonly random: SeededRandom
  readonly removed: readonly SimulatedBlock[]
  /** The chain rolls back and is built again, instead of being replaced at once. */
  readonly isRewind: boolean
  readonly slot: number
  readonly transactionMix: TransactionMix
}

type ReorgResult = {
  readonly blocks: readonly { readonly timestamp: number; readonly txs: readonly SimulatedTx[] }[]
  /** Transactions that need another block. */
  readonly remaining: readonly SimulatedTx[]
}

/** The blocks that replace others: most transactions stay, some move, change, vanish or are new. */
export function reorgBlocks({ random, removed, isRewind, slot, transactionMix }: ReorgInput): ReorgResult {
  if (isRewind) return { blocks: [], remaining: removed.flatMap((block) => transactionsOf(block).filter(() => random.chance(85))) }
  // Some reorganisations change nothing but the hashes.
  const keepsTransactions = random.chance(20)
  const count = Math.max(1, removed.length + random.int(-1, 1))
  const blocks: { timestamp: number; txs: SimulatedTx[] }[] = []
  let carried: SimulatedTx[] = []
  for (let nth = 0; nth < count; nth += 1) {
    const old = removed[nth]
    const txs: SimulatedTx[] = carried
    carried = []
    for (const tx of old ? transactionsOf(old) : []) {
      const drawn = keepsTransactions ? 0 : random.int(0, 99)
      if (drawn < 70) txs.push(tx)
      else if (drawn < 80) carried.push(tx)
      else if (drawn < 87) txs.unshift(tx)
      else if (drawn < 92) txs.push(alterTx(random, tx))
      else if (drawn < 94) blocks.at(-1)?.txs.push(tx)
    }
    const timestamp = old?.timestamp ?? blocks.at(-1)?.timestamp ?? 0
    if (!keepsTransactions && random.chance(25)) {
      const market = { ...transactionMix, second: timestamp }
      txs.splice(random.int(0, txs.length), 0, randomTx(random, hex(64, 0x7c_0000_0000 + slot * 100 + nth), market))
    }
    blocks.push({ timestamp, txs })
  }
  return { blocks, remaining: [...carried, ...removed.slice(count).flatMap(transactionsOf)] }
}
