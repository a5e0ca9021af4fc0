import { changedTx, drawTx } from './random-transactions.ts'
import type { Dice } from './seeded-random.ts'
import { type Block, hex, type Tx } from './simulated-block.ts'

type Taken = {
  readonly dice: Dice
  readonly removed: readonly Block[]
  /** The chain goes back and is built again, instead of being replaced at once. */
  readonly slowly: boolean
  readonly slot: number
  /** How often, in %, a transaction does more than move tokens. */
  readonly deeds: number
}

type Replaced = {
  readonly blocks: readonly { readonly timestamp: number; readonly txs: readonly Tx[] }[]
  /** Transactions that have to find another block. */
  readonly left: readonly Tx[]
}

/** The blocks that take the place of others: most transactions stay, some move, change, vanish or are new. */
export function reorganised({ dice, removed, slowly, slot, deeds }: Taken): Replaced {
  if (slowly) return { blocks: [], left: removed.flatMap(({ txs }) => txs.filter(() => dice.chance(85))) }
  // Some reorganisations change nothing but the hashes.
  const faithful = dice.chance(20)
  const count = Math.max(1, removed.length + dice.int(-1, 1))
  const blocks: { timestamp: number; txs: Tx[] }[] = []
  let carried: Tx[] = []
  for (let nth = 0; nth < count; nth += 1) {
    const old = removed[nth]
    const txs: Tx[] = carried
    carried = []
    for (const tx of old?.txs ?? []) {
      const fate = faithful ? 0 : dice.int(0, 99)
      if (fate < 70) txs.push(tx)
      else if (fate < 80) carried.push(tx)
      else if (fate < 87) txs.unshift(tx)
      else if (fate < 92) txs.push(changedTx(dice, tx))
      else if (fate < 94) blocks.at(-1)?.txs.push(tx)
    }
    const timestamp = old?.timestamp ?? blocks.at(-1)?.timestamp ?? 0
    if (!faithful && dice.chance(25)) {
      const market = { deeds, second: timestamp }
      txs.splice(dice.int(0, txs.length), 0, drawTx(dice, hex(64, 0x7c_0000_0000 + slot * 100 + nth), market))
    }
    blocks.push({ timestamp, txs })
  }
  return { blocks, left: [...carried, ...removed.slice(count).flatMap(({ txs }) => txs)] }
}
