import { chunk } from '../../lib/turns.ts'
import { formatPosition } from '../../protocol/position.ts'
import type { Draft, DraftOf } from '../../protocol/updates.ts'
import type { PublishedFact } from './facts/fact.ts'

/** An update to publish, and the fact that it publishes, amends or retracts. `fact` is null for any other update. */
export type Publication = { readonly draft: Draft; readonly fact: PublishedFact | null }

export const NOTHING: readonly Publication[] = []

/** The publications of one step of a reduction, and the numbers of received logs that it does not publish, by reason. */
export type EventOutput = {
  readonly publications: readonly Publication[]
  readonly repeated?: number
  readonly unlisted?: number
  readonly unreadable?: number
}

/** Ends a part of a reduction. That part is written by itself, and the rest takes another turn of the event loop. */
export const NEXT_TURN = Symbol('next turn')
export type Outputs = Iterable<EventOutput | typeof NEXT_TURN>

/** Returns the outputs of a long list, whose parts take one turn each. */
export function* outputsOfParts<Item>(
  items: readonly Item[],
  perTurn: number,
  outputOf: (part: readonly Item[]) => EventOutput,
): Outputs {
  for (const [index, part] of chunk(items, perTurn).entries()) {
    if (index > 0) yield NEXT_TURN
    yield outputOf(part)
  }
}

/** Limit of the updates that one turn of the event loop publishes and writes. Each takes ten times as long as the fold of a log. */
export const PUBLISHED_PER_TURN = 500

export const withoutFacts = (drafts: readonly Draft[]): readonly Publication[] => drafts.map((draft) => ({ draft, fact: null }))

/** Appends publications one by one: a single `push` with thousands of arguments would overflow the stack. */
export function addAll(publications: Publication[], more: readonly Publication[]): void {
  for (const publication of more) publications.push(publication)
}

/** The `fact_id` of a retract or amend until `place` sets it. */
export const UNPLACED = ''

/** Gives an update the number `seq`. The `fact_id` of an amend or retract is the position of the fact's previous update. */
export function place({ draft, fact }: Publication, seq: number, epoch: string): Draft {
  if (!fact) return draft
  const placed: Draft = 'fact_id' in draft ? { ...draft, fact_id: formatPosition(epoch, fact.seq) } : draft
  fact.seq = seq
  return placed
}

export const forAllTokens = (draft: DraftForAll, time: string): Publication => {
  const { type, ...rest } = draft
  return { draft: { type, symbol: '*', address: null, time, ...rest } as Draft, fact: null }
}
type DraftForAll = {
  [Type in 'status' | 'hole' | 'finality' | 'session']: Omit<DraftOf<Type>, 'symbol' | 'address' | 'time'>
}['status' | 'hole' | 'finality' | 'session']
