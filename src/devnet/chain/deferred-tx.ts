import type { Deed } from './block.ts'
import type { Held, Write } from './state.ts'

/** What a deed meets when its turn comes: what is held by then, and the second of its block. */
export type Moment = { held: Held; timestamp: number }

/** A deed still to be made: what it says depends on what it meets. */
export type Plan = (moment: Moment) => Deed

/** A deed that was made, or is made now. */
export const made = (one: Deed | Plan, moment: Moment): Deed => (typeof one === 'function' ? one(moment) : one)

/** The same moment once something was written. */
export const after = ({ held, timestamp }: Moment, writes: readonly Write[]): Moment => {
  const written = new Map<string, bigint>()
  for (const { key, change } of writes) written.set(key, change(written.get(key) ?? held(key)))
  return { held: (key) => written.get(key) ?? held(key), timestamp }
}
