import type { Hex } from '../../lib/hex.ts'
import { codeKey, etherKey, nonceKey, type StateValues } from '../chain/account-state.ts'
import { GAS_PRICE, GENESIS_MS } from '../chain/chain.ts'
import { type DeferredTransaction, resolveTransaction } from '../chain/state-dependent-transaction.ts'
import { supplyKey, TOKEN_CODE } from '../chain/transactions.ts'
import { type DevnetToken, lateToken } from '../tokens/issued-tokens.ts'
import { initialTokenValues } from '../tokens/token-storage.ts'
import { type Cycle, createCorporateActions, LISTED_FROM_BLOCK, LISTED_UNTIL_BLOCK } from './corporate-actions.ts'
import { actorAddress, CYCLE_BLOCKS, cycleOf, OPENING_ETHER } from './trading.ts'

/** Corporate actions, the same in every cycle. The end of a cycle restores the state of its start. */
export type Calendar = {
  /** The state that the calendar needs when a cycle starts. */
  stateAtStart: (cycle: number) => StateValues
  /** The corporate actions in a block. */
  transactions: (block: number) => readonly DeferredTransaction[]
  /** Whether a token is on the list at a block. */
  isListed: (token: DevnetToken, block: number) => boolean
}

export const createCalendar = (seed: string, blockMs: number, custodian: Hex, operator: Hex): Calendar => {
  const script = createCorporateActions({ custodian, operator, debtor: actorAddress(seed, 'debtor') })
  const byBlock = Map.groupBy(script, ([at]) => at)
  const cycleAt = (number: number): Cycle => ({
    number,
    timestampOf: (blockInCycle) => Math.floor((GENESIS_MS + (number * CYCLE_BLOCKS + 1 + blockInCycle) * blockMs) / 1_000),
  })
  const emptyContext = { readState: () => 0n, timestamp: 0 }
  const gasPerCycle = script.reduce((sum, [, deferred]) => sum + resolveTransaction(deferred(cycleAt(0)), emptyContext).gasUsed, 0)
  return {
    stateAtStart: (cycle) =>
      new Map([
        ...initialTokenValues(lateToken),
        [codeKey(lateToken.address), TOKEN_CODE],
        [supplyKey(lateToken.address), 0n],
        [nonceKey(operator), BigInt(script.length) * BigInt(cycle)],
        [etherKey(operator), OPENING_ETHER - BigInt(gasPerCycle) * GAS_PRICE * BigInt(cycle)],
      ]),
    transactions: (block) => {
      if (block < 1) return []
      const cycle = cycleAt(cycleOf(block))
      return (byBlock.get((block - 1) % CYCLE_BLOCKS) ?? []).map(([, deferred]) => deferred(cycle))
    },
    isListed: (token, block) => token !== lateToken || isLateTokenListed(block),
  }
}

const isLateTokenListed = (block: number): boolean => {
  const blockInCycle = (block - 1) % CYCLE_BLOCKS
  return blockInCycle >= LISTED_FROM_BLOCK && blockInCycle < LISTED_UNTIL_BLOCK
}
