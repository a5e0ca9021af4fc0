import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parsePosition } from '../../src/protocol/position.ts'
import type { Options } from '../../src/protocol/selection.ts'
import { type Draft, type DraftOf, defaultTypes, Update, type UpdateType } from '../../src/protocol/updates.ts'
import type { Entry } from '../../src/tape/tape.ts'
import { apple, status, tesla } from '../tape/drafts.ts'
import { amendOf, approvalAt, at, pauseAt, retractOf, sealedAt, sealOf, transferAt } from './facts.ts'
import { type Asked, after, openHouse } from './house.ts'

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
const Deeds = fc.array(Deed, { maxLength: 30, size: 'max' })
type Deed = typeof Deed extends fc.Arbitrary<infer Drawn> ? Drawn : never
type Told = DraftOf<'transfer' | 'seize' | 'approval' | 'pause'>

function turnsOf(deeds: readonly Deed[]): readonly (readonly Draft[])[] {
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

const Selected = fc.record({
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
type Selected = typeof Selected extends fc.Arbitrary<infer Drawn> ? Drawn : never

const askedOf = ({ tokens, stage, types, min }: Selected): Asked & { readonly options: Partial<Options> } => ({
  ...(tokens ? { tokens } : {}),
  options: { stage, types, minValue: min === null ? null : { units: BigInt(min), scale: 0 } },
})

/**
 * What the contract's words say that a selection hears, found by going through the whole tape once and remembering what
 * was told: nothing of it looks anything up.
 */
function expectedOf(entries: readonly Entry[], { tokens, stage, types, min }: Selected): readonly string[] {
  const isMovement = (type: UpdateType) => type === 'transfer' || type === 'seize'
  type Content = Omit<Update, 'id' | 'prev' | 'time'>
  const passes = (content: Content) =>
    types.includes(content.type) &&
    (!isMovement(content.type) ||
      min === null ||
      ('reference_value' in content && Number(content.reference_value) >= min))
  /** Of each key that lives: what it is now, since when, whether this view has it, and whether this listener was told. */
  const lives = new Map<string, { content: Content; time: string; has: boolean; told: boolean }>()
  const heard: string[] = []
  for (const { update, text } of entries) {
    if (tokens && update.address !== null && !tokens.some((address) => address === update.address)) continue
    switch (update.type) {
      case 'retract':
      case 'amend': {
        const life = lives.get(update.key)
        if (!life) throw new Error('a tape that cannot be')
        const named = types.includes(update.type) && !(min !== null && isMovement(update.of))
        const content = update.type === 'amend' ? update.update : null
        if (life.has && (named || life.told || (content && passes(content)))) heard.push(text)
        if (content) {
          life.content = content
          life.told ||= life.has && passes(content)
        } else lives.delete(update.key)
        break
      }
      case 'seal': {
        let told = false
        update.keys.forEach((key, index) => {
          const life = lives.get(key)
          if (life && !life.has) {
            life.has = true
            life.told = passes(life.content)
            const { block: before } = life.content as DraftOf<'transfer'>
            const block = { ...before, hash: update.block.hash }
            const common = { id: `${update.id}.${index + 1}`, prev: null, time: life.time, stage: 'sealed', block }
            // The schema of the contract puts the fields in their order.
            if (life.told) heard.push(JSON.stringify(Update.parse({ ...life.content, ...common })))
          }
          told ||= life?.told ?? false
        })
        if (told || types.includes('seal')) heard.push(text)
        break
      }
      default: {
        const has = stage === 'preconfirmed' || !('stage' in update) || update.stage !== 'preconfirmed'
        const told = has && passes(update)
        if ('key' in update && update.key) lives.set(update.key, { content: update, time: update.time, has, told })
        if (told) heard.push(text)
      }
    }
  }
  return heard
}

/** A place as a number that grows with the stream: what is given before a seal stands before the seal. */
function orderOf(position: string): number {
  const { seq = 0, n = null } = parsePosition(position) ?? {}
  return seq + (n === null ? 0 : n / 100 - 1)
}
const idOf = (text: string): string => JSON.parse(text).id

describe('whatever is on the tape and whoever asks', () => {
  it('hears the same live, on coming later, and on coming back from any place', async () => {
    await fc.assert(
      fc.asyncProperty(Deeds, Selected, async (deeds, selected) => {
        const house = openHouse()
        const { tape, listen, close } = house
        try {
          const asked = askedOf(selected)
          const live = listen(asked)
          await live.joined
          const turns = turnsOf(deeds)
          const midway = Math.floor(turns.length / 2)
          let joining = live
          for (const [index, turn] of turns.entries()) {
            if (index === midway) joining = listen({ ...asked, since: { from: 'start' } })
            await tape.append(turn)
          }
          await joining.joined
          const expected = expectedOf(await tape.since(0, 1_000), selected)
          expect(live.outlet.told).toEqual(expected)
          expect(joining.outlet.told).toEqual(expected)
          expect(live.listener.sent).toBe(expected.length)
          // Another edge has nothing at hand: all that it says, the tape says.
          const other = openHouse({ over: tape })
          const everywhere = Array.from({ length: tape.end() + 1 }, (_, seq) => `${tape.epoch}.${seq}`)
          const within = expected.map(idOf).filter((id) => !everywhere.includes(id))
          for (const place of [...everywhere, ...within]) {
            const rest = expected.filter((text) => orderOf(idOf(text)) > orderOf(place))
            for (const { listen } of [house, other]) {
              const back = listen({ ...asked, since: after(place) })
              await back.joined
              expect(back.outlet.told).toEqual(rest)
              back.leave()
            }
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 300 },
    )
  })

  it('is given in the sealed view each key once in each life, and nothing that is not sealed', async () => {
    await fc.assert(
      fc.asyncProperty(Deeds, async (deeds) => {
        const { tape, listen, close } = openHouse()
        try {
          const types = ['transfer', 'seize', 'approval', 'pause', 'seal', 'retract', 'amend'] as const
          for (const turn of turnsOf(deeds)) await tape.append(turn)
          const { outlet, joined } = listen({ options: { stage: 'sealed', types }, since: { from: 'start' } })
          await joined
          const held = new Set<string>()
          for (const update of outlet.updates) {
            if (update.type === 'seal') {
              const listed = update.keys.filter((_, index) => update.types[index] !== 'part')
              expect(listed.filter((key) => !held.has(key))).toEqual([])
            } else if (update.type === 'retract') expect(held.delete(update.key)).toBe(true)
            else if (update.type === 'amend') expect(held.has(update.key)).toBe(true)
            else if ('key' in update && update.key) {
              expect(update).toMatchObject({ stage: 'sealed', block: { hash: expect.any(String) } })
              expect(held.has(update.key)).toBe(false)
              held.add(update.key)
            }
          }
        } finally {
          await close()
        }
      }),
      { numRuns: 150 },
    )
  })
})
