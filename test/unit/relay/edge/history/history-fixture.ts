import { readPage } from '../../../../../src/relay/edge/history/history-page.ts'
import { type HistoryQuery, readHistoryQuery } from '../../../../../src/relay/edge/history/history-query.ts'
import { LongWorkQueue } from '../../../../../src/relay/edge/limits/long-work-queue.ts'
import { CurrentState } from '../../../../../src/relay/edge/select/current-state.ts'
import type { MatchedContext } from '../../../../../src/relay/edge/select/matched-reader.ts'
import type { TestTape } from '../../../../support/local-tape.ts'
import { apple, notesOfTokens, tesla } from '../../tape/update-drafts.ts'
import type { ArbitrarySelection } from '../arbitrary-tape.ts'
import { openTestEdge } from '../edge-fixture.ts'

/** The notes of two listed tokens. */
export const tokenNotes = notesOfTokens([
  { address: apple, symbol: 'AAPLc', isin: null, formerSymbols: [] },
  { address: tesla, symbol: 'TSLAc', isin: null, formerSymbols: [] },
])

export type QueryParameters = Readonly<Record<string, string | number>>

/** A test edge with the two tokens listed. */
export async function openNamedEdge(bounds: { readonly bound?: number; readonly existingTape?: TestTape } = {}) {
  const edge = openTestEdge(bounds)
  await edge.tape.append([], tokenNotes)
  return edge
}

export const historyReaderOf = (tape: TestTape, { nextSlice: pause } = new LongWorkQueue()) => ({
  tape,
  pause,
  isGone: () => false,
})

export const readPageOf = (tape: TestTape, query: HistoryQuery, reading: Partial<MatchedContext> = {}) =>
  readPage({ ...historyReaderOf(tape), ...reading }, tape.epoch, query)

/** The query that these URL parameters make at this time. */
export async function queryAt(now: number, tape: TestTape, parameters: QueryParameters) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) query.set(name, String(value))
  return readHistoryQuery(query, { tape, current: new CurrentState(tape.notes), now: () => now, wallTime: () => now })
}

/** A selection as URL parameters. */
export const parametersOf = ({ tokens, stage, types, min }: ArbitrarySelection): QueryParameters => ({
  ...(tokens ? { symbols: tokens.join() } : {}),
  ...(min === null ? {} : { min_value: min }),
  stage,
  types: types.join(),
})

export const idOf = (text: string): string => JSON.parse(text).id
