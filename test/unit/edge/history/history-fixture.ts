import { askedOf } from '../../../../src/edge/history/query.ts'
import { Turnstile } from '../../../../src/edge/limits/work-queue.ts'
import { View } from '../../../../src/edge/select/view.ts'
import { noteNames, type Tape } from '../../../../src/tape/tape.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import type { Selected } from '../arbitrary-tape.ts'
import { ownHouse } from '../edge-fixture.ts'

/** Two tokens that can be named. */
export const board = new Map(
  [apple, tesla].map((address) => [
    `${noteNames.token}${address}`,
    { address, symbol: address === apple ? 'AAPLc' : 'TSLAc', isin: null, former: [] },
  ]),
)

export type Parameters = Readonly<Record<string, string | number>>

/** A house whose two tokens can be named. */
export async function namedHouse(bounds: { readonly bound?: number; readonly over?: Tape } = {}) {
  const house = ownHouse(bounds)
  await house.tape.append([], board)
  return house
}

export const readingOf = (tape: Tape) => ({ tape, turnstile: new Turnstile(), isGone: () => false })

/** What is asked for by a client who says this in its URL at this time. */
export function askedAt(now: number, tape: Tape, parameters: Parameters) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) query.set(name, String(value))
  return askedOf(query, { tape, view: new View(tape), now: () => now })
}

/** A selection as it stands in a URL. */
export const parametersOf = ({ tokens, stage, types, min }: Selected): Parameters => ({
  ...(tokens ? { symbols: tokens.join() } : {}),
  ...(min === null ? {} : { min_value: min }),
  stage,
  types: types.join(),
})

export const idOf = (text: string): string => JSON.parse(text).id
