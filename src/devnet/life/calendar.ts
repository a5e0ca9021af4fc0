import { GAS_PRICE, GENESIS_MS } from '../chain/chain.ts'
import { made, type Plan } from '../chain/deferred-tx.ts'
import type { Hex } from '../chain/hex.ts'
import { codeOf, etherOf, nonceOf, type Values } from '../chain/state.ts'
import { supplyOf, TOKEN_CODE } from '../chain/transactions.ts'
import { latecomer, type Token } from '../tokens/listed.ts'
import { issued } from '../tokens/storage.ts'
import { LISTED_FROM, LISTED_UNTIL, programme, type Tide } from './corporate-actions.ts'
import { accountOf, OPENING_ETHER, TIDE_BLOCKS, tideOf } from './trading.ts'

/** The corporate life of the tokens: in every tide the same, and at its end all is as it was at its beginning. */
export type Calendar = {
  /** What is held for its sake when a tide begins. */
  opening: (tide: number) => Values
  /** What is done in a block. */
  plans: (block: number) => readonly Plan[]
  /** Whether a token is on the list at a block. */
  lists: (token: Token, block: number) => boolean
}

/** The calendar of a seed, at so many milliseconds a block. */
export const createCalendar = (seed: string, blockMs: number, custodian: Hex, operator: Hex): Calendar => {
  const rows = programme({ custodian, operator, debtor: accountOf(seed, 'debtor') })
  const byBlock = Map.groupBy(rows, ([at]) => at)
  const tideAt = (tide: number): Tide => ({
    tide,
    secondOf: (at) => Math.floor((GENESIS_MS + (tide * TIDE_BLOCKS + 1 + at) * blockMs) / 1_000),
  })
  const nothing = { held: () => 0n, timestamp: 0 }
  const gas = rows.reduce((sum, [, plan]) => sum + made(plan(tideAt(0)), nothing).gasUsed, 0)
  return {
    opening: (tide) =>
      new Map([
        ...issued(latecomer),
        [codeOf(latecomer.address), TOKEN_CODE],
        [supplyOf(latecomer.address), 0n],
        [nonceOf(operator), BigInt(rows.length) * BigInt(tide)],
        [etherOf(operator), OPENING_ETHER - BigInt(gas) * GAS_PRICE * BigInt(tide)],
      ]),
    plans: (block) => {
      if (block < 1) return []
      const tide = tideAt(tideOf(block))
      return (byBlock.get((block - 1) % TIDE_BLOCKS) ?? []).map(([, plan]) => plan(tide))
    },
    lists: (token, block) => token !== latecomer || isListed(block),
  }
}

/** Whether the latecomer's time on the list has come. */
const isListed = (block: number): boolean => {
  const at = (block - 1) % TIDE_BLOCKS
  return at >= LISTED_FROM && at < LISTED_UNTIL
}
