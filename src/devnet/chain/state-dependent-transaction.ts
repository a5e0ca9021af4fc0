import type { ReadState, StateWrite } from './account-state.ts'
import type { UnsignedTransaction } from './block-types.ts'

/** State and block time (in seconds) when a transaction executes. */
export type ExecutionContext = { readState: ReadState; timestamp: number }

/** A transaction that is built when it executes, since its logs depend on the state. */
export type DeferredTransaction = (context: ExecutionContext) => UnsignedTransaction

export const resolveTransaction = (
  transaction: UnsignedTransaction | DeferredTransaction,
  context: ExecutionContext,
): UnsignedTransaction => (typeof transaction === 'function' ? transaction(context) : transaction)

/** The context after some writes. */
export const afterWrites = ({ readState, timestamp }: ExecutionContext, writes: readonly StateWrite[]): ExecutionContext => {
  const written = new Map<string, bigint>()
  for (const { key, change } of writes) written.set(key, change(written.get(key) ?? readState(key)))
  return { readState: (key) => written.get(key) ?? readState(key), timestamp }
}
