import type { DevnetTransaction, EmittedLog, RunTransaction } from '../../src/devnet/chain/chain-types.ts'
import { executeInOrder, type TokenCall } from '../../src/devnet/tokens/token-calls.ts'
import type { Hex } from '../../src/lib/hex.ts'

/** One part of a transaction, which a fault may change or leave out: a log, or a call of a token. */
export type Step = { readonly address: Hex; readonly call: TokenCall }

export type SimulatedTx = DevnetTransaction & { readonly steps: readonly Step[] }

/** The operator of every token. */
export const OPERATOR: Hex = `0x${'b00c'.padStart(40, '0')}`
export const GAS_PER_TX = 21_000

export const hex = (digits: number, value: number | bigint): Hex => `0x${value.toString(16).padStart(digits, '0')}`

export function simulatedTx(hash: Hex, steps: readonly Step[]): SimulatedTx {
  const parties = { token: OPERATOR, sender: OPERATOR }
  const fixed = { hash, steps, nonce: 0n, from: OPERATOR, to: OPERATOR, input: '0x', gasUsed: GAS_PER_TX } as const
  const calls = steps.map(
    ({ address, call }): TokenCall =>
      (_, context) =>
        call({ ...parties, token: address }, context),
  )
  const run: RunTransaction = (context) => {
    const { logs, writes } = executeInOrder(calls, parties, context)
    return { ...fixed, logs, writes, run }
  }
  return { ...fixed, logs: [], writes: [], run }
}

/** The transactions of a block, all of which the simulation has made. */
export const transactionsOf = (block: { readonly transactions: readonly DevnetTransaction[] }): readonly SimulatedTx[] =>
  block.transactions as readonly SimulatedTx[]

export const emit = (log: EmittedLog): Step => ({ address: log.address, call: () => ({ input: '0x', logs: [log], writes: [] }) })
