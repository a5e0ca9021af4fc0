import type { ReadState, StateWrite } from './account-state.ts'
import type { UnsignedTransaction } from './block-types.ts'

/** State and block time when a transaction executes; the time is in seconds. */
export type ExecutionContext = { readState: ReadState; timestamp: number }

/** A transaction that is built when it executes, because its logs depend on the state. */
export type DeferredTransaction = (context: ExecutionContext) => UnsignedTransaction

export const resolveTransaction = (
  transaction: UnsignedTransaction | DeferredTransaction,
  context: ExecutionContext,
): UnsignedTransaction => (typeof transaction === 'function' ? transaction(context) : transaction)

export const afterWrites = ({ readState, timestamp }: ExecutionContext, writes: readonly StateWrite[]): ExecutionContext => {
  const written = new Map<string, bigint>()
  for (const { key, change } of writes) written.set(key, change(written.get(key) ?? readState(key)))
  return { readState: (key) => written.get(key) ?? readState(key), timestamp }
}
