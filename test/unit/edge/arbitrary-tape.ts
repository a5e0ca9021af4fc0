import fc from 'fast-check'
import type { SelectionOptions } from '../../../src/protocol/selection.ts'
import { type Draft, type DraftOf, defaultTypes, type UpdateType } from '../../../src/protocol/updates.ts'
import { apple, status, tesla } from '../tape/update-drafts.ts'
import type { ListenRequest } from './edge-fixture.ts'
import { amendOf, approvalAt, at, pauseAt, retractOf, sealedAt, sealOf, transferAt } from './fact-drafts.ts'

/** A tape that might have been: whatever is drawn is turned into tellings, ends and seals in an order that can be. */
const TapeAction = fc.record({
  act: fc.constantFrom('tell', 'tell', 'tell', 'tell sealed', 'amend', 'amend', 'retract', 'seal', 'seal', 'status'),
  address: fc.constantFrom(apple, apple, apple, apple, tesla),
  block: fc.constantFrom(7, 7, 7, 7, 8),
  index: fc.constantFrom(0, 0, 0, 1, 2),
  value: fc.constantFrom('1.00', '50.00', '900.00'),
  seized: fc.boolean(),
  /** Whether it comes in one turn with what is before it. */
  along: fc.boolean(),
})
/** Mostly of the same few facts, so that lives are long. */
export const TapeActions = fc.array(TapeAction, { maxLength: 30, size: 'max' })
type TapeAction = typeof TapeAction extends fc.Arbitrary<infer Drawn> ? Drawn : never
type FactDraft = DraftOf<'transfer' | 'seize' | 'approval' | 'pause'>

export function batchesOf(actions: readonly TapeAction[]): readonly (readonly Draft[])[] {
  const facts = new Map<string, { drafts: FactDraft; sealed: boolean }>()
  const batches: Draft[][] = []
  let fork = 0
  for (const { act, address, block, index, value, seized, along } of actions) {
    const name = (of: number) => `${address} ${block} ${of}`
    const fact = facts.get(name(index))
    const draft = draftAt({ address, block, index }, value, seized)
    const drafts: Draft[] = []
    if (act.startsWith('tell') && !fact) {
      const sealed = act === 'tell sealed'
      const one = sealed ? sealedAt(draft) : draft
      facts.set(name(index), { drafts: one, sealed })
      drafts.push(one)
    } else if (act === 'amend' && fact) {
      drafts.push(amendOf(fact.drafts, fact.sealed ? sealedAt(draft) : draft))
      fact.drafts = { ...draft, time: fact.drafts.time }
    } else if (act === 'retract' && fact) {
      drafts.push(retractOf(fact.drafts, fact.sealed ? 'reorg' : 'not_sealed'))
      facts.delete(name(index))
    } else if (act === 'seal') {
      fork += 1
      const contents = [0, 1, 2].flatMap((of) => {
        const one = facts.get(name(of))
        if (one) one.sealed = true
        return one ? [one.drafts] : []
      })
      drafts.push(sealOf([...contents, { index: 9 }], block, fork, address))
    } else if (act === 'status') drafts.push(status({ at }))
    const last = batches.at(-1)
    if (along && last) last.push(...drafts)
    else batches.push(drafts)
  }
  return batches
}

/** Each index of a block is a fact of another kind. */
function draftAt(
  position: { address: typeof apple; block: number; index: number },
  value: string,
  seized: boolean,
): FactDraft {
  if (position.index === 1) return approvalAt(position)
  if (position.index === 2) return pauseAt(position)
  const transferDraft = transferAt(position, { reference_value: value })
  return seized ? { ...transferDraft, type: 'seize' } : transferDraft
}

/** Whatever may be asked for. */
export const ArbitrarySelection = fc.record({
  tokens: fc.constantFrom(undefined, undefined, [apple], [tesla]),
  stage: fc.constantFrom('preconfirmed' as const, 'sealed' as const),
  types: fc.oneof(
    fc.constant(defaultTypes),
    fc.subarray<UpdateType>(['transfer', 'seize', 'approval', 'pause', 'seal', 'retract', 'amend', 'status'], {
      minLength: 1,
    }),
    // Those who are told of a key's end only because they were told of the key.
    fc.constantFrom<UpdateType[]>(['transfer'], ['seize'], ['approval', 'nav']),
  ),
  min: fc.constantFrom(null, 10, 100),
})
export type ArbitrarySelection = typeof ArbitrarySelection extends fc.Arbitrary<infer Drawn> ? Drawn : never

export const listenRequestOf = ({
  tokens,
  stage,
  types,
  min,
}: ArbitrarySelection): ListenRequest & { readonly options: Partial<SelectionOptions> } => ({
  ...(tokens ? { tokens } : {}),
  options: { stage, types, minValue: min === null ? null : { units: BigInt(min), scale: 0 } },
})
