import type { ReadState, StateWrite } from './account-state.ts'
import type { UnsignedTransaction } from './block.ts'

/** What a deed meets when its turn comes: what is held by then, and the second of its block. */
export type ExecutionContext = { readState: ReadState; timestamp: number }

/** A deed still to be made: what it says depends on what it meets. */
export type DeferredTransaction = (context: ExecutionContext) => UnsignedTransaction

/** A deed that was made, or is made now. */
export const resolveTransaction = (
  transaction: UnsignedTransaction | DeferredTransaction,
  context: ExecutionContext,
): UnsignedTransaction => (typeof transaction === 'function' ? transaction(context) : transaction)

/** The same moment once something was written. */
export const afterWrites = (
  { readState, timestamp }: ExecutionContext,
  writes: readonly StateWrite[],
): ExecutionContext => {
  const written = new Map<string, bigint>()
  for (const { key, change } of writes) written.set(key, change(written.get(key) ?? readState(key)))
  return { readState: (key) => written.get(key) ?? readState(key), timestamp }
}
