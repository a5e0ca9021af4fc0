import { readHistoryQuery } from '../../../../src/edge/history/query.ts'
import { WorkQueue } from '../../../../src/edge/limits/work-queue.ts'
import { View } from '../../../../src/edge/select/view.ts'
import { noteNames, type Tape } from '../../../../src/tape/tape.ts'
import { apple, tesla } from '../../tape/update-drafts.ts'
import type { ArbitrarySelection } from '../arbitrary-tape.ts'
import { openTestEdge } from '../edge-fixture.ts'

/** The notes of two listed tokens. */
export const tokenNotes = new Map(
  [apple, tesla].map((address) => [
    `${noteNames.token}${address}`,
    { address, symbol: address === apple ? 'AAPLc' : 'TSLAc', isin: null, formerSymbols: [] },
  ]),
)

export type QueryParameters = Readonly<Record<string, string | number>>

/** A test edge with the two tokens listed. */
export async function openNamedEdge(bounds: { readonly bound?: number; readonly existingTape?: Tape } = {}) {
  const edge = openTestEdge(bounds)
  await edge.tape.append([], tokenNotes)
  return edge
}

export const historyReaderOf = (tape: Tape) => ({ tape, workQueue: new WorkQueue(), isGone: () => false })

/** The query that these URL parameters make at this time. */
export function queryAt(now: number, tape: Tape, parameters: QueryParameters) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) query.set(name, String(value))
  return readHistoryQuery(query, { tape, view: new View(tape), now: () => now })
}

/** A selection as URL parameters. */
export const parametersOf = ({ tokens, stage, types, min }: ArbitrarySelection): QueryParameters => ({
  ...(tokens ? { symbols: tokens.join() } : {}),
  ...(min === null ? {} : { min_value: min }),
  stage,
  types: types.join(),
})

export const idOf = (text: string): string => JSON.parse(text).id
