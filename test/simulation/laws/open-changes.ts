import type { PlacedLog } from '../placed-logs.ts'
import { wadText } from './exact-decimals.ts'

import type { KeyLifecycle, KeyLifecycles } from './key-lifecycles.ts'
import type { LawContext } from './law.ts'
import type { Fact } from './published-facts.ts'

/**
 * The published changes of a token's multiplier in a block in a hole that no message has ended: pre-confirmed ones, and those that
 * another version of the block has sealed.
 */
export function openMultiplierChanges(
  { chain }: LawContext,
  lifecycles: KeyLifecycles,
  address: string,
  number: number,
): readonly PlacedLog[] {
  const isOpen = ({ state, hash }: KeyLifecycle) => state === 'open' || hash !== chain.block(number)?.hash
  const open = lifecycles.aliveInBlock(number).filter((one) => one.address === address && isOpen(one))
  const logs = open.flatMap(({ key, lastPublished }) => {
    const published = lastPublished as Fact
    const isPublished = (log: PlacedLog) => published.type === 'multiplier' && multiplierIn(log) === published.multiplier
    return chain.announced.get(key)?.find(isPublished) ?? []
  })
  return logs.sort((a, b) => a.logIndex - b.logIndex)
}

/** The multiplier that a log sets, schedules or no longer schedules. */
function multiplierIn({ content: { tokenEvent } }: PlacedLog): string | null {
  switch (tokenEvent?.event) {
    case 'MultiplierUpdated':
    case 'UIMultiplierUpdated':
    case 'UIMultiplierUpdateCancelled':
      return wadText(tokenEvent.to)
    default:
      return null
  }
}
