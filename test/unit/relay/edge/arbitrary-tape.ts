import fc from 'fast-check'
import type { SelectionOptions } from '../../../../src/protocol/parameters/selection.ts'
import { type Draft, type DraftOf, defaultTypes, type UpdateType } from '../../../../src/protocol/updates.ts'
import { apple, status, tesla } from '../tape/update-drafts.ts'
import type { ListenRequest } from './edge-fixture.ts'
import { amendOf, approvalAt, at, pauseAt, retractOf, sealedAt, sealOf, transferAt } from './fact-drafts.ts'

/** Random actions that `batchesOf` turns into publications, amends, retracts and seals in a possible order. */
const TapeAction = fc.record({
  kind: fc.constantFrom('publish', 'publish', 'publish', 'publish sealed', 'amend', 'amend', 'retract', 'seal', 'seal', 'status'),
  address: fc.constantFrom(apple, apple, apple, apple, tesla),
  block: fc.constantFrom(7, 7, 7, 7, 8),
  index: fc.constantFrom(0, 0, 0, 1, 2),
  value: fc.constantFrom('1.00', '50.00', '900.00'),
  seized: fc.boolean(),
  /** Whether it joins the batch before it. */
  joined: fc.boolean(),
})
/** Mostly about the same few facts, so that histories grow long. */
export const TapeActions = fc.array(TapeAction, { maxLength: 30, size: 'max' })
type TapeAction = typeof TapeAction extends fc.Arbitrary<infer Drawn> ? Drawn : never
type FactDraft = DraftOf<'transfer' | 'seize' | 'approval' | 'pause'>

export function batchesOf(actions: readonly TapeAction[]): readonly (readonly Draft[])[] {
  const facts = new Map<string, { draft: FactDraft; sealed: boolean }>()
  const batches: Draft[][] = []
  let fork = 0
  for (const { kind, address, block, index, value, seized, joined } of actions) {
    const nameOf = (at: number) => `${address} ${block} ${at}`
    const fact = facts.get(nameOf(index))
    const draft = draftAt({ address, block, index }, value, seized)
    const drafts: Draft[] = []
    if (kind.startsWith('publish') && !fact) {
      const sealed = kind === 'publish sealed'
      const published = sealed ? sealedAt(draft) : draft
      facts.set(nameOf(index), { draft: published, sealed })
      drafts.push(published)
    } else if (kind === 'amend' && fact) {
      drafts.push(amendOf(fact.draft, fact.sealed ? sealedAt(draft) : draft))
      fact.draft = { ...draft, time: fact.draft.time }
    } else if (kind === 'retract' && fact) {
      drafts.push(retractOf(fact.draft, fact.sealed ? 'reorg' : 'not_sealed'))
      facts.delete(nameOf(index))
    } else if (kind === 'seal') {
      fork += 1
      const contents = [0, 1, 2].flatMap((at) => {
        const sealedFact = facts.get(nameOf(at))
        if (sealedFact) sealedFact.sealed = true
        return sealedFact ? [sealedFact.draft] : []
      })
      drafts.push(sealOf([...contents, { index: 9 }], block, fork, address))
    } else if (kind === 'status') drafts.push(status({ at }))
    const last = batches.at(-1)
    if (joined && last) last.push(...drafts)
    else batches.push(drafts)
  }
  return batches
}

/** A draft whose type depends on its index in the block. */
function draftAt(position: { address: typeof apple; block: number; index: number }, value: string, seized: boolean): FactDraft {
  if (position.index === 1) return approvalAt(position)
  if (position.index === 2) return pauseAt(position)
  const transferDraft = transferAt(position, { reference_value: value })
  return seized ? { ...transferDraft, type: 'seize' } : transferDraft
}

export const ArbitrarySelection = fc.record({
  tokens: fc.constantFrom(undefined, undefined, [apple], [tesla]),
  stage: fc.constantFrom('preconfirmed' as const, 'sealed' as const),
  types: fc.oneof(
    fc.constant(defaultTypes),
    fc.subarray<UpdateType>(['transfer', 'seize', 'approval', 'pause', 'seal', 'retract', 'amend', 'status'], { minLength: 1 }),
    // Selections that receive the end of a key only because they received the key.
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
  options: { stage, types, min_value: min === null ? null : { units: BigInt(min), scale: 0 } },
})
