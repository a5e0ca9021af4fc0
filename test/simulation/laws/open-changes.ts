import type { PlacedLog } from '../placed-logs.ts'
import { wadText } from './exact-decimals.ts'

import type { KeyLifecycles } from './key-lifecycles.ts'
import type { LawContext } from './law.ts'
import type { Fact } from './published-facts.ts'

/** The pre-confirmed changes of a token's multiplier in a block that neither a seal nor a retract has ended. */
export function openMultiplierChanges(
  { chain }: LawContext,
  lifecycles: KeyLifecycles,
  address: string,
  number: number,
): readonly PlacedLog[] {
  const open = lifecycles.aliveInBlock(number).filter((one) => one.state === 'open' && one.address === address)
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
