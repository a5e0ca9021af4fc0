import fc from 'fast-check'
import type { Options } from '../../../src/protocol/selection.ts'
import { type Draft, type DraftOf, defaultTypes, type UpdateType } from '../../../src/protocol/updates.ts'
import { apple, status, tesla } from '../tape/update-drafts.ts'
import type { Asked } from './edge-fixture.ts'
import { amendOf, approvalAt, at, pauseAt, retractOf, sealedAt, sealOf, transferAt } from './fact-drafts.ts'

/** A tape that might have been: whatever is drawn is turned into tellings, ends and seals in an order that can be. */
const Deed = fc.record({
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
export const Deeds = fc.array(Deed, { maxLength: 30, size: 'max' })
type Deed = typeof Deed extends fc.Arbitrary<infer Drawn> ? Drawn : never
type Told = DraftOf<'transfer' | 'seize' | 'approval' | 'pause'>

export function turnsOf(deeds: readonly Deed[]): readonly (readonly Draft[])[] {
  const lives = new Map<string, { told: Told; sealed: boolean }>()
  const turns: Draft[][] = []
  let fork = 0
  for (const { act, address, block, index, value, seized, along } of deeds) {
    const name = (of: number) => `${address} ${block} ${of}`
    const life = lives.get(name(index))
    const fresh = toldAt({ address, block, index }, value, seized)
    const told: Draft[] = []
    if (act.startsWith('tell') && !life) {
      const sealed = act === 'tell sealed'
      const one = sealed ? sealedAt(fresh) : fresh
      lives.set(name(index), { told: one, sealed })
      told.push(one)
    } else if (act === 'amend' && life) {
      told.push(amendOf(life.told, life.sealed ? sealedAt(fresh) : fresh))
      life.told = { ...fresh, time: life.told.time }
    } else if (act === 'retract' && life) {
      told.push(retractOf(life.told, life.sealed ? 'reorg' : 'not_sealed'))
      lives.delete(name(index))
    } else if (act === 'seal') {
      fork += 1
      const held = [0, 1, 2].flatMap((of) => {
        const one = lives.get(name(of))
        if (one) one.sealed = true
        return one ? [one.told] : []
      })
      told.push(sealOf([...held, { index: 9 }], block, fork, address))
    } else if (act === 'status') told.push(status({ at }))
    const last = turns.at(-1)
    if (along && last) last.push(...told)
    else turns.push(told)
  }
  return turns
}

/** Each index of a block is a fact of another kind. */
function toldAt(place: { address: typeof apple; block: number; index: number }, value: string, seized: boolean): Told {
  if (place.index === 1) return approvalAt(place)
  if (place.index === 2) return pauseAt(place)
  const moved = transferAt(place, { reference_value: value })
  return seized ? { ...moved, type: 'seize' } : moved
}

/** Whatever may be asked for. */
export const Selected = fc.record({
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
export type Selected = typeof Selected extends fc.Arbitrary<infer Drawn> ? Drawn : never

export const askedOf = ({ tokens, stage, types, min }: Selected): Asked & { readonly options: Partial<Options> } => ({
  ...(tokens ? { tokens } : {}),
  options: { stage, types, minValue: min === null ? null : { units: BigInt(min), scale: 0 } },
})
